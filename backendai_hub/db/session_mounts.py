"""Which folders sessions have, and which sessions have a folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.mounts import Mount
from backendai_hub.core.sessions import QUEUED
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import is_live
from backendai_hub.db.tables import SessionMountRow, SessionRow, UserRow


class LiveMount(msgspec.Struct, frozen=True, kw_only=True):
    """A live session that has a folder."""

    session_id: str
    session: str
    owner_id: str
    owner: str


async def insert_mounts(
    tx: Transaction, session_id: str, mounts: Sequence[Mount]
) -> None:
    """Store what a session mounts."""
    if not mounts:
        return
    await tx.execute(
        insert(SessionMountRow),
        [
            {
                **msgspec.structs.asdict(mount),
                "permission": str(mount.permission),
                "session_id": session_id,
                "position": position,
            }
            for position, mount in enumerate(mounts)
        ],
    )


_MOUNTS: Final = (
    select(
        SessionMountRow.session_id,
        *(getattr(SessionMountRow, name) for name in Mount.__struct_fields__),
    )
    .where(SessionMountRow.session_id.in_(bindparam("ids", expanding=True)))
    .order_by(SessionMountRow.session_id, SessionMountRow.position)
)


async def load_mounts(
    connection: AsyncConnection, session_ids: Collection[str]
) -> dict[str, list[Mount]]:
    """Return what sessions mount, by their ids, each in its order."""
    found: dict[str, list[Mount]] = {}
    if not session_ids:
        return found
    rows = await connection.execute(_MOUNTS, {"ids": list(session_ids)})
    for values in rows.mappings():
        mount = {k: v for k, v in values.items() if k != "session_id"}
        found.setdefault(values["session_id"], []).append(msgspec.convert(mount, Mount))
    return found


async def list_live(
    connection: AsyncConnection, folder_id: str, limit: int = 1000
) -> list[LiveMount]:
    """List the live sessions that have a folder, the oldest first."""
    having = select(SessionMountRow.session_id).where(
        SessionMountRow.folder_id == folder_id
    )
    rows = await connection.execute(
        select(
            SessionRow.id.label("session_id"),
            SessionRow.name.label("session"),
            SessionRow.owner_id,
            UserRow.name.label("owner"),
        )
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(SessionRow.id.in_(having), is_live())
        .order_by(SessionRow.created_at, SessionRow.id)
        .limit(limit)
    )
    return [msgspec.convert(dict(row), LiveMount) for row in rows.mappings()]


async def count_live(
    connection: AsyncConnection, folder_ids: Collection[str]
) -> dict[str, int]:
    """Count the live sessions that have each of these folders."""
    if not folder_ids:
        return {}
    rows = await connection.execute(
        select(
            SessionMountRow.folder_id,
            func.count(SessionMountRow.session_id.distinct()),
        )
        .join(SessionRow, SessionRow.id == SessionMountRow.session_id)
        .where(SessionMountRow.folder_id.in_(list(folder_ids)), is_live())
        .group_by(SessionMountRow.folder_id)
    )
    return {str(key): int(count) for key, count in rows}


# --- what comes by itself, of sessions that wait -----------------------------------

_WAITING: Final = [str(status) for status in QUEUED]


async def list_needed(connection: AsyncConnection) -> list[tuple[str, str]]:
    """List the resource groups in which sessions wait, with hosts they may not need."""
    row = SessionMountRow
    query = (
        select(SessionRow.resource_group_id, row.host)
        .join(row, row.session_id == SessionRow.id)
        .where(SessionRow.status.in_(_WAITING), row.automatic)
        .distinct()
    )
    found = await connection.execute(query)
    return sorted((group, host) for group, host in found if group is not None)


async def list_holding(
    connection: AsyncConnection, group_id: str, host: str
) -> list[str]:
    """List the sessions that wait in a group with something unasked of a host."""
    row = SessionMountRow
    query = (
        select(SessionRow.id)
        .join(row, row.session_id == SessionRow.id)
        .where(
            SessionRow.status.in_(_WAITING),
            SessionRow.resource_group_id == group_id,
            row.automatic,
            row.host == host,
        )
        .distinct()
    )
    return sorted(await connection.scalars(query))


async def drop_automatic(tx: Transaction, session_id: str, host: str) -> list[str]:
    """Take from a session what comes by itself from a host; return the names."""
    row = SessionMountRow
    gone = await tx.execute(
        delete(row)
        .where(row.session_id == session_id, row.automatic, row.host == host)
        .returning(row.folder_name)
    )
    return sorted(name for (name,) in gone)
