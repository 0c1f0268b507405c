"""Moving sessions along their states: the one place where resources are freed."""

from __future__ import annotations

from typing import Any

from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.preemptions import Ending, Fate
from backendai_hub.core.sessions import (
    TERMINAL,
    WAITING_WORDS,
    SessionResult,
    SessionStatus,
    was_stopped,
)
from backendai_hub.db import agents, batch, containers, ledger, preemptions, sessions
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord

_KINDS = {
    SessionStatus.RESERVED: EventKind.SESSION_RESERVED,
    SessionStatus.SCHEDULED: EventKind.SESSION_SCHEDULED,
    SessionStatus.RUNNING: EventKind.SESSION_STARTED,
    SessionStatus.PREEMPTED: EventKind.SESSION_PREEMPTED,
    SessionStatus.RESCHEDULING: EventKind.SESSION_RESCHEDULING,
    SessionStatus.PENDING: EventKind.SESSION_REQUEUED,
    SessionStatus.TERMINATING: EventKind.SESSION_TERMINATING,
    SessionStatus.TERMINATED: EventKind.SESSION_TERMINATED,
    SessionStatus.ERROR: EventKind.SESSION_FAILED,
    SessionStatus.CANCELLED: EventKind.SESSION_CANCELLED,
}

_LEAVING = TERMINAL | {
    SessionStatus.TERMINATING,
    SessionStatus.RESCHEDULING,
    SessionStatus.PREEMPTED,
}
"""In these, a session's containers are asked to be removed."""

_ENDINGS = {
    SessionStatus.PENDING: Ending.EXPIRED,
    SessionStatus.SCHEDULED: Ending.STARTED,
    SessionStatus.CANCELLED: Ending.CANCELLED,
    SessionStatus.ERROR: Ending.FAILED,
}
"""How a plan ends, by what follows for the session that room was kept for."""

_FATES = {
    SessionStatus.PENDING: Fate.REQUEUED,
    SessionStatus.TERMINATED: Fate.TERMINATED,
    SessionStatus.ERROR: Fate.FAILED,
}
"""What becomes of who had to make room, by what follows for it."""

_REACHED = {SessionStatus.RUNNING, SessionStatus.PREEMPTED}

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
    if status in TERMINAL and _has_failed(record, status, reason):
        changes.setdefault("result", str(SessionResult.FAILURE))
    if record.status is SessionStatus.PREEMPTED:
        changes.setdefault("ends_as", None)
    moved = await sessions.move_session(tx, record, status, reason=reason, **changes)
    await _note_preemption(tx, record, status)
    if status in TERMINAL:
        await _free(tx, record)
        await sessions.drop_secret(tx, record.id)
        tx.wake("scheduler", "batch")
    if record.agent_id is not None and status in _LEAVING:
        await _dismiss(tx, record)
    if not _REACHED.isdisjoint({status, record.status}):
        await agents.bump_version(tx, ROUTES)
    if status is SessionStatus.RUNNING and record.is_cluster and record.is_batch:
        # Its command has waited until all containers were there.
        await agents.bump_generation(tx, str(record.agent_id))
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


def _has_failed(record: SessionRecord, status: SessionStatus, reason: str) -> bool:
    """Tell whether what ends has failed if nothing else is known.

    So has a batch session that has begun, unless somebody stopped it on purpose.
    """
    begun = record.scheduled_at is not None or record.requeues + record.preemptions > 0
    unknown = record.result == SessionResult.UNDEFINED
    stopped = status is SessionStatus.TERMINATED and was_stopped(reason)
    return record.is_batch and begun and unknown and not stopped


async def _note_preemption(
    tx: Transaction, record: SessionRecord, status: SessionStatus
) -> None:
    """Note what becomes of a plan that makes room, on whichever side of it this is."""
    if record.status is SessionStatus.RESERVED:
        await preemptions.close_plans(tx, [record.id], _ENDINGS[status])
    was_leaving = record.status in {SessionStatus.PREEMPTED, SessionStatus.TERMINATING}
    if was_leaving and status in _FATES:
        await preemptions.note_left(tx, record.id, _FATES[status])


async def _dismiss(tx: Transaction, record: SessionRecord) -> None:
    """Ask every node that has containers of a session to remove them."""
    for agent_id in await containers.list_wanted_on(tx.connection, record.id):
        generation = await agents.bump_generation(tx, agent_id)
        await containers.want_absent(tx, record.id, agent_id, generation)


async def wind_up(
    tx: Transaction,
    record: SessionRecord,
    status: SessionStatus,
    reason: str,
    **changes: Any,
) -> SessionRecord:
    """End a session as *status* once none of its containers runs any more.

    A session of one container has ended with it. The others of a cluster are stopped
    first, and it holds what it has until they have.
    """
    members = await containers.list_members(tx.connection, record.id)
    stopping = record.status is SessionStatus.TERMINATING
    if stopping or all(member.is_over for member in members):
        return await move(tx, record, status, reason, **changes)
    following = f"{reason}; {WAITING_WORDS[SessionStatus.TERMINATING]}"
    changes["ends_as"] = str(status)
    return await move(tx, record, SessionStatus.TERMINATING, following, **changes)


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
    its slots, until :func:`start_again` is told. So does a cluster for all of its
    containers: ``has_stopped`` says of the others nothing.
    """
    if not record.may_start_again:
        if record.is_cluster:
            return await wind_up(tx, record, SessionStatus.ERROR, reason, **changes)
        return await move(tx, record, SessionStatus.ERROR, reason, **changes)
    if record.is_cluster:
        members = await containers.list_members(tx.connection, record.id)
        has_stopped = all(member.has_left for member in members)
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
    return await _put_back(
        tx,
        record,
        f"attempt {attempt} of {record.max_attempts} was lost ({why})",
        requeues=record.requeues + 1,
    )


async def leave(tx: Transaction, record: SessionRecord) -> bool:
    """Let a session that makes room have left, if nothing of it is there any more.

    It ends, or waits in the queue again: to have made room for somebody uses up none
    of its attempts. Returns whether it has left.
    """
    members = await containers.list_members(tx.connection, record.id)
    if not all(member.has_left for member in members):
        return False
    words = record.reason.split(";", 1)[0]
    if record.ends_as == SessionStatus.PENDING:
        await _put_back(
            tx,
            record,
            f"{words}; waiting in the queue again",
            preemptions=record.preemptions + 1,
        )
        return True
    code = members[0].exit_code if members else None
    await move(tx, record, SessionStatus.TERMINATED, words, exit_code=code)
    return True


async def _put_back(
    tx: Transaction, record: SessionRecord, reason: str, **counted: Any
) -> SessionRecord:
    await _free(tx, record)
    await batch.leave_behind(tx, record.id)
    tx.wake("scheduler")
    return await move(
        tx,
        record,
        SessionStatus.PENDING,
        reason,
        agent_id=None,
        scheduled_at=None,
        started_at=None,
        exit_code=None,
        ends_as=None,
        **counted,
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
