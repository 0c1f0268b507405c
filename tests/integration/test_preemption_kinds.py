"""Making room for what is guaranteed, for several containers at once, and on trial."""

from __future__ import annotations

import pytest

from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_hub.api.preemptions import PreemptionTrialRequest
from backendai_hub.api.shares import ShareChange, SharesRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.clusters import ClusterMode
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.preemptions import Ending, Fate
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.operations.fair_share import change_shares
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import carry_out
from backendai_hub.operations.preemption_views import try_rules
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.users import ensure_user
from backendai_hub.scheduling.plan import plan
from tests.factories import (
    Node,
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
)
from tests.jobs import State, ask, stop
from tests.preemptions import GPU, look, occupy, opt_in, plans, report, vanish
from tests.tenants import ROOT, Office, breaches, read

S = SessionStatus
INSTANCE = {"cuda.device:1g.10gb-mig": "1"}


async def add(platform: Platform, name: str, *gpus: str) -> Node:
    devices = [make_device(), *(make_gpu(gpu) for gpu in gpus)]
    return await add_node(platform, name, devices)


async def guarantee(platform: Platform, user: str, gpus: str) -> None:
    await ensure_user(platform, user)
    change = ShareChange(
        domain="default",
        project="default",
        user=user,
        guaranteed={"cuda.device": gpus},
    )
    await change_shares(platform, ROOT, "default", SharesRequest(changes=[change]))


async def test_what_is_guaranteed_is_got_back_from_who_borrows_it(platform: Platform):
    node = await add(platform, "node-1", "gpu-0", "gpu-1")
    await opt_in(platform, mode="reschedule")
    first = await occupy(platform, node, "alice", job_priority=9)
    second = await occupy(platform, node, "alice", job_priority=9)
    await guarantee(platform, "bob", "1")
    due = await ask(platform, "bob", slots=GPU)
    await look(platform)

    assert (await read(platform, due)).status is S.RESERVED
    (shown,) = await plans(platform)
    assert (shown.kind, len(shown.victims)) == ("reclaim", 1)
    (victim,) = [s for s in (first, second) if s.id == shown.victims[0].id]
    reason = (await read(platform, victim)).reason
    assert "which is guaranteed what it borrows" in reason
    await vanish(platform, node, victim)
    await look(platform)
    assert (await read(platform, due)).status is S.SCHEDULED
    # Who had to go does not take it back, whatever its job priority is.
    await look(platform)
    assert (await read(platform, victim)).status is S.PENDING
    assert len(await plans(platform)) == 1
    assert await breaches(platform) == []


async def test_a_cluster_leaves_when_all_of_it_has_left(platform: Platform):
    nodes = [await add(platform, f"node-{i}", f"gpu-{i}") for i in (1, 2)]
    await opt_in(platform, mode="reschedule")
    policy = {"max_containers_per_session": 0}
    await Office(platform).change("keypair-policy", "default", **policy)
    pair = {"cluster_size": 2, "cluster_mode": ClusterMode.MULTI_NODE}
    victim = await ask(platform, "alice", slots=GPU, **pair)
    assert await look(platform) == 1
    for node in nodes:
        await report(platform, node, {victim.id: State.RUNNING})
    assert (await read(platform, victim)).status is S.RUNNING
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1, **pair)
    await look(platform)
    assert (await read(platform, urgent)).status is S.RESERVED
    (shown,) = await plans(platform)
    assert shown.nodes == ["node-1", "node-2"]

    await nodes[0].report()
    assert (await read(platform, victim)).status is S.PREEMPTED
    eager = await ask(platform, "carol", slots=GPU, priority=100)
    assert await look(platform) == 0
    await nodes[1].report()
    back = await read(platform, victim)
    assert (back.status, back.preemptions) == (S.PENDING, 1)
    assert await look(platform) == 1
    assert (await read(platform, urgent)).status is S.SCHEDULED
    assert (await read(platform, eager)).status is S.PENDING
    (shown,) = await plans(platform)
    assert shown.ending is Ending.STARTED
    assert [v.fate for v in shown.victims] == [Fate.REQUEUED]
    assert await breaches(platform) == []


async def test_a_cluster_that_is_stopped_while_it_leaves_does_not_come_back(
    platform: Platform,
):
    nodes = [await add(platform, f"node-{i}", f"gpu-{i}") for i in (1, 2)]
    await opt_in(platform, mode="reschedule")
    policy = {"max_containers_per_session": 0}
    await Office(platform).change("keypair-policy", "default", **policy)
    pair = {"cluster_size": 2, "cluster_mode": ClusterMode.MULTI_NODE}
    victim = await ask(platform, "alice", slots=GPU, **pair)
    assert await look(platform) == 1
    for node in nodes:
        await report(platform, node, {victim.id: State.RUNNING})
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    assert (await read(platform, victim)).status is S.PREEMPTED
    await stop(platform, victim)
    for node in nodes:
        await node.report()

    assert (await read(platform, victim)).status is S.TERMINATED
    assert await breaches(platform) == []


async def test_rules_can_be_tried_and_nobody_leaves(platform: Platform):
    node = await add(platform, "node-1", "gpu-0")
    await opt_in(platform, enabled=False, victim_scope="user")
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)

    found = await try_rules(platform, ROOT, "default", PreemptionTrialRequest())
    assert (found.enabled, found.waiting, found.items) == (False, 1, [])
    wider = PreemptionTrialRequest(victim_scope="resource-group", mode="reschedule")
    found = await try_rules(platform, ROOT, "default", wider)
    (item,) = found.items
    assert (item.session, item.mode, item.nodes) == (
        urgent.id,
        "reschedule",
        ["node-1"],
    )
    assert [(v.id, v.owner) for v in item.victims] == [(victim.id, "alice")]
    patient = PreemptionTrialRequest(victim_scope="resource-group", min_runtime=9)
    assert (await try_rules(platform, ROOT, "default", patient)).items == []
    await look(platform)
    assert (await read(platform, victim)).status is S.RUNNING
    assert await plans(platform) == []
    alice = await principal_of(platform, "alice", Caller.USER)
    with pytest.raises(NotFoundError):
        await try_rules(platform, alice, "nowhere", PreemptionTrialRequest())


async def test_nobody_leaves_for_a_device_that_somebody_has_cut_meanwhile(
    platform: Platform,
):
    [cut] = FakeAccelerator(count=1, cut_like="h100-80", node="a").discover()
    node = await add_node(platform, devices=[make_device(), cut])
    await opt_in(platform)
    victim = await occupy(platform, node, slots=INSTANCE)
    whole = await ask(platform, "bob", slots=GPU, job_priority=1)
    (proposal,) = plan(await load_snapshot(platform)).preemptions
    assert [v.session for v in proposal.victims] == [victim.id]
    await ask(platform, "carol", slots=INSTANCE, priority=100, job_priority=1)
    assert await schedule(platform) == 1

    assert await carry_out(platform, [proposal]) == 0
    assert (await read(platform, victim)).status is S.RUNNING
    assert (await read(platform, whole)).status is S.PENDING
