"""Why a session waits: read off a pass over what waits and runs at the moment.

A pass is kept for a second, or ten times as long as it took to make, so that asking
costs a busy service at most a tenth of one processor, whoever asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import ceil
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import Why
from backendai_hub.core.access import Action, Principal, Target, can
from backendai_hub.core.errors import NotFoundError, TooManyRequestsError
from backendai_hub.core.nouns import Verb, noun_of
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus, SessionType
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.db.batch import Dependency, tell_waits
from backendai_hub.db.groups import list_allowed, load_holds
from backendai_hub.db.images import load_images
from backendai_hub.db.running import load_running
from backendai_hub.db.sessions import SessionRecord, get_record
from backendai_hub.operations.explain_words import LONG_AGO, Asked, Seen, tell_why
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption_views import tell_room
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.sessions import get_allowed
from backendai_hub.scheduling.chains import Waits
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.explained import Explanation, Options
from backendai_hub.scheduling.holds import tell_window
from backendai_hub.scheduling.snapshot import PendingSession, RunningSession, Snapshot

KEPT_SECONDS: Final = 1.0
_KEPT_TIMES: Final = 10.0
_QUICK_SECONDS: Final = 0.1
_SMALL: Final = 200
"""A pass over so few sessions and nodes, or one that has taken no longer, is made again
for who is not in the last one."""
_READ_RESERVATIONS: Final = noun_of("reservation").action(Verb.READ)

Choose = Callable[[Sequence[Sequence[str]]], Sequence[str]]
"""Picks sessions out of the lines that they wait in, in order."""


class Outlook(NamedTuple):
    """Where a session would start now, by name; or why it would wait."""

    nodes: Sequence[str]
    why: Why | None


class ExplanationDesk:
    """Answers why sessions wait; asks for one pass at a time."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._view: QueueView | None = None
        self._lock = asyncio.Lock()
        self._explainer: Explainer | None = None
        self._queue: Mapping[str, PendingSession] = {}
        self._waits: Mapping[str, Waits] = {}
        self._nodes: Mapping[str, str] = {}
        self._windows: Mapping[str, str] = {}
        self._is_slow = False
        self._until = 0.0

    async def explain(
        self, platform: Platform, principal: Principal, session_id: str
    ) -> Why:
        """Say why a session waits, to somebody who may see it."""
        async with platform.database.read() as connection:
            record = await get_allowed(
                connection, principal, session_id, Action.READ_SESSION
            )
            asked = await _read_asked(connection, record)
            room = await tell_room(connection, record)
        told = Why(session=record.id, status=record.status, reasons=[record.reason])
        if record.status is not SessionStatus.PENDING:
            return replace(told, hangs_on=room or "it does not wait in the queue")
        async with self._lock:
            explainer = await self._look(platform, is_known=session_id in self._queue)
            found = await asyncio.to_thread(_ask, explainer, asked, self._waits)
            # As they are in this pass: others may ask for the next one meanwhile.
            session, nodes = self._queue.get(session_id), self._nodes
            through = self._name_waiting(found)
            windows = self._name_windows(principal)
        if session is None and (left := self._seconds_left()):
            told_later = "it has come since the queue was last looked at"
            return replace(told, hangs_on=f"{told_later}; ask again in {left} seconds")
        if found is None or session is None:
            return replace(told, hangs_on="it starts with the scheduler's next pass")
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        return tell_why(asked, found, Seen(session, nodes, name, through, windows))

    async def tell_owners(self, platform: Platform, choose: Choose) -> list[Why]:
        """Say why those whom *choose* picks wait, as their owners may know it.

        After a moment no more are told: the others may be picked again.
        """
        async with self._lock:
            explainer = await self._look(platform, is_known=False)
            known = {} if self._view is None else self._view.records
            records = [known[i] for i in choose(explainer.lines) if i in known]
            async with platform.database.read() as connection:
                asked = [await _read_asked(connection, r) for r in records]
            queue, nodes, waits = self._queue, self._nodes, self._waits
            found = await asyncio.to_thread(
                lambda: _ask_all(explainer, asked, waits, self._clock)
            )
            paths = [self._name_waiting(explanation) for explanation in found]
        told = []
        for one, explanation, path in zip(asked, found, paths, strict=False):
            if explanation is None:
                continue
            after = explainer.find_running(explanation.after)
            own = after is not None and after.owner_id == one.record.owner_id
            name = await _name_of(platform, after) if own else ""
            seen = Seen(queue[one.record.id], nodes, name, path)
            told.append(tell_why(one, explanation, seen))
        return told

    async def consider(
        self,
        platform: Platform,
        principal: Principal,
        record: SessionRecord,
        session: PendingSession,
    ) -> Outlook:
        """Say what would become of a session that is not in the queue."""
        async with platform.database.read() as connection:
            asked = await _read_asked(connection, record)
        async with self._lock:
            if self._view is None:
                self._view = QueueView(platform)
            is_known = self._view.knows(record)
            if not is_known:
                if left := self._seconds_left():
                    raise TooManyRequestsError(
                        f"the queue is long: ask again in {left} seconds",
                        retry_after=left,
                    )
                self._until = 0.0  # no pass before this one knows of its limits
                self._view.invite(record)
            explainer = await self._look(platform, is_known=is_known)
            verdict = await asyncio.to_thread(
                explainer.consider,
                session,
                _options(asked, session),
            )
            nodes = self._nodes
            windows = self._name_windows(principal)
        found = verdict.explanation
        if found is None:
            return Outlook([nodes[node] for node in verdict.nodes], None)
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        why = tell_why(asked, found, Seen(session, nodes, name, (), windows))
        return Outlook((), replace(why, session=""))

    @asynccontextmanager
    async def viewing(self, platform: Platform) -> AsyncIterator[QueueView]:
        """Lend the view of the queue, as it is now, to one at a time."""
        async with self._lock:
            if self._view is None:
                self._view = QueueView(platform)
            await self._view.refresh()
            yield self._view

    async def _look(self, platform: Platform, *, is_known: bool) -> Explainer:
        """Return what a pass says that is recent enough to know of the session."""
        known, began = self._explainer, self._clock()
        is_enough = is_known or self._is_slow
        if known is not None and is_enough and began < self._until:
            return known
        if self._view is None:
            self._view = QueueView(platform)
        await self._view.refresh()
        snapshot = self._view.snapshot()
        if snapshot.nodes and not snapshot.running:
            async with platform.database.read() as connection:
                running = await load_running(connection)
            snapshot = replace(snapshot, running=running)
        explainer = await asyncio.to_thread(Explainer, snapshot)
        self._keep(explainer, snapshot)
        self._waits = _list_waits(self._view, self._queue)
        ended = self._clock()
        took = ended - began
        size = len(snapshot.queue) + len(snapshot.nodes)
        self._is_slow = took > _QUICK_SECONDS and size > _SMALL
        self._until = ended + max(KEPT_SECONDS, took * _KEPT_TIMES)
        return explainer

    def _seconds_left(self) -> int:
        """Return for how long no pass is made for who is not in the last one."""
        if self._explainer is None or not self._is_slow:
            return 0
        return max(0, ceil(self._until - self._clock()))

    def _name_waiting(self, found: Explanation | None) -> Sequence[str]:
        """Name those that wait and are waited for: they are their owner's, too."""
        known = {} if self._view is None else self._view.records
        through = () if found is None else found.through
        return [known[i].name if i in known else "another one" for i in through]

    def _name_windows(self, principal: Principal) -> Mapping[str, str]:
        return self._windows if can(principal, _READ_RESERVATIONS) else {}

    def _keep(self, explainer: Explainer, snapshot: Snapshot) -> None:
        self._explainer = explainer
        self._queue = {session.id: session for session in snapshot.queue}
        self._nodes = {node.id: node.name for node in snapshot.nodes}
        windows: dict[str, list[str]] = {}
        for window in snapshot.windows:
            windows.setdefault(tell_window(window), []).append(window.name)
        self._windows = {text: " and ".join(names) for text, names in windows.items()}


