"""What follows for batch sessions from ends, silence, time, and one another."""

from __future__ import annotations

from datetime import datetime, timedelta

from backendai_hub.api.agents import ContainerReport, ContainerState
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.batch import TIMEOUT_CODE, TIMEOUT_MARGIN, describe_timeout
from backendai_hub.core.sessions import (
    STARTING,
    TERMINAL,
    WAITING_WORDS,
    SessionResult,
    SessionStatus,
)
from backendai_hub.db import agents, batch, containers, sessions
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.lifecycle import (
    give_up,
    leave,
    move,
    start_again,
    wind_up,
)
from backendai_hub.operations.platform import Platform

_S = SessionStatus
STOPPING = WAITING_WORDS[_S.TERMINATING]


async def end_attempt(
    tx: Transaction, record: SessionRecord, seen: ContainerReport
) -> None:
    """Draw the consequences of the end of a batch session's container.

    With an exit code its command has ended, and so has the session: that counts even
    if the node had no time to say before that it ran. Without one the attempt is lost.
    What is gone from its node has stopped for certain; what has only ended may be
    looked at again by the node, so the next attempt waits until it is gone.
    """
    gone = seen.state is ContainerState.GONE
    if record.status is _S.RESCHEDULING:
        if gone:
            await start_again(tx, record)
        return
    if seen.state is ContainerState.EXITED and seen.exit_code is not None:
        await _finish(tx, record, seen)
        return
    reason = seen.reason or "its container disappeared from the node"
    await give_up(tx, record, reason, has_stopped=gone, exit_code=seen.exit_code)


async def _finish(
    tx: Transaction, record: SessionRecord, seen: ContainerReport
) -> None:
    if record.status in STARTING and not record.is_cluster:
        record = await move(tx, record, _S.RUNNING, "")
    success = seen.exit_code == 0
    usual = f"its command ended with code {seen.exit_code}"
    end = wind_up if record.is_cluster else move
    await end(
        tx,
        record,
        _S.TERMINATED,
        "its command has succeeded" if success else seen.reason or usual,
        exit_code=seen.exit_code,
        result=str(SessionResult.SUCCESS if success else SessionResult.FAILURE),
    )


async def end_timed_out(platform: Platform) -> int:
    """Stop what has outlived its time although its node should have ended it."""
    async with platform.database.read() as connection:
        overdue = await batch.list_timed_out(
            connection, platform.database.clock(), margin=TIMEOUT_MARGIN
        )
    ended = 0
    for session_id in overdue:
        async with platform.database.transaction() as tx:
            record = await sessions.get_record(tx.connection, session_id, lock=True)
            if record.status is not _S.RUNNING or record.batch_timeout is None:
                continue
            words = describe_timeout(record.batch_timeout)
            await move(
                tx,
                record,
                _S.TERMINATING,
                f"{words}; {STOPPING}",
                exit_code=TIMEOUT_CODE,
            )
            ended += 1
    return ended


async def cancel_dependents(platform: Platform) -> int:
    """Cancel what waits for sessions that cannot succeed any more, and so on.

    What is cancelled here cannot succeed either, so it is looked again until nothing
    is left that waits in vain.
    """
    cancelled = 0
    while True:
        async with platform.database.read() as connection:
            vain = await batch.list_vain(connection)
        done = 0
        for session_id in sorted({dependency.waiting for dependency in vain}):
            async with platform.database.transaction() as tx:
                done += await _cancel(tx, session_id)
        if not done:
            return cancelled
        cancelled += done


async def _cancel(tx: Transaction, session_id: str) -> bool:
    record = await sessions.get_record(tx.connection, session_id, lock=True)
    if record.status is not _S.PENDING:
        return False
    vain = await batch.list_vain(tx.connection, session_id)
    if not vain:
        return False
    names = ", ".join(f"{d.name} ({d.status})" for d in vain)
    await move(tx, record, _S.CANCELLED, f"cannot start: {names} has not succeeded")
    return True


async def requeue_stranded(platform: Platform, listening_since: datetime) -> int:
    """Start elsewhere what ran on nodes that have been silent for a lease and more.

    A node's silence is counted from *listening_since* at the earliest, so that a jump
    of our clock does not shorten anybody's lease. Returns how many attempts were over.
    """
    settings = platform.settings
    patience = timedelta(seconds=settings.lease_seconds + settings.lease_margin_seconds)
    silent_since = platform.database.clock() - patience
    if listening_since > silent_since:
        return 0
    async with platform.database.read() as connection:
        stranded = await batch.list_stranded(connection, silent_since)
    moved = 0
    for session_id in stranded:
        async with platform.database.transaction() as tx:
            moved += await _leave(tx, session_id, silent_since)
    return moved


async def _leave(tx: Transaction, session_id: str, silent_since: datetime) -> bool:
    record = await sessions.get_record(tx.connection, session_id, lock=True)
    if record.agent_id is None or record.status in TERMINAL:
        return False
    name = await _strand(tx, record, silent_since)
    if name is None:
        return False
    reason = f"node {name} has not answered for longer than its lease"
    members = await containers.list_members(tx.connection, record.id)
    if record.status is _S.TERMINATING:
        if all(member.is_over for member in members):
            words = record.reason.split(";", 1)[0]
            ending = _S(record.ends_as or _S.TERMINATED)
            await move(tx, record, ending, f"{words}; {reason}")
    elif record.status is _S.PREEMPTED:
        await leave(tx, record)
    elif record.status is _S.RESCHEDULING:
        if all(member.has_left for member in members):
            await start_again(tx, record)
    else:
        await give_up(tx, record, reason, has_stopped=True)
    return True


async def _strand(
    tx: Transaction, record: SessionRecord, silent_since: datetime
) -> str | None:
    """Count what runs on silent nodes as stopped; return the name of such a node."""
    found = None
    for member in await containers.list_members(tx.connection, record.id):
        if member.has_left:
            continue
        # Should it be heard of right now: its lease has run out all the same.
        node = await agents.get_agent(tx.connection, member.agent_id)
        last = node.last_seen_at
        if node.status is not AgentStatus.LOST or last is None or last > silent_since:
            continue
        await containers.note_state(
            tx, member.id, "stranded", reason=f"node {node.name} does not answer"
        )
        found = node.name
    return found
