"""A clock that is set back hides no silence."""

from __future__ import annotations

from backendai_hub.core.agents import AgentStatus
from backendai_hub.db import agents
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.nodes import NodesReconciler
from tests.factories import Clock, add_node

HOUR = 3600


async def test_nodes_that_fall_silent_are_noticed_after_the_clock_was_set_back(
    platform: Platform,
):
    clock = platform.database.clock
    assert isinstance(clock, Clock)
    await add_node(platform, "gone-before")
    gone_after = await add_node(platform, "gone-after")
    lives = await add_node(platform, "lives")
    nodes = NodesReconciler(platform, Signals())
    await nodes.reconcile()
    clock.pass_(-HOUR)
    await nodes.reconcile()
    await gone_after.report()

    async def read() -> dict[str, AgentStatus]:
        async with platform.database.read() as connection:
            return {a.name: a.status for a in await agents.list_agents(connection)}

    found = await read()
    assert set(found.values()) == {AgentStatus.ALIVE}, "nobody has had time to report"
    for _ in range(int(platform.settings.lost_seconds) + 1):
        clock.pass_(1)
        await lives.report()
        await nodes.reconcile()
    assert await read() == {
        "gone-before": AgentStatus.LOST,
        "gone-after": AgentStatus.LOST,
        "lives": AgentStatus.ALIVE,
    }
