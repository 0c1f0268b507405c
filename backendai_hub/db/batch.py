"""What batch sessions wait for, what became of them, and what they have printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, delete, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.clusters import MAIN_HOST
from backendai_hub.core.sessions import (
    STARTING,
    TERMINAL,
    SessionResult,
    SessionStatus,
    SessionType,
)
from backendai_hub.core.times import tell_time
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.tables import (
    AgentRow,
    ContainerRow,
    DependencyRow,
    LogRow,
    SessionRow,
)

_S = SessionStatus
_BATCH = SessionRow.type == str(SessionType.BATCH)
_WAITING, _FIRST = aliased(SessionRow), aliased(SessionRow)
_SUCCEEDED = (_FIRST.status == str(_S.TERMINATED)) & (
    _FIRST.result == str(SessionResult.SUCCESS)
)


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """A session that another one waits for, as it is now."""

    waiting: str
    id: str
    name: str
    status: SessionStatus
    result: str

    @property
    def has_succeeded(self) -> bool:
        """Whether nobody has to wait for it any more."""
        return self.status is _S.TERMINATED and self.result == SessionResult.SUCCESS


async def insert_dependencies(
    tx: Transaction, session_id: str, dependencies: list[str]
) -> None:
    """Let a new session wait for others."""
    if dependencies:
        await tx.execute(
            insert(DependencyRow),
            [{"session_id": session_id, "depends_on": d} for d in dependencies],
        )


async def find_session(
    connection: AsyncConnection, owner_id: str, reference: str
) -> Dependency | None:
    """Find a user's batch session by id or name: the live one, else the latest."""
    ended = SessionRow.status.in_([str(s) for s in TERMINAL])
    query = (
        select(
            SessionRow.id.label("waiting"),
            SessionRow.id,
            SessionRow.name,
            SessionRow.status,
            SessionRow.result,
        )
        .where(
            SessionRow.owner_id == owner_id,
            _BATCH,
            (SessionRow.id == reference) | (SessionRow.name == reference),
        )
        .order_by(
            (SessionRow.id != reference),
            ended,
            SessionRow.created_at.desc(),
            SessionRow.id.desc(),
        )
        .limit(1)
    )
    row = (await connection.execute(query)).first()
    return None if row is None else _dependency(row._mapping)


async def list_vain(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Dependency]:
    """List what the queue, or one session of it, waits for although it is over."""
    ended = _FIRST.status.in_([str(status) for status in TERMINAL])
    return await _list_unmet(connection, session_id, ended)


async def list_unmet(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Dependency]:
    """List what the queue, or one session of it, waits for."""
    return await _list_unmet(connection, session_id, true())


async def _list_unmet(
    connection: AsyncConnection, session_id: str | None, which: ColumnElement[bool]
) -> list[Dependency]:
    query = (
        select(
            DependencyRow.session_id.label("waiting"),
            _FIRST.id,
            _FIRST.name,
            _FIRST.status,
            _FIRST.result,
        )
        .join(_WAITING, _WAITING.id == DependencyRow.session_id)
        .join(_FIRST, _FIRST.id == DependencyRow.depends_on)
        .where(_WAITING.status == str(_S.PENDING), ~_SUCCEEDED, which)
        .order_by(DependencyRow.session_id, _FIRST.name, _FIRST.id)
    )
    if session_id is not None:
        query = query.where(DependencyRow.session_id == session_id)
    rows = await connection.execute(query)
    return [_dependency(row._mapping) for row in rows]


def _dependency(values: Any) -> Dependency:
    return Dependency(**{**values, "status": SessionStatus(values["status"])})


async def list_unfinished(
    connection: AsyncConnection, ids: Sequence[str]
) -> list[Dependency]:
    """List those of some sessions that have not succeeded yet."""
    if not ids:
        return []
    query = (
        select(
            _FIRST.id.label("waiting"),
            _FIRST.id,
            _FIRST.name,
            _FIRST.status,
            _FIRST.result,
        )
        .where(_FIRST.id.in_(ids), ~_SUCCEEDED)
        .order_by(_FIRST.name, _FIRST.id)
    )
    rows = await connection.execute(query)
    return [_dependency(row._mapping) for row in rows]


def tell_waits(
    record: SessionRecord, unmet: Iterable[Dependency], now: datetime
) -> str:
    """Say which other sessions, or which moment, a session waits for; or nothing."""
    reasons = []
    named = ", ".join(f"{first.name} ({first.status})" for first in unmet)
    if named:
        reasons.append(f"waits for {named} to succeed")
    if record.starts_at is not None and now < record.starts_at:
        moment = tell_time(record.starts_at)
        reasons.append(f"is to start at {moment} at the earliest")
    return "; ".join(reasons)


