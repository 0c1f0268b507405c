"""Finding, counting and listing sessions as the operations see them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.sessions import DEADLINES, QUEUED, SessionStatus, SessionType
from backendai_hub.db.naming import is_named
from backendai_hub.db.sessions import SessionRecord, is_live, record_of
from backendai_hub.db.tables import ContainerRow, SessionRow, UserRow

_QUEUED = [str(status) for status in QUEUED]
_AT_A_TIME = 500
"""How many rows are read before others have their turn in this process."""
_TABLE = SessionRow.__table__


_MADE: Final = select(_TABLE).where(
    SessionRow.owner_id == bindparam("owner"),
    (SessionRow.idempotency_key == bindparam("key"))
    | ((SessionRow.server == bindparam("server")) & is_live()),
)


async def find_made(
    connection: AsyncConnection, owner_id: str, *, key: str, server: str | None
) -> list[SessionRecord]:
    """Find what an idempotency key has made, and who lives on a Hub server."""
    # No session that lives has a server of no name, nor a key of none.
    asked = {"owner": owner_id, "key": key, "server": server}
    rows = await connection.execute(_MADE, asked)
    return [record_of(row._mapping) for row in rows]


async def find_by_key(
    connection: AsyncConnection, owner_id: str, key: str
) -> SessionRecord | None:
    """Find the session that an idempotency key has made."""
    query = select(_TABLE).where(
        SessionRow.owner_id == owner_id, SessionRow.idempotency_key == key
    )
    row = (await connection.execute(query)).first()
    return None if row is None else record_of(row._mapping)


async def find_live(
    connection: AsyncConnection,
    owner_id: str,
    *,
    server: str | None = None,
    name: str | None = None,
) -> SessionRecord | None:
    """Find a user's live session by its Hub server or by its name."""
    query = select(_TABLE).where(SessionRow.owner_id == owner_id, is_live())
    if server is not None:
        query = query.where(SessionRow.server == server)
    if name is not None:
        query = query.where(SessionRow.name == name)
    row = (await connection.execute(query)).first()
    return None if row is None else record_of(row._mapping)


async def list_ended_servers(
    connection: AsyncConnection, servers: Sequence[str]
) -> dict[tuple[str, str], datetime]:
    """For each (user, server) without a live session, tell when its last one ended."""
    live = func.max(case((is_live(), 1), else_=0))
    query = (
        select(UserRow.name, SessionRow.server, func.max(SessionRow.ended_at))
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(SessionRow.server.in_(servers))
        .group_by(UserRow.name, SessionRow.server)
        .having(live == 0)
    )
    rows = await connection.execute(query)
    return {
        (user, server): ended
        for user, server, ended in rows
        if server is not None and ended is not None
    }


_LIVE_OF: Final = select(func.count()).where(
    SessionRow.owner_id == bindparam("owner"), is_live()
)


async def count_live(connection: AsyncConnection, owner_id: str) -> int:
    """Count a user's sessions that have not ended."""
    return int(await connection.scalar(_LIVE_OF, {"owner": owner_id}) or 0)


async def count_on_agent(connection: AsyncConnection, agent_id: str) -> int:
    """Count the live sessions that have a container on a node."""
    query = (
        select(func.count(SessionRow.id.distinct()))
        .join(ContainerRow, ContainerRow.session_id == SessionRow.id)
        .where(ContainerRow.agent_id == agent_id, ~ContainerRow.former, is_live())
    )
    return int(await connection.scalar(query) or 0)


async def sum_waiting(
    connection: AsyncConnection, owner_id: str, keypair_id: str | None = None
) -> tuple[int, dict[str, int]]:
    """Count a user's waiting sessions (of one keypair), and sum what they ask for."""
    query = select(SessionRow.slots, SessionRow.cluster_size).where(
        SessionRow.owner_id == owner_id,
        SessionRow.status.in_(_QUEUED),
    )
    if keypair_id is not None:
        query = query.where(SessionRow.keypair_id == keypair_id)
    rows = await connection.execute(query)
    asked: dict[str, int] = {}
    count = 0
    for slots, size in rows:
        count += 1
        for slot, amount in slots.items():
            asked[slot] = asked.get(slot, 0) + amount * size
    return count, asked


