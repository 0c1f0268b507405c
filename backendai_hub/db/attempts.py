"""Writing down what the scheduler has tried, and reading it back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.attempts import Attempt, Phase, Result, shape_of
from backendai_hub.core.times import format_time
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AttemptRow


class Tried(msgspec.Struct, frozen=True):
    """The end of one attempt or several: the same one as before, or a new one."""

    session_id: str
    result: Result
    message: str
    attempts: int = 1
    phase: Phase = Phase.PLACEMENT


async def note_attempts(tx: Transaction, tried: Sequence[Tried]) -> None:
    """Write these down, one for each session; like ones in a row become one.

    The sessions are locked by whoever calls this.
    """
    if not tried:
        return
    last = await _last(tx.connection, {t.session_id for t in tried})
    again, new = [], []
    for attempt in tried:
        shape = shape_of(attempt.message)
        before = last.get(attempt.session_id)
        if before is not None and before[1:] == (attempt.phase, attempt.result, shape):
            again.append(
                {"row": before[0], "words": attempt.message, "more": attempt.attempts}
            )
            continue
        new.append(
            {
                "session_id": attempt.session_id,
                "phase": str(attempt.phase),
                "result": str(attempt.result),
                "shape": shape,
                "message": attempt.message,
                "attempts": attempt.attempts,
                "first_at": tx.now,
                "last_at": tx.now,
            }
        )
    if again:
        await tx.execute(
            update(AttemptRow)
            .where(AttemptRow.id == bindparam("row"))
            .values(
                message=bindparam("words"),
                attempts=AttemptRow.attempts + bindparam("more"),
                last_at=tx.now,
            ),
            again,
        )
    if new:
        await tx.execute(insert(AttemptRow), new)


_NEWEST: Final = select(
    AttemptRow.session_id,
    AttemptRow.id,
    AttemptRow.phase,
    AttemptRow.result,
    AttemptRow.shape,
).where(
    AttemptRow.id.in_(
        select(func.max(AttemptRow.id))
        .where(AttemptRow.session_id.in_(bindparam("ids", expanding=True)))
        .group_by(AttemptRow.session_id)
    )
)


async def _last(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, tuple[int, str, str, str]]:
    rows = await connection.execute(_NEWEST, {"ids": list(ids)})
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}


async def list_attempts(
    connection: AsyncConnection, session_id: str, *, after: int, limit: int
) -> list[Attempt]:
    """List what has been tried for a session behind number *after*, oldest first."""
    rows = await connection.execute(
        select(AttemptRow.__table__)
        .where(AttemptRow.session_id == session_id, AttemptRow.id > after)
        .order_by(AttemptRow.id)
        .limit(limit)
    )
    return [
        Attempt(
            id=row.id,
            phase=Phase(row.phase),
            result=Result(row.result),
            message=row.message,
            attempts=row.attempts,
            first_at=format_time(row.first_at) or "",
            last_at=format_time(row.last_at) or "",
        )
        for row in rows
    ]
