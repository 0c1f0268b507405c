"""No state lasts for ever: what waits past its deadline ends with a reason."""

from __future__ import annotations

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.sessions import TERMINAL, WAITING_WORDS, SessionStatus
from backendai_hub.db import agents, sessions
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.lifecycle import explain, move
from backendai_hub.operations.platform import Platform


async def end_overdue(platform: Platform) -> int:
    """End every session that has outstayed its state; return how many.

    A session whose node does not answer is left as it is, with that reason: what
    the node is doing cannot be known, so its slots stay held.
    """
    async with platform.database.read() as connection:
        overdue = await sessions.list_overdue(connection, platform.database.clock())
        nodes = {a.id: a for a in await agents.list_agents(connection)}
    ended = 0
    for record in overdue:
        node = nodes.get(record.agent_id or "")
        answers = node is None or node.status is AgentStatus.ALIVE
        name = "its node" if node is None else node.name
        async with platform.database.transaction() as tx:
            now = await sessions.get_record(tx.connection, record.id, lock=True)
            if now.revision != record.revision or now.status in TERMINAL:
                continue
            if not answers:
                await explain(tx, now, f"waiting for {name}, which does not answer")
                continue
            await move(tx, now, SessionStatus.ERROR, _reason(now, name))
            ended += 1
    return ended


def _reason(record: SessionRecord, node: str) -> str:
    words = WAITING_WORDS.get(record.status, str(record.status))
    return f"{node} did not get past this in time: {words}"
