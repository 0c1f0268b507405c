"""Keeping what each waiting session was told the last time, and reading it back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import Why
from backendai_hub.api.sessions import QueuePlace
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import ExplanationRow, SessionRow


async def load_explanations(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, Why]:
    """Read what those of these that wait in the queue were told the last time."""
    if not ids:
        return {}
    rows = await connection.execute(
        select(ExplanationRow.session_id, ExplanationRow.why)
        .join(SessionRow, SessionRow.id == ExplanationRow.session_id)
        .where(
            ExplanationRow.session_id.in_(ids),
            SessionRow.status == str(SessionStatus.PENDING),
        )
    )
    return {session_id: msgspec.convert(why, Why) for session_id, why in rows}


async def load_places(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, QueuePlace]:
    """Read where those of these stand in the queue of whom that is known."""
    told = await load_explanations(connection, ids)
    return {
        session_id: QueuePlace(position=why.position, waiting=why.waiting, at=why.at)
        for session_id, why in told.items()
        if why.position is not None and why.waiting is not None and why.at is not None
    }


async def save_explanations(tx: Transaction, told: Mapping[str, Why]) -> None:
    """Keep what these were told, in place of what they were told before.

    The sessions are locked by whoever calls this.
    """
    known = set(
        await tx.connection.scalars(
            select(ExplanationRow.session_id).where(
                ExplanationRow.session_id.in_(told.keys())
            )
        )
    )
    rows = [
        {"of_id": session_id, "new": msgspec.to_builtins(why)}
        for session_id, why in told.items()
    ]
    again = [row for row in rows if row["of_id"] in known]
    if again:
        await tx.execute(
            update(ExplanationRow)
            .where(ExplanationRow.session_id == bindparam("of_id"))
            .values(why=bindparam("new"), at=tx.now),
            again,
        )
    first = [
        {"session_id": row["of_id"], "why": row["new"], "at": tx.now}
        for row in rows
        if row["of_id"] not in known
    ]
    if first:
        await tx.execute(insert(ExplanationRow), first)
