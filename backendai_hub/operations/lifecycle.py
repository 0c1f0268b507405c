"""Moving sessions along their states: the one place where resources are freed."""

from __future__ import annotations

from typing import Any

from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import (
    TERMINAL,
    WAITING_WORDS,
    SessionResult,
    SessionStatus,
)
from backendai_hub.db import agents, batch, ledger, sessions
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord

_KINDS = {
    SessionStatus.SCHEDULED: EventKind.SESSION_SCHEDULED,
    SessionStatus.RUNNING: EventKind.SESSION_STARTED,
    SessionStatus.RESCHEDULING: EventKind.SESSION_RESCHEDULING,
    SessionStatus.PENDING: EventKind.SESSION_REQUEUED,
    SessionStatus.TERMINATING: EventKind.SESSION_TERMINATING,
    SessionStatus.TERMINATED: EventKind.SESSION_TERMINATED,
    SessionStatus.ERROR: EventKind.SESSION_FAILED,
    SessionStatus.CANCELLED: EventKind.SESSION_CANCELLED,
}

_LEAVING = TERMINAL | {SessionStatus.TERMINATING, SessionStatus.RESCHEDULING}
"""In these, a session's containers are asked to be removed."""

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
    asked to be removed; all of it in the same transaction. A batch session that ends
    without saying how has failed, unless it never began.
    """
    begun = record.scheduled_at is not None or record.requeues > 0
    if status in TERMINAL and record.is_batch and begun:
        changes.setdefault("result", str(SessionResult.FAILURE))
    moved = await sessions.move_session(tx, record, status, reason=reason, **changes)
    if status in TERMINAL:
        await _free(tx, record)
        await sessions.drop_secret(tx, record.id)
        tx.wake("scheduler", "batch")
    if record.agent_id is not None and status in _LEAVING:
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


async def give_up(
    tx: Transaction,
    record: SessionRecord,
    reason: str,
    *,
    has_stopped: bool = False,
    **changes: Any,
) -> SessionRecord:
    """End an attempt that is lost: the session starts again if it may, or has failed.

    Unless what ran is known to have stopped, it waits outside of the queue, and keeps
    its slots, until :func:`start_again` is told.
    """
    if not record.may_start_again:
        return await move(tx, record, SessionStatus.ERROR, reason, **changes)
    if has_stopped:  # the ledger is locked before the node's row, as in placing
        await _free(tx, record)
    following = f"{reason}; {WAITING_WORDS[SessionStatus.RESCHEDULING]}"
    record = await move(tx, record, SessionStatus.RESCHEDULING, following)
    return await start_again(tx, record) if has_stopped else record


async def start_again(tx: Transaction, record: SessionRecord) -> SessionRecord:
    """Put a session back into the queue whose attempt is *known* to have stopped.

    The caller knows: the node has confirmed that the container is gone, or the lease
    has run out under which it ran. Only here the session lets go of its slots and of
    its containers; what is still heard of those changes nothing any more.
    """
    attempt, why = record.requeues + 1, record.reason.split(";", 1)[0]
    await _free(tx, record)
    await batch.leave_behind(tx, record.id)
    tx.wake("scheduler")
    return await move(
        tx,
        record,
        SessionStatus.PENDING,
        f"attempt {attempt} of {record.max_attempts} was lost ({why})",
        agent_id=None,
        scheduled_at=None,
        started_at=None,
        exit_code=None,
        requeues=record.requeues + 1,
    )


async def _free(tx: Transaction, record: SessionRecord) -> None:
    await ledger.free_allocations(tx, record.id, record.scopes, system=record.is_system)


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
