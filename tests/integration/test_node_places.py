"""Where sessions go by what nodes are labelled, hold at most, and how devices lie."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_hub.api.agents import AgentReport
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import InvalidRequestError, NeverFitsError
from backendai_hub.core.sessions import Session
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.operations.submit import submit_session
from backendai_hub.operations.users import ensure_user
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Plan
from tests.factories import (
    Node,
    SessionRequest,
    add_node,
    list_nodes,
    make_device,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.tenants import ROOT, Office, make_ready, read, why


async def report(node: Node, **changes: object) -> None:
    """Have a node say of itself what its configuration says."""
    made = node.make_report()
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    await accept_report(node.platform, node.id, AgentReport(**{**fields, **changes}))


async def label(platform: Platform, name: str, **labels: str | None) -> None:
    await change_agent(platform, ROOT, name, AgentChange(labels=labels))


async def labels_of(platform: Platform) -> dict[str, dict[str, str]]:
    return {agent.name: agent.labels for agent in await list_nodes(platform)}


async def ask(platform: Platform, **request: object) -> Session:
    """Ask as an administrator does."""
    principal = await principal_of(platform, "root", Caller.SUPERADMIN)
    user = await ensure_user(platform, "root")
    made = await submit_session(
        platform, principal, user, SessionRequest(**{"image": "lab", **request})
    )
    await make_ready(platform, made.session.id)
    return made.session


# --- labels -----------------------------------------------------------------------


async def test_what_operators_say_wins_over_what_the_node_says(platform: Platform):
    node = await add_node(platform)
    await report(node, labels={"gpu": "a100", "rack": "r1"})
    assert await labels_of(platform) == {"node-1": {"gpu": "a100", "rack": "r1"}}
    await label(platform, "node-1", gpu="h100", site="seoul")
    await report(node, labels={"gpu": "a100", "rack": "r2"})
    assert await labels_of(platform) == {
        "node-1": {"gpu": "h100", "rack": "r2", "site": "seoul"}
    }
    await label(platform, "node-1", gpu=None, rack="", site=None)
    assert await labels_of(platform) == {"node-1": {"gpu": "a100"}}


async def test_a_session_goes_where_the_labels_are_that_it_asks_for(
    platform: Platform,
):
    for name in ("node-1", "node-2", "node-3"):
        await report(await add_node(platform, name), labels={"disk": "nvme"})
    await label(platform, "node-2", gpu="h100")
    wanted = {"gpu": "h100", "disk": "nvme"}
    for server in ("1", "2", "3"):
        session = await start(platform, labels=wanted, server=server)
        shown = await read(platform, session)
        assert (shown.agent, shown.labels) == ("node-2", wanted)


async def test_labels_that_no_node_has_are_refused_and_named(platform: Platform):
    await add_node(platform)
    with pytest.raises(NeverFitsError, match="gpu=h100"):
        await submit(platform, labels={"gpu": "h100"})
    with pytest.raises(InvalidRequestError, match="small letters"):
        await submit(platform, labels={"GPU type": "h100"})
    with pytest.raises(InvalidRequestError, match="at most 64"):
        await submit(platform, labels={f"l{i}": "" for i in range(65)})


async def test_a_label_that_goes_while_a_session_waits_is_told(platform: Platform):
    node = await add_node(platform)
    await report(node, labels={"gpu": "h100"})
    session = (await submit(platform, labels={"gpu": "h100"})).session
    decided = plan(await load_snapshot(platform))
    await label(platform, "node-1", gpu="")
    assert await apply_plan(platform, decided) == 0, "the plan was made before"
    assert "gpu=h100" in await why(platform, session)
    await label(platform, "node-1", gpu=None)
    assert await schedule(platform) == 1


@pytest.mark.parametrize(
    "labels", [{"": "x"}, {"-a": "x"}, {"a": "x" * 129}, {"a": "x\ny"}, {"A": "x"}]
)
async def test_labels_that_could_not_be_written_are_refused(
    platform: Platform, labels: dict[str, str]
):
    node = await add_node(platform)
    with pytest.raises(InvalidRequestError, match="labels"):
        await change_agent(platform, ROOT, "node-1", AgentChange(labels=dict(labels)))
    with pytest.raises(InvalidRequestError, match="labels"):
        await report(node, labels=labels)


async def test_containers_that_lie_apart_stay_in_one_rack(platform: Platform):
    await Office(platform).limit_user(
        "root", max_containers_per_session=4, total_resource_slots={"cpu": "inf"}
    )
    for number, rack in enumerate(("r1", "r2", "r1", "r2", "r2")):
        node = await add_node(platform, f"node-{number}")
        await report(node, labels={"row": rack})
    await Office(platform).change(
        "resource-group", "default", scheduler_opts={"rack_label": "row"}
    )
    session = await ask(
        platform, cluster_size=3, cluster_mode="multi-node", slots={"cpu": "3"}
    )
    assert await schedule(platform) == 1
    shown = await read(platform, session)
    assert {c.node for c in shown.containers} == {"node-1", "node-3", "node-4"}


# --- named nodes, and how many a node takes ----------------------------------------


async def test_nodes_that_are_named_are_the_only_ones(platform: Platform):
    for name in ("node-1", "node-2"):
        await add_node(platform, name)
    for _ in range(3):
        session = await ask(platform, agents=["node-2"], slots={"cpu": "1"})
        assert await schedule(platform) == 1
        assert (await read(platform, session)).agent == "node-2"
    full = await ask(platform, agents=["node-2"], slots={"cpu": "3"})
    assert "cpu" in await why(platform, full)


async def test_nodes_that_are_preferred_come_first(platform: Platform):
    for name in ("node-1", "node-2"):
        await add_node(platform, name)
    went = []
    for _ in range(3):
        session = await ask(platform, preferred_agents=["node-2"], slots={"cpu": "2"})
        assert await schedule(platform) == 1
        went.append((await read(platform, session)).agent)
    assert went == ["node-2", "node-2", "node-1"]


async def test_a_node_takes_as_many_containers_as_it_says(platform: Platform):
    node = await add_node(platform)
    await report(node, max_containers=2)
    assert [a.max_containers for a in await list_nodes(platform)] == [2]
    first = await start(platform, server="1")
    await start(platform, "bob", server="2")
    third = (await submit(platform, server="3")).session
    assert "container" in await why(platform, third)
    await terminate_session(platform, ROOT, first.id, force=True)
    assert await schedule(platform) == 1


async def test_one_container_more_on_a_node_is_nobodys_chance(platform: Platform):
    node = await add_node(platform)
    await report(node, max_containers=1)
    view = QueueView(platform)
    first = (await submit(platform, server="1")).session
    await submit(platform, "bob", server="2")
    assert await view.refresh()
    decided = plan(view.snapshot())
    assert await apply_plan(platform, decided) == 1
    view.placed = {first.id}
    assert not await view.refresh()
    await terminate_session(platform, ROOT, first.id, force=True)
    assert await view.refresh()


async def test_plans_made_at_the_same_time_do_not_pass_that_together(
    platform: Platform,
):
    node = await add_node(platform)
    await report(node, max_containers=1)
    await submit(platform, server="1")
    first = plan(await load_snapshot(platform))
    assert await apply_plan(platform, first) == 1
    second = (await submit(platform, "bob", server="2")).session
    [placement] = first.placements
    stale = replace(placement, session=second.id)
    assert await apply_plan(platform, Plan(placements=(stale,), waiting={})) == 0


# --- how devices lie ---------------------------------------------------------------


async def test_gpus_of_one_session_are_linked_and_at_one_numa_node(platform: Platform):
    """A node like a DGX: two quads with NVLink, each at a socket of its own."""
    gpus = FakeAccelerator(count=8, linked=4, numa_nodes=2, node="n").discover()
    await add_node(platform, devices=[make_device(), *gpus])
    quads = [{g.id for g in gpus[:4]}, {g.id for g in gpus[4:]}]

    async def take(count: int, server: str) -> set[str]:
        slots = {"cpu": "0.1", "mem": "1", "cuda.device": str(count)}
        session = await start(platform, slots=slots, server=server)
        named = (await read(platform, session)).devices
        return {g.id for g in gpus if any(g.id in name for name in named)}

    three, two, other = await take(3, "1"), await take(2, "2"), await take(2, "3")
    assert any(three < quad for quad in quads)
    assert two | other in quads, "and not the one that was left over elsewhere"


async def test_what_a_device_is_like_may_change(platform: Platform):
    gpus = FakeAccelerator(count=4, node="n").discover()
    node = await add_node(platform, devices=[make_device(), *gpus])
    gpus = FakeAccelerator(count=4, node="n", linked=2, numa_nodes=2).discover()
    node.devices = [make_device(), *gpus]
    await node.report()
    async with platform.database.read() as connection:
        [state] = await load_nodes(connection)
    found = {d.name: d for d in state.devices}
    ids = {d.id: d.name for d in state.devices}
    for gpu in gpus:
        assert found[gpu.id].numa == gpu.numa
        told = {ids[i]: far for i, far in found[gpu.id].links.items()}
        assert told == gpu.links
