"""Moving sessions along their states: the one place where resources are freed."""

from __future__ import annotations

from typing import Any

from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import TERMINAL, SessionStatus
from backendai_hub.db import agents, ledger, sessions
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord

_KINDS = {
    SessionStatus.SCHEDULED: EventKind.SESSION_SCHEDULED,
    SessionStatus.RUNNING: EventKind.SESSION_STARTED,
    SessionStatus.TERMINATING: EventKind.SESSION_TERMINATING,
    SessionStatus.TERMINATED: EventKind.SESSION_TERMINATED,
    SessionStatus.ERROR: EventKind.SESSION_FAILED,
    SessionStatus.CANCELLED: EventKind.SESSION_CANCELLED,
}

ROUTES = "routes"
"""The name of the versioned route table."""


async def move(
    tx: Transaction,
    record: SessionRecord,
    status: SessionStatus,
    reason: str,
    *,
    actor: str = "system",
    **changes: Any,
) -> SessionRecord:
    """Move a session on, free what it no longer holds, and record the fact.

    *record* must have been read in this transaction with a lock. An ended session
    frees its slots (once), loses its route and its secret, and its containers are
    asked to be removed; all of it in the same transaction.
    """
    moved = await sessions.move_session(tx, record, status, reason=reason, **changes)
    if status in TERMINAL:
        await ledger.free_allocations(
            tx, record.id, record.scopes, system=record.is_system
        )
        await sessions.drop_secret(tx, record.id)
        tx.wake("scheduler")
    if record.agent_id is not None and status in TERMINAL | {SessionStatus.TERMINATING}:
        generation = await agents.bump_generation(tx, record.agent_id)
        await sessions.want_absent(tx, record.id, generation)
    if SessionStatus.RUNNING in {status, record.status}:
        await agents.bump_version(tx, ROUTES)
    tx.wake("attachments")
    tx.record(
        Event(
            kind=_KINDS.get(status, EventKind.SESSION_PROGRESS),
            text=reason,
            actor=actor,
            session_id=record.id,
            owner_id=record.owner_id,
            agent_id=moved.agent_id,
            status=status,
        )
    )
    return moved


async def explain(tx: Transaction, record: SessionRecord, reason: str) -> None:
    """Give a waiting session a new reason, if it is a new one."""
    if record.reason == reason:
        return
    await sessions.change_session(tx, record, reason=reason)
    tx.record(
        Event(
            kind=EventKind.SESSION_WAITING,
            text=reason,
            session_id=record.id,
            owner_id=record.owner_id,
            agent_id=record.agent_id,
            status=record.status,
        )
    )