async def list_records(
    connection: AsyncConnection, statuses: Iterable[SessionStatus]
) -> list[SessionRecord]:
    """List the sessions in these states: by priority, the oldest first."""
    query = (
        select(_TABLE)
        .where(SessionRow.status.in_([str(s) for s in statuses]))
        .order_by(SessionRow.priority.desc(), SessionRow.created_at, SessionRow.id)
    )
    return [record_of(r._mapping) for r in await connection.execute(query)]


async def list_waiting(
    connection: AsyncConnection, ids: Collection[str] | None = None
) -> list[SessionRecord]:
    """List the sessions that wait to be placed, of these or of all, in any order."""
    query = select(_TABLE).where(SessionRow.status.in_(_QUEUED), SessionRow.ready)
    if ids is not None:
        query = query.where(is_named(SessionRow.id, ids))
    found: list[SessionRecord] = []
    for rows in (await connection.execute(query)).partitions(_AT_A_TIME):
        found += [record_of(r._mapping) for r in rows if ids is None or r.id in ids]
        await asyncio.sleep(0)  # others have their turn
    return found


async def list_since(
    connection: AsyncConnection, since: datetime, most: int
) -> list[SessionRecord]:
    """List who has had room since then, or waits still: at most so many, newest first.

    The platform's own sessions are not among them.
    """
    placed = SessionRow.scheduled_at.is_not(None) & (
        SessionRow.ended_at.is_(None) | (SessionRow.ended_at > since)
    )
    query = (
        select(_TABLE)
        .where(
            placed | SessionRow.status.in_(_QUEUED),
            SessionRow.type != str(SessionType.SYSTEM),
            SessionRow.ready,
        )
        .order_by(SessionRow.created_at.desc(), SessionRow.id.desc())
        .limit(most)
    )
    return [record_of(row._mapping) for row in await connection.execute(query)]


async def list_reasons(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, str]:
    """Return why those of these sessions wait that are in the queue, by id."""
    query = select(SessionRow.id, SessionRow.reason).where(SessionRow.id.in_(ids))
    rows = await connection.execute(
        query.where(SessionRow.status == str(SessionStatus.PENDING))
    )
    return {row.id: row.reason for row in rows}


async def list_on_servers(
    connection: AsyncConnection, statuses: Iterable[SessionStatus]
) -> list[Any]:
    """List what is told to JupyterHub of the sessions in these states."""
    query = (
        select(
            SessionRow.id,
            UserRow.name.label("owner"),
            SessionRow.server,
            SessionRow.image,
            SessionRow.name,
            SessionRow.slots,
            SessionRow.shmem,
            SessionRow.idempotency_key,
            SessionRow.ready,
            SessionRow.agent_id,
            SessionRow.created_at,
            SessionRow.cluster_size,
            SessionRow.cluster_mode,
            SessionRow.cluster_strategy,
        )
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(
            SessionRow.status.in_([str(s) for s in statuses]),
            SessionRow.server.is_not(None),
        )
        .order_by(SessionRow.priority.desc(), SessionRow.created_at, SessionRow.id)
    )
    return list(await connection.execute(query))


async def list_overdue(
    connection: AsyncConnection, now: datetime
) -> list[SessionRecord]:
    """List the sessions on their way whose state has outlived its deadline.

    What runs or waits in the queue has other rules (:mod:`.deadlines`).
    """
    bounded = [str(s) for s, seconds in DEADLINES.items() if seconds is not None]
    query = select(_TABLE).where(
        SessionRow.status.in_(bounded), SessionRow.deadline_at < now
    )
    return [record_of(r._mapping) for r in await connection.execute(query)]
