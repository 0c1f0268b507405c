"""Administrators ask what would be, of how things are and of traces."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from backendai_hub.api.simulations import (
    AddedRequest,
    PreemptionChange,
    QuotaRequest,
    SimulationRequest,
    TraceQuery,
)
from backendai_hub.core.errors import (
    InvalidRequestError,
    TooLargeError,
    TooManyRequestsError,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import HoldRequest, hold_session
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.scenarios import export_trace, load_scenario
from backendai_hub.operations.simulations import SimulationDesk, answer
from backendai_hub.scheduling.scenario import from_trace
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.trace import read_trace
from tests.factories import (
    Clock,
    add_node,
    make_device,
    prepare,
    schedule,
    start,
    submit,
)
from tests.jobs import ask, begin, end
from tests.preemptions import opt_in
from tests.tenants import ROOT

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


async def test_who_waits_for_more_than_its_time_does_not_ask_at_that_time(
    platform: Platform,
):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots=CPUS)])
    later = platform.database.clock() + timedelta(hours=2)
    first = await ask(platform, slots={"cpu": 4, "mem": "1g"})
    timed = await ask(platform, name="timed", starts_at=later)
    held = await ask(platform, name="held", starts_at=later)
    await ask(platform, name="behind", starts_at=later, dependencies=[first.id])
    await hold_session(platform, ROOT, held.id, HoldRequest(reason="to look at"))

    scenario = await load_scenario(platform, 60)
    told = {arrival.session.id: arrival.at for arrival in scenario.arrivals}

    assert told.pop(first.id) == scenario.begins
    assert told == {timed.id: int(later.timestamp())}


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


async def test_how_far_it_is_can_be_asked_meanwhile(platform: Platform):
    await fill(platform)
    desk = SimulationDesk()
    assert not desk.progress.running
    heard = []

    def listen(part: float) -> None:
        desk._advance(part)
        heard.append(part)

    scenario = await load_scenario(platform, 60)
    answer(SimulationRequest(sequencer="lifo"), scenario, lambda: False, listen)
    assert heard == sorted(heard)
    assert heard[0] < 0.5 < heard[-1] == 1.0
    making = asyncio.ensure_future(desk.simulate(platform, SimulationRequest()))
    await asyncio.sleep(0)
    assert desk.progress.running
    await making
    assert not desk.progress.running


async def test_rules_of_a_group_in_which_nobody_waits_count_for_who_is_added(
    platform: Platform,
):
    await add_node(platform, "node-1", devices=[make_device(slots=CPUS)])
    await opt_in(platform, victim_scope="resource-group")
    await begin(platform, slots={"cpu": 4, "mem": "1g"})

    urgent = AddedRequest(slots={"cpu": 1}, job_priority=3, run_time=60)
    desk = SimulationDesk()
    report = await desk.simulate(platform, SimulationRequest(add=[urgent]))
    assert [added.seconds for added in report.added] == [0]
    assert report.after is not None
    [one] = report.after.displacements
    assert (one.owner, one.by_owner, one.kind) == ("alice", "somebody", "priority")
    off = SimulationRequest(add=[urgent], preemption=PreemptionChange(enabled=False))
    quiet = await desk.simulate(platform, off)
    assert quiet.after is not None
    assert quiet.after.displaced == 0
    owed = QuotaRequest(scope="user", name="alice", maximum={"cpu": None, "mem": 0})
    with pytest.raises(InvalidRequestError, match="no user 'carol'"):
        await desk.simulate(
            platform, SimulationRequest(quotas=[replace(owed, name="carol")])
        )
    await desk.simulate(platform, SimulationRequest(quotas=[owed]))


async def test_what_has_run_goes_again_as_it_went(platform: Platform):
    clock = platform.database.clock = Clock()
    node = await add_node(platform, "node-1", devices=[make_device(slots=CPUS)])
    whole = {"cpu": 4, "mem": "1g"}
    ends = [await begin(platform, user="alice", slots=whole)]
    clock.pass_(2 * 86_400)
    for name in ("bob", "carol"):
        clock.pass_(10)
        ends.append(await ask(platform, name, slots=whole))
    # Alice goes on for 80 seconds, and each of the others works for a minute.
    for session, seconds in zip(ends, (80, 60, 60), strict=True):
        clock.pass_(seconds)
        await end(platform, node, session)
        await node.report()
        await schedule(platform)
    await ask(platform, "dave", slots=whole)

    exported = await export_trace(platform, TraceQuery(days=1, pseudonyms=True))
    assert (exported.nodes, exported.requests, exported.left_out) == (1, 3, 0)
    assert not [name for name in ("alice", "bob", "dave") if name in exported.trace]
    report = await SimulationDesk().simulate(
        platform, SimulationRequest(trace=exported.trace)
    )
    assert report.recorded is not None
    assert (report.recorded.sessions, report.recorded.longest) == (2, 140)
    scenario = from_trace(read_trace(exported.trace))
    recorded = {a.session.id: a.waited for a in scenario.arrivals if a.run_time}
    replayed = {w.session: w.seconds for w in simulate(scenario).waits}
    assert {i: replayed[i] for i in recorded} == recorded


async def test_who_ran_on_a_device_that_is_gone_is_left_out_and_counted(
    platform: Platform,
):
    clock = platform.database.clock = Clock()
    node = await add_node(platform, "node-1", devices=[make_device(slots=CPUS)])
    first = await begin(platform, slots={"cpu": 4, "mem": "1g"})
    clock.pass_(2 * 86_400)
    await end(platform, node, first)
    await node.report()
    node.devices = [make_device("other", slots=CPUS)]
    await node.report()

    exported = await export_trace(platform, TraceQuery(days=1))
    assert (exported.nodes, exported.requests, exported.left_out) == (1, 0, 1)