def _ask(
    explainer: Explainer, asked: Asked, waits: Mapping[str, Waits]
) -> Explanation | None:
    return explainer.explain(
        asked.record.id,
        _options(asked, explainer.find_waiting(asked.record.id)),
        waits=waits.get(asked.record.id),
        others=waits,
    )


def _options(asked: Asked, session: PendingSession | None) -> Options:
    """Say what could be otherwise with a session."""
    stopped = "" if session is None else session.hold
    return Options(
        groups=tuple(asked.groups),
        least=asked.least,
        timed=asked.record.is_batch,
        leaves_hold=bool(stopped) and stopped == asked.group_hold,
    )


def _list_waits(
    view: QueueView, queue: Mapping[str, PendingSession]
) -> dict[str, Waits]:
    """Return who waits for others, or for its time, and for nothing else."""
    found = {}
    for record in view.records.values():
        firsts = view.unmet.get(record.id, ())
        if record.id in queue and (firsts or record.starts_at is not None):
            waits = _waits_of(record, firsts, queue[record.id])
            if waits is not None:
                found[record.id] = waits
    return found


def _waits_of(
    record: SessionRecord, firsts: Sequence[Dependency], session: PendingSession
) -> Waits | None:
    """Return what *session* waits for, unless something else holds it up, too."""
    begins = LONG_AGO if record.starts_at is None else record.starts_at
    both = {tell_waits(record, firsts, moment) for moment in (LONG_AGO, begins)}
    if not session.hold or session.hold not in both:
        return None
    ids = tuple(first.id for first in firsts)
    return Waits(firsts=ids, moment=int(begins.timestamp()))


