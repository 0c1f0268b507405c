"""Reading and writing what operators have stopped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.operators import Stop, StopKind
from backendai_hub.db.engine import Transaction
from backendai_hub.db.naming import is_named
from backendai_hub.db.running import end_of
from backendai_hub.db.tables import ContainerRow, SessionRow, StopRow

_STOPS = StopRow.__table__


def _read(row: Any) -> Stop:
    values = dict(row._mapping)
    values["kind"] = StopKind(values["kind"])
    return Stop(**values)


async def list_stops(
    connection: AsyncConnection, targets: Collection[str]
) -> list[Stop]:
    """List which of these sessions, nodes and groups are stopped."""
    query = select(_STOPS).where(is_named(StopRow.target_id, targets))
    rows = await connection.execute(query)
    return [_read(row) for row in rows if row.target_id in targets]


async def list_stopped(connection: AsyncConnection, kind: StopKind) -> dict[str, Stop]:
    """Return everything of one kind that is stopped, by id."""
    rows = await connection.execute(select(_STOPS).where(StopRow.kind == str(kind)))
    return {stop.target_id: stop for stop in map(_read, rows)}


async def find_stop(
    connection: AsyncConnection, kind: StopKind, target_id: str
) -> Stop | None:
    """Return the stop of one thing, if it is stopped."""
    query = select(_STOPS).where(
        StopRow.kind == str(kind), StopRow.target_id == target_id
    )
    row = (await connection.execute(query)).first()
    return None if row is None else _read(row)


async def put_stop(tx: Transaction, stop: Stop) -> None:
    """Stop something, in place of what was said of it before; its row is locked."""
    await drop_stop(tx, stop.kind, stop.target_id)
    values = {**msgspec.structs.asdict(stop), "kind": str(stop.kind)}
    await tx.execute(
        insert(StopRow).values(values), ids=_stale_ids(stop.kind, stop.target_id)
    )


async def drop_stop(tx: Transaction, kind: StopKind, target_id: str) -> bool:
    """Let something go on; tell whether it was stopped."""
    gone = await tx.execute(
        delete(StopRow).where(
            StopRow.kind == str(kind), StopRow.target_id == target_id
        ),
        ids=_stale_ids(kind, target_id),
    )
    return bool(gone.rowcount)


def _stale_ids(kind: StopKind, target_id: str) -> Sequence[str] | None:
    """Return which nodes look different to the scheduler; None: a whole group's queue.

    A session that is held or released is changed itself in the same transaction.
    """
    if kind is StopKind.GROUP:
        return None
    return [target_id] if kind is StopKind.NODE else ()


class Left(msgspec.Struct, frozen=True):
    """What is left on a node: sessions, when the last ends, who does not say."""

    sessions: int
    last_end: datetime | None
    endless: int


async def count_left(
    connection: AsyncConnection, nodes: Collection[str]
) -> dict[str, Left]:
    """Count what still runs on nodes, and when it has to have ended."""
    query = (
        select(
            ContainerRow.agent_id,
            SessionRow.id,
            SessionRow.status,
            SessionRow.deadline_at,
            SessionRow.started_at,
            SessionRow.batch_timeout,
        )
        .join(SessionRow, SessionRow.id == ContainerRow.session_id)
        .where(ContainerRow.agent_id.in_(sorted(nodes)), ContainerRow.gone_at.is_(None))
        .distinct()
    )
    found: dict[str, list[datetime | None]] = {}
    for row in await connection.execute(query):
        found.setdefault(row.agent_id, []).append(end_of(row))
    return {
        node: Left(
            len(ends),
            max((end for end in ends if end is not None), default=None),
            sum(end is None for end in ends),
        )
        for node, ends in found.items()
    }
