"""The queue of a resource group, in the order in which the scheduler tries it.

It is read in one consistent view and ordered by the same code as a pass. Where turns
depend on who gets room, it is the order if nobody else gets any.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from backendai_hub.api.operators import QueueEntry, QueuePage
from backendai_hub.core.access import (
    Action,
    Principal,
    Reach,
    Target,
    can,
    reach,
)
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.groups import read_options
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.operators import StopKind
from backendai_hub.core.sessions import Session
from backendai_hub.db import session_views, stops
from backendai_hub.db.nouns import Item
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.stops import show_freeze
from backendai_hub.scheduling.guards import Fault, check_sequencer
from backendai_hub.scheduling.ordering import Bands
from backendai_hub.scheduling.plugins import UnknownPolicyError, find_sequencer
from backendai_hub.scheduling.shares import ShareState
from backendai_hub.scheduling.snapshot import GroupPolicy, Snapshot

MOST_PER_PAGE = 200
_GROUP = noun_of("resource-group")
_QUICK_SECONDS: Final = 0.05
_KEPT_TIMES: Final = 10.0


class QueueQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the queue: ``limit`` entries behind the position ``after``."""

    limit: int = 20
    after: int = 0


class QueueDesk:
    """Puts queues in order, one at a time and beside the loop.

    One that takes its time, because it is long, is shown for ten times as long as that:
    however often people ask, it costs a tenth of one processor. What counts is what it
    takes of the processor, whoever else is busy there.
    """

    def __init__(
        self,
        explanations: ExplanationDesk | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        self._explanations = explanations or ExplanationDesk()
        self._clock, self._used = clock, used
        self._lock = asyncio.Lock()
        self._snapshot: Snapshot | None = None
        self._records: Mapping[str, SessionRecord] = {}
        self._orders: dict[str, list[str]] = {}
        self._took = self._until = 0.0

    async def line_up(
        self, platform: Platform, group: str
    ) -> tuple[Sequence[str], Mapping[str, SessionRecord]]:
        """Return the ids of those who wait in a group, in order, and what they are."""
        async with self._lock:
            began = self._used()
            if self._snapshot is None or self._clock() >= self._until:
                self._snapshot, self._orders, self._took = None, {}, 0.0
                async with self._explanations.viewing(platform) as view:
                    # A copy: the view goes on with who comes and goes.
                    self._records, self._snapshot = {**view.records}, view.snapshot()
            if group not in self._orders:
                self._took += self._used() - began
                self._orders[group], took = await asyncio.to_thread(
                    self._order, self._snapshot, group
                )
                self._took += took
                kept = max(0.0, self._took - _QUICK_SECONDS) * _KEPT_TIMES
                self._until = self._clock() + kept
            return self._orders[group], self._records

    def _order(self, snapshot: Snapshot, group: str) -> tuple[list[str], float]:
        """Put a group's queue in order; tell also what that has used."""
        began = self._used()
        return order_queue(snapshot, group), self._used() - began


async def read_queue(
    platform: Platform,
    principal: Principal,
    reference: str,
    query: QueueQuery,
    desk: QueueDesk | None = None,
) -> QueuePage:
    """Return one page of a group's queue: of it, what the caller may see."""
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    if query.after < 0:
        raise InvalidRequestError(f"after: {query.after} is not a position")
    async with platform.database.read() as connection:
        group = await find_visible(
            connection, principal, _GROUP, reference, least=Reach.OWN
        )
        frozen = await stops.find_stop(connection, StopKind.GROUP, group["id"])
    order, records = await (desk or QueueDesk()).line_up(platform, group["id"])
    seen = [
        (position, records[session_id])
        for position, session_id in enumerate(order, start=1)
        if position > query.after and _may_see(principal, records[session_id])
    ]
    page = seen[: query.limit]
    everything = reach(principal, Action.READ_QUEUE) is Reach.ALL
    return QueuePage(
        resource_group=group["name"],
        items=await _show(platform, page),
        next=page[-1][0] if len(seen) > query.limit else None,
        length=len(order) if everything else None,
        freeze=None if frozen is None else show_freeze(frozen),
        fault=platform.policy_faults.of(group["id"], _policies_of(group)),
    )


def _policies_of(group: Item) -> tuple[str, str]:
    options = read_options(group["scheduler_opts"])
    return group["scheduler"], options.agent_selection_strategy


def order_queue(snapshot: Snapshot, group: str) -> list[str]:
    """Return the ids of those who wait in *group*, who is tried first before others."""
    queue = [session for session in snapshot.queue if session.group == group]
    policy = snapshot.groups.get(group, GroupPolicy())
    try:
        sequencer = find_sequencer(policy.sequencer)
    except UnknownPolicyError:
        sequencer = find_sequencer("fifo")
    shares = policy.shares if policy.shares is not None else ShareState()
    fault = Fault(snapshot.now, len(queue))
    order = Bands(queue, check_sequencer(sequencer, fault), shares)
    found = []
    while (index := order.next()) is not None:
        found.append(queue[index].id)
    return found


def _may_see(principal: Principal, record: SessionRecord) -> bool:
    target = Target(record.owner_id, record.domain_id)
    return can(principal, Action.READ_QUEUE, target)


async def _show(
    platform: Platform, page: Sequence[tuple[int, SessionRecord]]
) -> list[QueueEntry]:
    if not page:
        return []
    async with platform.database.read() as connection:
        found = await session_views.get_sessions(connection, [r.id for _, r in page])
    shown = {session.id: session for session in found}
    now = platform.database.clock()
    return [
        _entry(position, record, shown[record.id], now)
        for position, record in page
        if record.id in shown
    ]


def _entry(
    position: int, record: SessionRecord, shown: Session, now: datetime
) -> QueueEntry:
    return QueueEntry(
        position=position,
        id=record.id,
        name=record.name,
        owner=shown.owner,
        project=shown.project,
        priority=record.priority,
        waited=max(0, int((now - record.created_at).total_seconds())),
        reason=record.reason,
    )
