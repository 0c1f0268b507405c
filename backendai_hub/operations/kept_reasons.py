"""Storing why sessions wait, and how often they have been tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from backendai_hub.core.attempts import Result
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db import session_lists, sessions
from backendai_hub.db.attempts import Tried, note_attempts
from backendai_hub.operations.platform import Platform


async def explain(
    platform: Platform,
    reasons: Mapping[str, str],
    counts: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Store the reasons that have changed; return how many have.

    *counts* are how often each session has been tried since that was written down.
    Few enough that the transaction, which holds up others', is a short one.
    """
    async with platform.database.glance() as connection:
        known = await session_lists.list_reasons(connection, sorted(reasons))
    news = {i for i, reason in known.items() if reason != reasons[i]}
    if not news:
        return 0
    async with platform.database.transaction() as tx:
        records = await sessions.lock_records(tx.connection, news)
        # One that has just moved on needs no reason any more.
        waiting = [
            (record, reasons[record.id])
            for record in records.values()
            if record.status is SessionStatus.PENDING
        ]
        if not waiting:
            return 0
        await sessions.explain_sessions(tx, waiting)
        await note_attempts(
            tx,
            [
                Tried(record.id, Result.WAITING, reason, counts.get(record.id, 1))
                for record, reason in waiting
            ],
        )
        for record, reason in waiting:
            tx.record(
                Event(
                    kind=EventKind.SESSION_WAITING,
                    text=reason,
                    session_id=record.id,
                    owner_id=record.owner_id,
                    status=record.status,
                )
            )
        tx.wake("explanations")
    return len(waiting)


async def count_attempts(platform: Platform, tried: Sequence[Tried]) -> None:
    """Write down attempts that ended as those before them did."""
    async with platform.database.transaction() as tx:
        waiting = await sessions.lock_records(
            tx.connection, {t.session_id for t in tried}
        )
        await note_attempts(
            tx,
            [
                t
                for t in tried
                if t.session_id in waiting
                and waiting[t.session_id].status is SessionStatus.PENDING
            ],
        )
