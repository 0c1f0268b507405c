"""Why a session waits: read off a pass over what waits and runs at the moment.

A pass is kept for a second, or ten times as long as it took to make, so that asking
costs a busy service at most a tenth of one processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.core.access import Action, Principal, Target, can
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus, SessionType
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.db.batch import tell_waits
from backendai_hub.db.groups import list_allowed
from backendai_hub.db.images import load_images
from backendai_hub.db.running import load_running
from backendai_hub.db.sessions import SessionRecord, format_time, get_record
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption_views import tell_room
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.sessions import get_allowed
from backendai_hub.scheduling.changes import Change, tell_change
from backendai_hub.scheduling.explain import Explainer, Explanation
from backendai_hub.scheduling.snapshot import PendingSession, RunningSession, Snapshot

KEPT_SECONDS: Final = 1.0
_KEPT_TIMES: Final = 10.0
_BEFORE: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Asked(NamedTuple):
    """What has to be known of a session beside what the scheduler knows."""

    record: SessionRecord
    groups: Mapping[str, str]
    """The resource groups that it may wait in, by id, with their names."""
    least: Mapping[str, int]


class Outlook(NamedTuple):
    """Where a session would start now, by name; or why it would wait."""

    nodes: Sequence[str]
    why: Why | None


class ExplanationDesk:
    """Answers why sessions wait; asks for one pass at a time."""

    def __init__(self) -> None:
        self._view: QueueView | None = None
        self._lock = asyncio.Lock()
        self._explainer: Explainer | None = None
        self._queue: Mapping[str, PendingSession] = {}
        self._nodes: Mapping[str, str] = {}
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
            found = await asyncio.to_thread(
                explainer.explain,
                session_id,
                groups=tuple(asked.groups),
                least=asked.least,
            )
            # As they are in this pass: others may ask for the next one meanwhile.
            session, nodes = self._queue.get(session_id), self._nodes
        if found is None or session is None:
            return replace(told, hangs_on="it starts with the scheduler's next pass")
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        return _tell(asked, session, found, nodes, name)

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
            is_new = self._view.invite(record)
            explainer = await self._look(platform, is_known=not is_new)
            verdict = await asyncio.to_thread(
                explainer.consider,
                session,
                groups=tuple(asked.groups),
                least=asked.least,
            )
            nodes = self._nodes
        found = verdict.explanation
        if found is None:
            return Outlook([nodes[node] for node in verdict.nodes], None)
        after = explainer.find_running(found.after)
        name = await _name_visible(platform, principal, after)
        why = _tell(asked, session, found, nodes, name)
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
        clock = asyncio.get_running_loop().time
        known = self._explainer
        if known is not None and is_known and clock() < self._until:
            return known
        began = clock()
        if self._view is None:
            self._view = QueueView(platform)
        await self._view.refresh()
        snapshot = self._view.snapshot()
        if not snapshot.running:
            async with platform.database.read() as connection:
                running = await load_running(connection)
            snapshot = replace(snapshot, running=running)
        explainer = await asyncio.to_thread(Explainer, snapshot)
        self._keep(explainer, snapshot)
        took = clock() - began
        self._until = clock() + max(KEPT_SECONDS, took * _KEPT_TIMES)
        return explainer

    def _keep(self, explainer: Explainer, snapshot: Snapshot) -> None:
        self._explainer = explainer
        self._queue = {session.id: session for session in snapshot.queue}
        self._nodes = {node.id: node.name for node in snapshot.nodes}


def _tell(
    asked: Asked,
    session: PendingSession,
    found: Explanation,
    nodes: Mapping[str, str],
    after: str,
) -> Why:
    names = {**nodes, **asked.groups}
    told = Why(
        session=found.session,
        status=SessionStatus.PENDING,
        position=found.position,
        waiting=found.waiting,
        reasons=list(found.reasons),
        changes=[_tell_change(c, session, names) for c in found.changes],
        starts_at=_moment(found.starts),
        at_the_earliest=found.at_the_earliest,
        hangs_on=tell_forecast(found, after),
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
    return Asked(record, groups, least)


async def _name_visible(
    platform: Platform, principal: Principal, running: RunningSession | None
) -> str:
    """Return the name of a session that somebody may see; others' stay unnamed."""
    if running is None:
        return ""
    domain = next((i for kind, i in running.scopes if kind is ScopeKind.DOMAIN), "")
    if not can(principal, Action.READ_SESSION, Target(running.owner_id, domain)):
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
    said = f"when {who}{f' on {found.node}' if found.node else ''} ends"
    if found.at_the_earliest and found.ahead:
        said += f"; {found.ahead} before it in the queue may make it later"
    elif found.ahead:
        said += f", with {found.ahead} before it in the queue"
    return said


def _moment(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return format_time(datetime.fromtimestamp(seconds, UTC))
