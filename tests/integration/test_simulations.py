"""Administrators ask what would be, of how things are and of traces."""

from __future__ import annotations

import asyncio

import pytest

from backendai_hub.api.simulations import AddedRequest, SimulationRequest
from backendai_hub.core.errors import (
    InvalidRequestError,
    TooLargeError,
    TooManyRequestsError,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.simulations import SimulationDesk, export_trace
from tests.factories import add_node, make_device, prepare, start, submit

CPUS = {"cpu": 4000, "mem": 4 << 30}


async def fill(platform: Platform) -> None:
    """Two nodes; one is full, and who waits asks for more than there is."""
    await prepare(platform)
    for name in ("node-1", "node-2"):
        await add_node(platform, name, devices=[make_device(slots=CPUS)])
    await start(platform, "alice", server="a", slots={"cpu": 4, "mem": "1g"})
    await start(platform, "alice", server="b", slots={"cpu": 3, "mem": "1g"})
    await submit(platform, "bob", server="c", slots={"cpu": 2, "mem": "1g"})


async def test_how_things_are_is_simulated_before_and_after_a_change(
    platform: Platform,
):
    await fill(platform)
    before = await load_snapshot(platform)

    report = await SimulationDesk().simulate(
        platform,
        SimulationRequest(
            drain=["node-2"], add=[AddedRequest(slots={"cpu": 1}, run_time=60)]
        ),
    )

    # Nobody says when they end, so all run for the usual four hours.
    assert report.assumed == 2
    assert report.before.waits.longest == 14_400
    assert report.after is not None
    assert report.after.waits.longest == 14_400
    [added] = report.added
    assert (added.request, added.seconds) == ("cpu=1", 14_400)
    assert await load_snapshot(platform) == before, "nothing is changed"


async def test_what_is_added_starts_at_once_where_there_is_room(platform: Platform):
    await fill(platform)
    report = await SimulationDesk().simulate(
        platform, SimulationRequest(add=[AddedRequest(slots={"cpu": 1})])
    )
    assert [added.seconds for added in report.added] == [0]


async def test_an_exported_trace_goes_as_things_go(platform: Platform):
    await fill(platform)
    exported = await export_trace(platform)
    assert (exported.nodes, exported.requests) == (2, 1)
    assert '"owner":"bob"' in exported.trace
    desk = SimulationDesk()
    replayed = await desk.simulate(platform, SimulationRequest(trace=exported.trace))
    live = await desk.simulate(platform, SimulationRequest())
    assert replayed.before.waits == live.before.waits
    assert replayed.after is None


async def test_a_platform_without_nodes_and_names_nobody_has_are_refused(
    platform: Platform,
):
    desk = SimulationDesk()
    with pytest.raises(InvalidRequestError, match="there is no node"):
        await desk.simulate(platform, SimulationRequest())
    await fill(platform)
    for wrong, said in (
        (SimulationRequest(drain=["x"]), "drain: there is no node 'x'"),
        (SimulationRequest(sequencer="best"), "best"),
        (SimulationRequest(placement="nicest"), "nicest"),
        (SimulationRequest(weights={"nobody": 2}), "nobody of 'nobody'"),
        (SimulationRequest(trace="[]"), "line 1"),
        (SimulationRequest(add=[AddedRequest(slots={"tpu": 1})]), "no node has 'tpu'"),
        (SimulationRequest(add=[AddedRequest(slots={})]), "it asks for nothing"),
        (
            SimulationRequest(
                add=[AddedRequest(slots={"cpu": 1}, resource_group="none")]
            ),
            "no node is in 'none'",
        ),
    ):
        with pytest.raises(InvalidRequestError, match=said):
            await desk.simulate(platform, wrong)


async def test_one_is_made_at_a_time_and_none_for_long(platform: Platform):
    await fill(platform)
    desk = SimulationDesk(most_seconds=-1)
    with pytest.raises(TooLargeError, match="takes too long"):
        await desk.simulate(platform, SimulationRequest())
    both = await asyncio.gather(
        *(SimulationDesk.simulate(desk, platform, SimulationRequest()) for _ in "ab"),
        return_exceptions=True,
    )
    assert {type(one) for one in both} == {TooLargeError, TooManyRequestsError}
