"""Draining nodes and freezing resource groups: nothing new starts, nothing ends."""

from __future__ import annotations

from datetime import datetime

import msgspec

from backendai_hub.api.operators import GroupState
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.agents import Agent
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.fields import Moment
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.operators import (
    Freeze,
    Stop,
    StopKind,
    check_reason,
    format_minute,
    tell_drain,
    tell_freeze,
)
from backendai_hub.core.times import format_time
from backendai_hub.db import agents, stops
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.operations.agent_changes import find_agent
from backendai_hub.operations.node_lists import read_agent
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform

_GROUP = noun_of("resource-group")


class DrainRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Why a node is drained, and by when it ought to be empty (a time with its zone).

    Nothing happens by itself at that time: it is shown whether what is left ends by it.
    """

    reason: str
    by: str | None = None


class FreezeRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Why nothing starts in a resource group."""

    reason: str


async def drain_agent(
    platform: Platform, principal: Principal, reference: str, body: DrainRequest
) -> Agent:
    """Let nothing new start on a node; draining it again changes reason and time."""
    reason = check_reason(body.reason)
    async with platform.database.transaction() as tx:
        record = await find_agent(tx, reference)
        before = await stops.find_stop(tx.connection, StopKind.NODE, record.id)
        stop = Stop(
            kind=StopKind.NODE,
            target_id=record.id,
            actor=principal.name,
            since=tx.now if before is None else before.since,
            reason=reason,
            due=_read_due(body.by, tx.now),
        )
        await stops.put_stop(tx, stop)
        await agents.change_agent(tx, record, schedulable=False)
        after = {"schedulable": False, "reason": reason, "by": format_time(stop.due)}
        _note_node(tx, principal, stop, record.name, after)
    return await read_agent(platform, record.id)


def _read_due(given: str | None, now: datetime) -> datetime | None:
    if given is None:
        return None
    due = Moment().read("by", given)
    if due <= now:
        raise InvalidRequestError(f"by: {format_minute(due)} has gone by")
    return due


async def undrain_agent(
    platform: Platform, principal: Principal, reference: str
) -> Agent:
    """Let sessions start on a node again; doing so twice is no error."""
    async with platform.database.transaction() as tx:
        record = await find_agent(tx, reference)
        before = await stops.find_stop(tx.connection, StopKind.NODE, record.id)
        if before is not None or not record.schedulable:
            await stops.drop_stop(tx, StopKind.NODE, record.id)
            await agents.change_agent(tx, record, schedulable=True)
            _note_node(tx, principal, record.id, record.name, {"schedulable": True})
    return await read_agent(platform, record.id)


def _note_node(
    tx: Transaction,
    principal: Principal,
    stop: Stop | str,
    name: str,
    after: dict[str, object],
) -> None:
    """Leave a row, tell the news, and have the scheduler look again."""
    drained = isinstance(stop, Stop)
    node_id = stop.target_id if isinstance(stop, Stop) else stop
    words = tell_drain(stop) if isinstance(stop, Stop) else "takes sessions again"
    tx.audit(
        Act(
            action=Action.DRAIN_AGENT if drained else Action.UNDRAIN_AGENT,
            object_kind="agent",
            object_id=node_id,
            object_name=name,
            after=after,
        )
    )
    tx.record(
        Event(
            kind=EventKind.AGENT_DRAINED if drained else EventKind.AGENT_UNDRAINED,
            text=f"node {name}: {words}",
            actor=principal.name,
            agent_id=node_id,
        )
    )
    tx.wake("scheduler")


async def freeze_group(
    platform: Platform, principal: Principal, reference: str, body: FreezeRequest
) -> GroupState:
    """Let nothing start in a resource group; it still takes requests.

    One that is not active takes none, and is not shown to people. This is for a while.
    """
    reason = check_reason(body.reason)
    async with platform.database.transaction() as tx:
        group = await _find_group(tx, principal, reference, Action.FREEZE_GROUP)
        before = await stops.find_stop(tx.connection, StopKind.GROUP, group["id"])
        stop = Stop(
            kind=StopKind.GROUP,
            target_id=group["id"],
            actor=principal.name,
            since=tx.now if before is None else before.since,
            reason=reason,
        )
        await stops.put_stop(tx, stop)
        words = tell_freeze(group["name"], stop)
        _note_group(tx, principal, EventKind.GROUP_FROZEN, words)
        tx.audit(_group_act(Action.FREEZE_GROUP, group, {"reason": reason}))
    return GroupState(id=group["id"], name=group["name"], freeze=show_freeze(stop))


async def unfreeze_group(
    platform: Platform, principal: Principal, reference: str
) -> GroupState:
    """Let sessions start in a resource group again; doing so twice is no error."""
    async with platform.database.transaction() as tx:
        group = await _find_group(tx, principal, reference, Action.UNFREEZE_GROUP)
        if await stops.drop_stop(tx, StopKind.GROUP, group["id"]):
            words = f"resource group {group['name']} goes on"
            _note_group(tx, principal, EventKind.GROUP_UNFROZEN, words)
            tx.audit(_group_act(Action.UNFREEZE_GROUP, group, None))
    return GroupState(id=group["id"], name=group["name"])


async def _find_group(
    tx: Transaction, principal: Principal, reference: str, action: Action
) -> Item:
    group = await find_visible(tx.connection, principal, _GROUP, reference, lock=True)
    await require(tx.connection, principal, _GROUP, group, action)
    return group


def _group_act(action: Action, group: Item, after: dict[str, object] | None) -> Act:
    return Act(
        action=action,
        object_kind="resource-group",
        object_id=group["id"],
        object_name=group["name"],
        after=after,
    )


def _note_group(
    tx: Transaction, principal: Principal, kind: EventKind, text: str
) -> None:
    tx.record(Event(kind=kind, text=text, actor=principal.name))
    tx.wake("scheduler")


def show_freeze(stop: Stop) -> Freeze:
    """Show why a resource group is frozen."""
    return Freeze(
        reason=stop.reason, by=stop.actor, since=format_time(stop.since) or ""
    )
