"""A node that is drained after a plan was made takes nothing of that plan."""

from __future__ import annotations

from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.stops import DrainRequest, drain_agent, undrain_agent
from backendai_hub.scheduling.plan import plan
from tests.factories import add_node, submit
from tests.tenants import ROOT


async def test_what_was_decided_before_a_drain_is_not_carried_out(platform: Platform):
    await add_node(platform, "n1")
    await submit(platform)
    decided = plan(await load_snapshot(platform))
    assert len(decided.placements) == 1
    await drain_agent(platform, ROOT, "n1", DrainRequest(reason="new fans"))
    assert await apply_plan(platform, decided) == 0
    await undrain_agent(platform, ROOT, "n1")
    assert await apply_plan(platform, decided) == 1
