"""No state lasts for ever: what stays past its deadline ends with a reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.durations import describe_duration
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import (
    STARTING,
    TERMINAL,
    WAITING_WORDS,
    SessionStatus,
)
from backendai_hub.core.times import tell_time
from backendai_hub.db import agents, containers, deadlines, session_lists, sessions
from backendai_hub.db.deadlines import Allowance
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.clusters import progress_of
from backendai_hub.operations.lifecycle import explain, give_up, move
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import expire

STOPPING: Final = WAITING_WORDS[SessionStatus.TERMINATING]


async def end_overdue(platform: Platform) -> int:
    """End every session that has outstayed its state; return how many.

    A session whose node does not answer is left as it is, with that reason: what
    the node is doing cannot be known, so its slots stay held.
    """
    async with platform.database.read() as connection:
        overdue = await session_lists.list_overdue(
            connection, platform.database.clock()
        )
        known = await agents.list_agents(connection) if overdue else []
    nodes = {agent.id: agent for agent in known}
    ended = 0
    for record in overdue:
        async with platform.database.transaction() as tx:
            now = await sessions.get_record(tx.connection, record.id, lock=True)
            if now.revision != record.revision or now.status in TERMINAL:
                continue
            if now.status is SessionStatus.RESERVED:
                await expire(tx, now)
                continue
            behind = [nodes[i] for i in await _find_behind(tx, now) if i in nodes]
            silent = [n for n in behind if n.status is not AgentStatus.ALIVE]
            if silent:
                name = silent[0].name
                words = f"waiting for {name}, which does not answer"
                await explain(tx, now, _keep_why(now) + words)
                continue
            await give_up(tx, now, _reason(now, behind[0].name if behind else ""))
            ended += 1
    return ended


async def _find_behind(tx: Transaction, record: SessionRecord) -> list[str]:
    """Find the nodes that a session waits for, the one that is furthest behind first.

    That is its own; of a cluster, those whose containers are not where all should be.
    """
    if not record.is_cluster:
        return [record.agent_id or ""]
    members = await containers.list_members(tx.connection, record.id)
    ending = record.status not in STARTING
    behind = [m for m in members if not m.has_left]
    if not ending:
        behind.sort(key=lambda m: progress_of(m.state))
    return list(dict.fromkeys(m.agent_id for m in behind))


def _keep_why(record: SessionRecord) -> str:
    """Return why a session leaves, which is told when it has left, or nothing."""
    why = record.reason.split(";", 1)[0]
    return "" if record.status in STARTING or not why else f"{why}; "


def _reason(record: SessionRecord, node: str) -> str:
    words = WAITING_WORDS.get(record.status, str(record.status))
    return f"{node or 'its node'} did not get past this in time: {words}"


# --- what policies and resource groups allow ---------------------------------------


class _Rule(NamedTuple):
    """A time that somebody allows: for which state, and what follows it."""

    status: SessionStatus
    following: SessionStatus
    load: Callable[[AsyncConnection, str | None], Awaitable[list[Allowance]]]
    words: Callable[[Allowance], str]
    limited: str
    unlimited: str


def _outlived(allowance: Allowance) -> str:
    return (
        f"reached the longest lifetime of {describe_duration(allowance.seconds)} that"
        f" the keypair policy {allowance.giver} allows; {STOPPING}"
    )


def _waited(allowance: Allowance) -> str:
    return (
        f"waited longer than {describe_duration(allowance.seconds)}, the pending"
        f" timeout of the resource group {allowance.giver}"
    )


_RULES: Final = (
    _Rule(
        SessionStatus.RUNNING,
        SessionStatus.TERMINATING,
        deadlines.list_lifetimes,
        _outlived,
        "ends by itself at {due}",
        "does not end by itself any more",
    ),
    _Rule(
        SessionStatus.PENDING,
        SessionStatus.CANCELLED,
        deadlines.list_pending_times,
        _waited,
        "waits at the longest until {due}",
        "may wait as long as it takes",
    ),
)


def _tell_limit(rule: _Rule, due: datetime | None) -> str:
    return rule.limited.format(due=tell_time(due)) if due else rule.unlimited


async def end_expired(platform: Platform) -> int:
    """End what has had the time it is allowed, and show the others when theirs ends.

    Policies and groups are asked anew each time, so that a change of them counts at
    once, for what runs already as well. Returns how many sessions have been ended.
    """
    ended = 0
    for rule in _RULES:
        async with platform.database.read() as connection:
            allowances = await rule.load(connection, None)
        now = platform.database.clock()
        for allowance in allowances:
            over = allowance.due is not None and allowance.due <= now
            if not over and allowance.due == allowance.deadline_at:
                continue
            async with platform.database.transaction() as tx:
                ended += await _judge(tx, rule, allowance.session_id)
    return ended


async def _judge(tx: Transaction, rule: _Rule, session_id: str) -> bool:
    """Decide on one session, with what is true in this transaction."""
    record = await sessions.get_record(tx.connection, session_id, lock=True)
    if record.status is not rule.status:
        return False
    allowed = await rule.load(tx.connection, session_id)
    due = allowed[0].due if allowed else None
    if due is not None and due <= tx.now:
        await move(tx, record, rule.following, rule.words(allowed[0]))
        return True
    if due != record.deadline_at:
        await sessions.change_session(tx, record, deadline_at=due)
        tx.record(
            Event(
                kind=EventKind.SESSION_PROGRESS,
                text=_tell_limit(rule, due),
                session_id=record.id,
                owner_id=record.owner_id,
                agent_id=record.agent_id,
                status=record.status,
            )
        )
    return False
