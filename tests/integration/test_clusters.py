"""What is promised of sessions with several containers: all of them, or none."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from backendai_hub.api.agents import DesiredState
from backendai_hub.core.access import Caller
from backendai_hub.core.clusters import ClusterMode, ClusterStrategy
from backendai_hub.core.errors import (
    InvalidRequestError,
    LimitReachedError,
    NeverFitsError,
)
from backendai_hub.core.sessions import (
    OCCUPYING,
    TERMINAL,
    SessionResult,
    SessionStatus,
)
from backendai_hub.db.engine import Database
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.batch import requeue_stranded
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.nodes import judge_agents, load_assignments, load_routes
from backendai_hub.operations.placement import place
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.reports import accept_report
from backendai_hub.scheduling.plan import plan
from tests.crews import Crew, State
from tests.factories import (
    ISOLATION,
    START,
    Clock,
    Node,
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    seen,
    submit,
)
from tests.jobs import ask, stop
from tests.tenants import Office, breaches, read, why

S = SessionStatus
MULTI = ClusterMode.MULTI_NODE
LEASE, MARGIN = 240, 60


@pytest.fixture
async def office(platform: Platform) -> Office:
    made = Office(platform)
    await made.limit_user("alice", max_containers_per_session=0)
    return made


@pytest.fixture
async def nodes(platform: Platform, office: Office) -> list[Node]:
    return [await add_node(platform, f"node-{n}") for n in (1, 2, 3)]


@pytest.fixture
def clock(database: Database) -> Clock:
    assert isinstance(database.clock, Clock)
    return database.clock


def cpus(amount: str) -> dict[str, Any]:
    return {"slots": {"cpu": amount}}


async def gather(platform: Platform, nodes: list[Node], **request: Any) -> Crew:
    """Have an interactive cluster placed."""
    wanted = {"cluster_size": 3, **cpus("2"), **request}
    session = (await submit(platform, **wanted)).session
    assert await schedule(platform) == 1
    return Crew(platform, nodes, session)


async def begin(platform: Platform, nodes: list[Node], **request: Any) -> Crew:
    """Have a batch cluster placed, one container on each node."""
    wanted = {"cluster_size": 3, "cluster_mode": MULTI, **cpus("3"), **request}
    session = await ask(platform, **wanted)
    assert await schedule(platform) == 1
    return Crew(platform, nodes, session)


async def lose(platform: Platform, clock: Clock, node: Node, seconds: float) -> int:
    """Let one node be silent for some time, and draw the consequences."""
    clock.pass_(seconds)
    async with platform.database.transaction() as tx:
        await tx.execute(
            text("UPDATE agents SET last_seen_at = :now WHERE id <> :id").bindparams(
                now=tx.now, id=node.id
            )
        )
    await judge_agents(platform, START)
    return await requeue_stranded(platform, START)


# --- all or nothing -----------------------------------------------------------------


async def test_what_no_node_could_ever_hold_together_is_refused(
    platform: Platform, nodes: list[Node]
):
    with pytest.raises(NeverFitsError, match="its containers ask 9"):
        await submit(platform, cluster_size=3, **cpus("3"))
    several = await gather(platform, nodes, cluster_mode=MULTI, **cpus("3"))
    assert sorted((await several.nodes_of()).values()) == ["node-1", "node-2", "node-3"]


async def test_it_waits_until_there_is_room_for_all(
    platform: Platform, nodes: list[Node]
):
    first = (await submit(platform, server="first", **cpus("2"))).session
    assert await schedule(platform) == 1
    wide = await ask(platform, cluster_size=3, cluster_mode=MULTI, **cpus("3"))
    assert "3 containers start together or not at all" in await why(platform, wide)
    assert not (await read(platform, wide)).containers
    await stop(platform, first, force=True)
    assert await schedule(platform) == 1
    shown = await read(platform, wide)
    assert [c.host for c in shown.containers] == ["main1", "sub1", "sub2"]
    assert [c.state for c in shown.containers] == ["scheduled"] * 3
    assert "placed on 3 nodes" in shown.reason
    assert not await breaches(platform)


async def test_packing_takes_one_node_where_one_has_the_room(
    platform: Platform, nodes: list[Node]
):
    packed = await gather(
        platform, nodes, cluster_mode=MULTI, cluster_size=4, **cpus("1")
    )
    assert len(set((await packed.nodes_of()).values())) == 1
    shown = await packed.look()
    assert shown.cluster_strategy is ClusterStrategy.PACK
    apart = await gather(
        platform,
        nodes,
        server="two",
        cluster_mode=MULTI,
        cluster_strategy=ClusterStrategy.SPREAD,
        cluster_size=2,
        **cpus("1"),
    )
    assert len(set((await apart.nodes_of()).values())) == 2


async def test_each_container_gets_whole_devices_of_its_own(
    platform: Platform, office: Office
):
    gpus = [make_device(), *(make_gpu(f"gpu-{n}") for n in range(4))]
    nodes = [await add_node(platform, "node-1", gpus)]
    crew = await gather(
        platform, nodes, cluster_size=2, slots={"cpu": "1", "cuda.device": "2"}
    )
    wanted = await crew.wanted()
    given = {
        host: {s.device for s in spec.shares if s.slot == "cuda.device"}
        for host, spec in wanted.items()
    }
    assert [len(devices) for devices in given.values()] == [2, 2]
    assert not given["main1"] & given["sub1"]
    shown = (await read(platform, crew.session)).containers
    assert [(c.role, c.idx, c.node) for c in shown] == [
        ("main", 1, "node-1"),
        ("sub", 1, "node-1"),
    ]
    # What people are shown is what the nodes are asked for, without CPU and memory.
    assert {c.host: {d.name for d in c.devices} for c in shown} == given
    assert {d.amount for c in shown for d in c.devices} == {"1"}
    third = (await submit(platform, server="third", slots={"cuda.device": "1"})).session
    assert "cuda.device" in await why(platform, third)
    assert not await breaches(platform)


async def test_half_a_plan_is_never_carried_out(platform: Platform, nodes: list[Node]):
    session = await ask(platform, cluster_size=3, cluster_mode=MULTI, **cpus("3"))
    made = plan(await load_snapshot(platform))
    # Since the plan was made, somebody has taken one of the three nodes out.
    node = nodes[1]
    await Office(platform).move_node(node.name, (await _other_group(platform)))
    assert await place(platform, made.placements) == 0
    assert (await read(platform, session)).status is S.PENDING
    assert not (await read(platform, session)).containers
    assert not await breaches(platform)


async def test_a_placement_that_leaves_a_container_out_is_not_carried_out(
    platform: Platform, nodes: list[Node]
):
    session = await ask(platform, cluster_size=3, cluster_mode=MULTI, **cpus("1"))
    (made,) = plan(await load_snapshot(platform)).placements
    half = msgspec.structs.replace(made, members=made.members[:2])
    assert await place(platform, [half]) == 0
    assert (await read(platform, session)).status is S.PENDING
    assert await place(platform, [made]) == 1


async def _other_group(platform: Platform) -> str:
    made = await Office(platform).make("resource-group", name="other")
    return str(made.name)


async def test_its_charge_is_the_sum_of_its_containers(
    platform: Platform, nodes: list[Node], office: Office
):
    limited = {"total_resource_slots": {"cpu": "4"}}
    await office.change("keypair-policy", "of-alice", **limited)
    with pytest.raises(NeverFitsError, match=r"cpu .*of 4 in use, asks 6"):
        await submit(platform, cluster_size=3, **cpus("2"))
    crew = await gather(platform, nodes, cluster_size=2, **cpus("2"))
    more = (await submit(platform, server="more", **cpus("1"))).session
    assert "cpu 4 of 4 in use" in await why(platform, more)
    assert (await crew.look()).slots["cpu"] == "2"


async def test_what_waits_counts_for_all_containers(
    platform: Platform, nodes: list[Node], office: Office
):
    limited = {"max_pending_session_resource_slots": {"cpu": "7"}}
    await office.change("keypair-policy", "of-alice", **limited)
    await submit(platform, cluster_size=2, server="one", **cpus("2"))
    with pytest.raises(LimitReachedError, match="4 of 7 waits already, asks 4"):
        await submit(platform, cluster_size=2, server="two", **cpus("2"))


# --- coming up ----------------------------------------------------------------------


async def test_it_runs_when_every_container_runs(platform: Platform, nodes: list[Node]):
    crew = await begin(platform, nodes)
    await crew.say("main1", State.PULLING)
    assert (await crew.look()).status is S.SCHEDULED
    await crew.say("sub1", State.RUNNING)
    await crew.say("sub2", State.CREATING)
    shown = await crew.look()
    assert shown.status is S.PULLING
    assert shown.reason.startswith("1 of 3 containers run; main1: ")
    await crew.say("main1", State.RUNNING)
    assert (await crew.look()).status is S.CREATING
    await crew.say("sub2", State.RUNNING)
    shown = await crew.look()
    assert (shown.status, shown.reason) == (S.RUNNING, "")
    assert {c.state for c in shown.containers} == {"running"}


async def test_reports_that_come_late_change_nothing(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes)
    await crew.all_are(State.RUNNING)
    revision = (await crew.look()).revision
    for state in (State.CREATING, State.PULLING, State.RUNNING):
        await crew.say("sub1", state)
        assert {c.state for c in (await crew.look()).containers} == {"running"}
    assert (await crew.look()).revision == revision


async def test_each_container_is_told_who_it_is(platform: Platform, nodes: list[Node]):
    crew = await begin(
        platform, nodes, environ={"COLOUR": "red"}, bootstrap_script="date"
    )
    wanted = await crew.wanted()
    places = {host: spec.cluster for host, spec in wanted.items()}
    assert {p.hosts for p in places.values()} == {("main1", "sub1", "sub2")}
    assert [places[h].rank for h in ("main1", "sub1", "sub2")] == [0, 1, 2]
    assert [p.role for p in places.values()].count("sub") == 2
    where = await crew.nodes_of()
    for host, place_ in places.items():
        assert (place_.host, place_.beside, place_.mode) == (host, (host,), MULTI)
        assert place_.addresses == where
    assert [wanted[h].command for h in ("main1", "sub1", "sub2")] == ["true", "", ""]
    assert {spec.environ["COLOUR"] for spec in wanted.values()} == {"red"}
    assert {spec.bootstrap for spec in wanted.values()} == {"date"}


async def test_the_command_waits_for_every_container(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes)
    assert (await crew.wanted())["main1"].cluster.waits
    member = (await crew.members())["main1"]
    before = (await load_assignments(platform, member.agent_id)).generation
    await crew.all_are(State.RUNNING)
    assert not (await crew.wanted())["main1"].cluster.waits
    # Its node hears of it, since there is a newer assignment.
    after = (await load_assignments(platform, member.agent_id)).generation
    assert after > before


async def test_only_the_main_container_is_reached_and_lets_people_in(
    platform: Platform, nodes: list[Node]
):
    crew = await gather(platform, nodes, cluster_size=2, argv=["--flag"])
    await crew.all_are(State.RUNNING)
    shown = await crew.look()
    assert shown.url == "/user/alice/one/"
    routes = (await load_routes(platform)).routes
    main = (await crew.members())["main1"]
    assert [(r.prefix, r.container) for r in routes] == [("/user/alice/one/", main.id)]
    wanted = await crew.wanted()
    assert "JUPYTERHUB_API_TOKEN" in wanted["main1"].environ
    assert not any(n.startswith("JUPYTERHUB") for n in wanted["sub1"].environ)
    assert (wanted["sub1"].argv, wanted["sub1"].prefix) == ([], "/")


async def test_its_page_tells_how_the_containers_reach_each_other(
    platform: Platform, office: Office
):
    nodes = [await add_node(platform, f"node-{n}") for n in (1, 2)]
    crew = await begin(platform, nodes, cluster_size=2)
    principal = await principal_of(platform, "alice", Caller.USER)

    async def network() -> str:
        found = await verbs.get_session(platform, principal, crew.session.id)
        return found.cluster_network

    assert "nothing really runs" in await network()
    for node in nodes:
        node.isolation = msgspec.structs.replace(ISOLATION, runtime="docker")
        await node.report(generation=0)
    assert "cannot reach each other by name: they are on 2 nodes" in await network()


# --- ending -------------------------------------------------------------------------


async def test_one_that_cannot_start_ends_them_all(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes)
    await crew.say("main1", State.RUNNING)
    await crew.say("sub1", State.EXITED, reason="could not start: no such image")
    shown = await crew.look()
    assert shown.status is S.TERMINATING
    assert shown.reason.startswith("container sub1: could not start: no such image;")
    wanted = await crew.wanted()
    assert {spec.desired for spec in wanted.values()} == {DesiredState.ABSENT}
    # Everything stays held until every node has let go.
    other = (await submit(platform, server="other", **cpus("3"))).session
    assert "cpu" in await why(platform, other)
    await crew.say("main1", State.GONE)
    assert (await crew.look()).status is S.TERMINATING
    await crew.say("sub2", State.GONE)
    shown = await crew.look()
    assert shown.status is S.ERROR
    assert shown.reason == "container sub1: could not start: no such image"
    assert shown.result is SessionResult.FAILURE
    assert not await breaches(platform)
    assert await schedule(platform) == 1


async def test_one_that_dies_while_it_runs_ends_them_all(
    platform: Platform, nodes: list[Node]
):
    crew = await gather(platform, nodes, cluster_size=2)
    await crew.all_are(State.RUNNING)
    await crew.say("sub1", State.EXITED, reason="out of memory", exit_code=137)
    assert (await crew.look()).status is S.TERMINATING
    await crew.say("main1", State.EXITED, exit_code=0)
    shown = await crew.look()
    assert (shown.status, shown.reason) == (S.ERROR, "container sub1: out of memory")
    assert not await breaches(platform)


@pytest.mark.parametrize(
    ("code", "result"), [(0, SessionResult.SUCCESS), (3, SessionResult.FAILURE)]
)
async def test_the_main_containers_end_is_the_sessions(
    platform: Platform, nodes: list[Node], code: int, result: SessionResult
):
    crew = await begin(platform, nodes)
    await crew.all_are(State.RUNNING)
    await crew.say("main1", State.EXITED, exit_code=code)
    shown = await crew.look()
    assert (shown.status, shown.result) == (S.TERMINATING, result)
    await crew.say("sub1", State.EXITED, exit_code=143)
    await crew.say("sub2", State.GONE)
    shown = await crew.look()
    assert (shown.status, shown.exit_code, shown.result) == (S.TERMINATED, code, result)


async def test_who_stops_it_while_it_starts_waits_for_every_node(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes)
    await crew.say("main1", State.PULLING)
    await stop(platform, crew.session)
    await crew.say("main1", State.GONE)
    await crew.say("sub1", State.GONE)
    assert (await crew.look()).status is S.TERMINATING
    await crew.say("sub2", State.GONE)
    shown = await crew.look()
    assert (shown.status, shown.reason) == (S.TERMINATED, "stopped by alice")
    assert not await breaches(platform)


async def test_by_force_it_ends_at_once_and_is_cleared_away_later(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes)
    await crew.all_are(State.RUNNING)
    wanted = await crew.members()
    await stop(platform, crew.session, force=True)
    assert (await crew.look()).status is S.TERMINATED
    assert not await breaches(platform)
    assert await begin(platform, nodes, name="next")
    for member in wanted.values():
        asked = await load_assignments(platform, member.agent_id)
        desired = {c.id: c.desired for c in asked.containers}
        assert desired[member.id] is DesiredState.ABSENT


async def test_stopping_that_takes_too_long_names_the_node(
    platform: Platform, nodes: list[Node], clock: Clock
):
    crew = await begin(platform, nodes)
    await crew.all_are(State.RUNNING)
    await stop(platform, crew.session)
    await crew.say("main1", State.GONE)
    await crew.say("sub1", State.GONE)
    slow = (await crew.nodes_of())["sub2"]
    clock.pass_(91)
    assert await end_overdue(platform) == 1
    shown = await crew.look()
    assert shown.status is S.ERROR
    assert shown.reason.startswith(f"{slow} did not get past this in time")
    assert not await breaches(platform)


# --- starting again ------------------------------------------------------------------


async def test_a_lost_node_requeues_the_whole_session_once_the_others_have_stopped(
    platform: Platform, nodes: list[Node], clock: Clock
):
    crew = await begin(platform, nodes, max_attempts=2)
    await crew.all_are(State.RUNNING)
    assert {s.lease_seconds for s in (await crew.wanted()).values()} == {LEASE}
    where = await crew.nodes_of()
    lost = next(n for n in nodes if n.name == where["sub1"])
    assert await lose(platform, clock, lost, LEASE + MARGIN + 1) == 1
    shown = await crew.look()
    assert shown.status is S.RESCHEDULING
    assert lost.name in shown.reason
    # The node's own has ended by itself; the others are asked to, and still run.
    assert await requeue_stranded(platform, START) == 0
    await crew.say("main1", State.EXITED, exit_code=143)
    await crew.say("sub2", State.GONE)
    assert (await crew.look()).status is S.RESCHEDULING
    await crew.say("main1", State.GONE)
    shown = await crew.look()
    assert (shown.status, shown.attempts, shown.containers) == (S.PENDING, 1, [])
    assert not await breaches(platform)
    await add_node(platform, "node-4")
    assert await schedule(platform) == 1
    assert (await crew.look()).attempts == 2


async def test_a_container_that_fails_requeues_all_of_them(
    platform: Platform, nodes: list[Node]
):
    crew = await begin(platform, nodes, max_attempts=2)
    await crew.all_are(State.RUNNING)
    before = await crew.members()
    await crew.say("sub2", State.GONE)
    assert (await crew.look()).status is S.RESCHEDULING
    await crew.say("sub1", State.GONE)
    await crew.say("main1", State.GONE)
    assert (await crew.look()).status is S.PENDING
    assert await schedule(platform) == 1
    after = await crew.members()
    assert {m.id for m in before.values()}.isdisjoint(m.id for m in after.values())
    # What is still heard of the first attempt says nothing of the second.
    old = before["main1"]
    await crew.nodes[old.agent_id].report(
        [seen(old.id, State.EXITED, exit_code=1)], generation=0
    )
    assert (await crew.look()).status is S.SCHEDULED
    assert not await breaches(platform)


# --- what is refused, and who is too old ---------------------------------------------


async def test_nonsense_is_refused(platform: Platform, nodes: list[Node]):
    for size, words in ((0, "at least 1"), (10**12, "more than 500")):
        with pytest.raises(InvalidRequestError, match=words):
            await submit(platform, cluster_size=size)
    with pytest.raises(InvalidRequestError, match="cluster_strategy: spread"):
        await submit(platform, cluster_strategy=ClusterStrategy.SPREAD)


async def test_agents_that_know_nothing_of_clusters_and_commands_get_none(
    platform: Platform, office: Office
):
    node = await add_node(platform)

    async def speak(protocol: int) -> None:
        report = msgspec.structs.replace(node.make_report(), protocol=protocol)
        await accept_report(platform, node.id, report)

    await speak(1)
    cluster = (await submit(platform, cluster_size=2, server="two")).session
    job = await ask(platform)
    plain = (await submit(platform, server="plain")).session
    assert await schedule(platform) == 1
    assert (await read(platform, plain)).status is S.SCHEDULED
    for waiting in (cluster, job):
        assert "agent that is too old" in (await read(platform, waiting)).reason
    await speak(2)
    assert await schedule(platform) == 2


# --- whatever happens ----------------------------------------------------------------


async def test_in_any_order_of_events_there_is_a_whole_cluster_or_nothing_of_it(
    platform: Platform, nodes: list[Node], clock: Clock
):
    dice = random.Random(20260121)
    crews: list[Crew] = []
    strategies = [None, ClusterStrategy.PACK, ClusterStrategy.SPREAD]
    for step in range(28):
        clock.pass_(1)
        living = [c for c in crews if (await c.look()).status not in TERMINAL]
        if len(living) < 4:
            multi = dice.random() < 0.7
            request = {
                "cluster_size": dice.randint(2, 3),
                "cluster_mode": MULTI if multi else ClusterMode.SINGLE_NODE,
                "cluster_strategy": dice.choice(strategies) if multi else None,
                "max_attempts": dice.randint(1, 2),
                **cpus(dice.choice(["0.5", "1", "1.3"])),
            }
            session = await ask(platform, name=f"s{step}", **request)
            crews.append(Crew(platform, nodes, session))
        await schedule(platform)
        for crew in living:
            shown = await crew.look()
            there = len(await crew.members())
            if shown.status in OCCUPYING:
                assert there == shown.cluster_size
            assert shown.status is not S.PENDING or not there
        assert not await breaches(platform)
        if living:
            await _something_happens(platform, dice.choice(living), dice)
    ends = Counter([(await crew.look()).status for crew in crews])
    assert sum(ends[status] for status in TERMINAL), ends


async def _something_happens(
    platform: Platform, crew: Crew, dice: random.Random
) -> None:
    members = await crew.members()
    happening = dice.random()
    if not members or happening < 0.05:
        await stop(platform, crew.session, force=dice.random() < 0.5)
        return
    if (await crew.look()).status in {S.TERMINATING, S.RESCHEDULING}:
        for host, member in members.items():
            if member.gone_at is None and dice.random() < 0.7:
                await crew.say(host, State.GONE)
        return
    host = dice.choice(sorted(members))
    if happening < 0.15:
        await crew.say(host, State.GONE)
    elif happening < 0.3:
        await crew.say(host, State.EXITED, exit_code=dice.choice([0, 1, None]))
    elif happening < 0.5:
        await crew.say(host, dice.choice([State.PULLING, State.CREATING]))
    else:
        await crew.all_are(State.RUNNING)