def tell_all_waits(
    records: Iterable[SessionRecord],
    unmet: Mapping[str, Sequence[Dependency]],
    now: datetime,
) -> dict[str, str]:
    """Say which of these wait for other sessions or for a time, and for which."""
    told = (
        (record.id, tell_waits(record, unmet.get(record.id, ()), now))
        for record in records
        if record.is_batch
    )
    return {session_id: text for session_id, text in told if text}


async def load_unmet(
    connection: AsyncConnection, records: Iterable[SessionRecord]
) -> dict[str, list[Dependency]]:
    """Return the sessions that any of these waits for, by who does."""
    unmet: dict[str, list[Dependency]] = {}
    if any(record.is_batch for record in records):
        for first in await list_unmet(connection):
            unmet.setdefault(first.waiting, []).append(first)
    return unmet


async def list_timed_out(
    connection: AsyncConnection, now: datetime, *, margin: float
) -> list[str]:
    """List the batch sessions that have run longer than they may, by a margin."""
    query = select(
        SessionRow.id, SessionRow.started_at, SessionRow.batch_timeout
    ).where(
        SessionRow.status == str(_S.RUNNING),
        SessionRow.batch_timeout.is_not(None),
        SessionRow.started_at.is_not(None),
    )
    rows = await connection.execute(query.order_by(SessionRow.id))
    return [
        session_id
        for session_id, started, seconds in rows
        if started is not None
        and started + timedelta(seconds=(seconds or 0) + margin) <= now
    ]


async def list_stranded(
    connection: AsyncConnection, silent_since: datetime
) -> list[str]:
    """List what may run elsewhere and is on a node not heard of since a moment."""
    statuses = {*STARTING, _S.RUNNING, _S.PREEMPTED, _S.RESCHEDULING, _S.TERMINATING}
    query = (
        select(SessionRow.id)
        .join(ContainerRow, ContainerRow.session_id == SessionRow.id)
        .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
        .where(
            _BATCH,
            ~ContainerRow.former,
            ContainerRow.gone_at.is_(None),
            ContainerRow.state != "stranded",
            SessionRow.max_attempts > 1,
            SessionRow.status.in_([str(s) for s in statuses]),
            AgentRow.status == str(AgentStatus.LOST),
            AgentRow.last_seen_at <= silent_since,
        )
        .distinct()
        .order_by(SessionRow.id)
    )
    return [str(row.id) for row in await connection.execute(query)]


async def leave_behind(tx: Transaction, session_id: str) -> None:
    """Note that a session's containers belong to an attempt that is over."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.session_id == session_id, ~ContainerRow.former)
        .values(former=True)
    )


# --- logs ------------------------------------------------------------------------


class StoredLog(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a container has printed."""

    content: bytes
    clipped: bool


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a session, and where it is to be asked about."""

    container_id: str
    agent_id: str
    agent_url: str
    is_gone: bool


async def put_log(
    tx: Transaction, *, container_id: str, session_id: str, log: StoredLog
) -> None:
    """Keep what a container has printed; a repetition replaces what was kept."""
    await tx.execute(delete(LogRow).where(LogRow.container_id == container_id))
    await tx.execute(
        insert(LogRow).values(
            container_id=container_id,
            session_id=session_id,
            content=log.content,
            clipped=log.clipped,
            stored_at=tx.now,
        )
    )


async def get_log(connection: AsyncConnection, container_id: str) -> StoredLog | None:
    """Return what is kept of a container's output."""
    query = select(LogRow.content, LogRow.clipped)
    row = (
        await connection.execute(query.where(LogRow.container_id == container_id))
    ).first()
    if row is None:
        return None
    return StoredLog(content=bytes(row.content), clipped=row.clipped)


async def list_attempts(
    connection: AsyncConnection, session_id: str, host: str = MAIN_HOST
) -> list[Attempt]:
    """List which containers have been *host* in a session, the first attempt first."""
    query = (
        select(ContainerRow.id, ContainerRow.gone_at, AgentRow.id, AgentRow.url)
        .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
        .where(ContainerRow.session_id == session_id, ContainerRow.host == host)
        .order_by(ContainerRow.created_at, ContainerRow.id)
    )
    return [
        Attempt(
            container_id=container,
            agent_id=agent,
            agent_url=url,
            is_gone=gone is not None,
        )
        for container, gone, agent, url in await connection.execute(query)
    ]
