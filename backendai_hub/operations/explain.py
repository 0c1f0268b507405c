"""Why a session waits: read off a pass over what waits and runs at the moment.

A pass is kept for a second, or ten times as long as it took to make, so that asking
costs a busy service at most a tenth of one processor, whoever asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from math import ceil
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.core.access import Action, Principal, Target, can
from backendai_hub.core.errors import NotFoundError, TooManyRequestsError
from backendai_hub.core.nouns import Verb, noun_of
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus, SessionType
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.core.times import format_time
from backendai_hub.db.batch import Dependency, list_unmet, tell_waits
from backendai_hub.db.groups import list_allowed
from backendai_hub.db.images import load_images
from backendai_hub.db.running import load_running
from backendai_hub.db.sessions import SessionRecord, get_record
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption_views import tell_room
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.sessions import get_allowed
from backendai_hub.scheduling.changes import Change, tell_change
from backendai_hub.scheduling.explain import Explainer, Explanation, Waits
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
_BEFORE: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Asked(NamedTuple):
    """What has to be known of a session beside what the scheduler knows."""

    record: SessionRecord
    groups: Mapping[str, str]
    """The resource groups that it may wait in, by id, with their names."""
    least: Mapping[str, int]
    firsts: Sequence[Dependency] = ()
    """The batch sessions that it waits for."""


class Seen(NamedTuple):
    """What an answer is put into words with: a session, and names."""

    session: PendingSession
    nodes: Mapping[str, str]
    after: str = ""
    """The session that has to end, as far as the reader may know."""
    windows: Mapping[str, str] = {}
    """What is said of reservations, and the names of those the reader may know."""


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
            found = await asyncio.to_thread(_ask, explainer, asked, self._queue)
            # As they are in this pass: others may ask for the next one meanwhile.
            session, nodes = self._queue.get(session_id), self._nodes
            windows = self._name_windows(principal)
        if session is None and (left := self._seconds_left()):
            told_later = "it has come since the queue was last looked at"
            return replace(told, hangs_on=f"{told_later}; ask again in {left} seconds")
        if found is None or session is None:
            return replace(told, hangs_on="it starts with the scheduler's next pass")
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        return _tell(asked, found, Seen(session, nodes, name, windows))

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
            queue, nodes = self._queue, self._nodes
            found = await asyncio.to_thread(
                lambda: _ask_all(explainer, asked, queue, self._clock)
            )
        told = []
        for one, explanation in zip(asked, found, strict=False):
            if explanation is None:
                continue
            after = explainer.find_running(explanation.after)
            own = after is not None and after.owner_id == one.record.owner_id
            name = await _name_of(platform, after) if own else ""
            told.append(
                _tell(one, explanation, Seen(queue[one.record.id], nodes, name))
            )
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
                groups=tuple(asked.groups),
                least=asked.least,
            )
            nodes = self._nodes
            windows = self._name_windows(principal)
        found = verdict.explanation
        if found is None:
            return Outlook([nodes[node] for node in verdict.nodes], None)
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        why = _tell(asked, found, Seen(session, nodes, name, windows))
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
    explainer: Explainer, asked: Asked, queue: Mapping[str, PendingSession]
) -> Explanation | None:
    session = queue.get(asked.record.id)
    return explainer.explain(
        asked.record.id,
        groups=tuple(asked.groups),
        least=asked.least,
        waits=None if session is None else _waits_of(asked, session),
    )


def _waits_of(asked: Asked, session: PendingSession) -> Waits | None:
    """Return which sessions *session* waits for, if nothing but its time does, too."""
    record, firsts = asked.record, asked.firsts
    begins = _BEFORE if record.starts_at is None else record.starts_at
    both = {tell_waits(record, firsts, moment) for moment in (_BEFORE, begins)}
    if not firsts or session.hold not in both:
        return None
    ids = tuple(first.id for first in firsts)
    return Waits(firsts=ids, moment=int(begins.timestamp()))


def _ask_all(
    explainer: Explainer,
    asked: Iterable[Asked],
    queue: Mapping[str, PendingSession],
    clock: Callable[[], float],
) -> list[Explanation | None]:
    """Explain one after the other, at least one, until that has taken long enough."""
    found: list[Explanation | None] = []
    until = clock() + _QUICK_SECONDS
    for one in asked:
        found.append(_ask(explainer, one, queue))
        if clock() >= until:
            break
    return found


def _tell(asked: Asked, found: Explanation, seen: Seen) -> Why:
    session = seen.session
    names = {**seen.nodes, **asked.groups}
    told = Why(
        session=found.session,
        status=SessionStatus.PENDING,
        position=found.position,
        waiting=found.waiting,
        reasons=[_name_windows(reason, seen.windows) for reason in found.reasons],
        changes=[_tell_change(c, session, names) for c in found.changes],
        starts_at=_moment(found.starts),
        at_the_earliest=found.at_the_earliest,
        hangs_on=tell_forecast(found, seen.after),
    )
    moment = asked.record.starts_at
    if moment is None or session.hold != tell_waits(asked.record, (), _BEFORE):
        return told
    # Nothing but its own time holds it up so far.
    return replace(
        told,
        starts_at=format_time(moment),
        at_the_earliest=True,
        hangs_on="if there is room for it then",
    )


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
    firsts = await list_unmet(connection, record.id) if record.is_batch else ()
    return Asked(record, groups, least, firsts)


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


def _tell_change(
    change: Change, session: PendingSession, names: Mapping[str, str]
) -> PossibleChange:
    group = change.group
    return PossibleChange(
        text=tell_change(change, session, names),
        yours=change.is_own,
        slots=None if change.request is None else change.request.to_text(),
        resource_group=None if group is None else names.get(group),
    )


def tell_forecast(found: Explanation, after: str) -> str:
    """Say what a start hangs on; ``after`` is a name that the reader may know."""
    if found.starts is None:
        return found.unknown
    who = f"session {after}" if after else "a session"
    if found.window:
        who = "a reservation"
    said = f"when {who}{f' on {found.node}' if found.node else ''} ends"
    if found.at_the_earliest and found.ahead:
        said += f"; {found.ahead} before it in the queue may make it later"
    elif found.ahead:
        said += f", with {found.ahead} before it in the queue"
    return said


def _name_windows(text: str, windows: Mapping[str, str]) -> str:
    for said, name in windows.items():
        text = text.replace(said, f"{name} ({said})")
    return text


def _moment(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return format_time(datetime.fromtimestamp(seconds, UTC))