def _ask_all(
    explainer: Explainer,
    asked: Iterable[Asked],
    waits: Mapping[str, Waits],
    clock: Callable[[], float],
) -> list[Explanation | None]:
    """Explain one after the other, at least one, until that has taken long enough."""
    found: list[Explanation | None] = []
    until = clock() + _QUICK_SECONDS
    for one in asked:
        found.append(_ask(explainer, one, waits))
        if clock() >= until:
            break
    return found


async def _read_asked(connection: AsyncConnection, record: SessionRecord) -> Asked:
    targets = [record.domain_id, record.project_id]
    if record.keypair_id is not None:
        targets.append(record.keypair_id)
    opened = await list_allowed(connection, targets)
    kind = SessionType(record.type)
    groups = {
        g.id: g.name
        for g in opened
        if g.is_active and g.is_public and kind in g.options.allowed_session_types
    }
    least = {"cpu": 1, "mem": record.shmem + 1}
    if record.image_id is not None:
        for image in (await load_images(connection, [record.image_id])).values():
            least.update(parse_slots(image.minimum).items())
            beside = parse_amount("mem", image.minimum.get("mem", 0))
            least["mem"] = max(record.shmem + 1, beside + record.shmem)
    group_hold, frozen = await _read_group_holds(connection, record, groups)
    groups = {i: name for i, name in groups.items() if i not in frozen}
    return Asked(record, groups, least, group_hold)


async def _read_group_holds(
    connection: AsyncConnection, record: SessionRecord, groups: Iterable[str]
) -> tuple[str, set[str]]:
    """Tell what its group holds up if nothing else does, and which others would."""
    alone = replace(record, resource_group_id=None)
    moved = [replace(record, id=g, resource_group_id=g) for g in groups]
    found = await load_holds(connection, [record, *moved])
    if (await load_holds(connection, [alone])).get(record.id):
        return "", set()
    return found.pop(record.id, ""), set(found)


async def _name_visible(
    platform: Platform, principal: Principal, running: RunningSession | None
) -> str:
    """Return the name of a session that somebody may see; others' stay unnamed."""
    if running is None:
        return ""
    domain = next((i for kind, i in running.scopes if kind is ScopeKind.DOMAIN), "")
    if not can(principal, Action.READ_SESSION, Target(running.owner_id, domain)):
        return ""
    return await _name_of(platform, running)


async def _name_of(platform: Platform, running: RunningSession | None) -> str:
    if running is None:
        return ""
    async with platform.database.read() as connection:
        try:
            return (await get_record(connection, running.id)).name
        except NotFoundError:
            return ""
