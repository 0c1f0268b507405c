"""In a large group, too, the one node is found that is of use among many that are not.

Whom to displace and where a cluster has room is searched for only so far: what can be
of no use must not use that up.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    RunningSession,
    ScopeQuota,
    Share,
)
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    gpu,
    host,
    node,
    pending,
    running,
    shared,
    snapshot,
)

MANY = 300
NOW = 1000
OPEN = GroupPolicy(
    preemption=Preemption(enabled=True, victim_scope="resource-group"),
    reserve_after=None,
)


def held(name: str, place: str, *shares: Share, **changes: Any) -> RunningSession:
    """A session that may be displaced."""
    more = {"user": "bob", "preemptible": True, "started": 0, **changes}
    return running(name, node(place), *shares, **more)


def crowd(each: int = 2, **changes: Any) -> tuple[list[NodeState], list[Any]]:
    """Many nodes without GPUs where everybody may be displaced."""
    nodes = [node(f"c{i:03}", host(4, used=4)) for i in range(MANY)]
    share = 4000 // each
    sessions = [
        held(f"{n.id}.{j}", n.id, Share(f"{n.id}/host", "cpu", share), **changes)
        for n in nodes
        for j in range(each)
    ]
    return nodes, sessions


def gpu_node(name: str, **changes: Any) -> tuple[NodeState, RunningSession]:
    """A node whose only GPU somebody has who may be displaced."""
    place = node(name, host(4), gpu(f"{name}/0", used=1))
    return place, held(
        f"on-{name}", name, Share(f"{name}/0", "cuda.device", 1000), **changes
    )


def victims_of(session: str, decided: Any) -> list[str]:
    found = [p for p in decided.preemptions if p.session == session]
    return [victim.session for plan_ in found for victim in plan_.victims]


def test_the_only_one_whose_leaving_helps_is_found_among_many():
    nodes, sessions = crowd()
    place, victim = gpu_node("g")
    urgent = pending("urgent", cpu=1, gpus=1, job_priority=5)
    decided = plan(
        snapshot(
            [*nodes, place],
            [urgent],
            policy=OPEN,
            running=(*sessions, victim),
            now=NOW,
        )
    )
    assert victims_of("urgent", decided) == ["on-g"]


def test_a_guarantee_is_got_back_from_the_only_node_that_has_it():
    theirs = ((ScopeKind.DOMAIN, "e"), (ScopeKind.USER, "bob"))
    nodes, sessions = crowd(scopes=theirs)
    place, victim = gpu_node("g", scopes=theirs)
    mine = ((ScopeKind.DOMAIN, "d"), (ScopeKind.USER, "alice"))
    due = ScopeQuota(guaranteed={"cpu": 1000, "cuda.device": 1000})
    decided = plan(
        snapshot(
            [*nodes, place],
            [pending("mine", cpu=1, gpus=1, scopes=mine)],
            policy=GroupPolicy(quotas={("d",): due}, reserve_after=None),
            running=(*sessions, victim),
            now=NOW,
        )
    )
    assert victims_of("mine", decided) == ["on-g"]


def test_nodes_where_only_somebody_else_s_sessions_might_go_are_not_counted():
    """On each of them both would have to go, of whom one is as urgent."""
    nodes, sessions = [], []
    for i in range(MANY):
        name = f"n{i:03}"
        nodes.append(node(name, gpu(f"{name}/0", used=1), gpu(f"{name}/1", used=1)))
        for j in (0, 1):
            share = Share(f"{name}/{j}", "cuda.device", 1000)
            sessions.append(held(f"{name}.{j}", name, share, job_priority=5 * j))
    alone = node("z", gpu("z/0", used=1), gpu("z/1"))
    sessions.append(held("on-z", "z", Share("z/0", "cuda.device", 1000)))
    urgent = pending("urgent", gpus=2, job_priority=5)
    decided = plan(
        snapshot(
            [*nodes, alone], [urgent], policy=OPEN, running=tuple(sessions), now=NOW
        )
    )
    assert victims_of("urgent", decided) == ["on-z"]


@pytest.mark.parametrize("layout", ["spread", "pack"])
def test_for_a_cluster_only_those_go_who_have_what_it_lacks(layout: str):
    nodes, sessions = crowd(each=4)
    pairs = [gpu_node(name, started=50) for name in "xy"]
    gang = cluster_of("gang", *[ask(cpu=1, gpus=1)] * 2, layout=layout, job_priority=5)
    decided = plan(
        snapshot(
            [*nodes, *(place for place, _ in pairs)],
            [gang],
            policy=OPEN,
            running=(*sessions, *(victim for _, victim in pairs)),
            now=NOW,
        )
    )
    assert victims_of("gang", decided) == ["on-x", "on-y"]


def test_for_a_cluster_two_go_of_one_node_each_however_many_there_are():
    """The oldest ones are all on different nodes, where one alone does not do."""
    nodes, sessions = [], []
    for i in range(MANY):
        name = f"n{i:03}"
        nodes.append(node(name, host(4, used=4)))
        for j in (0, 1):
            share = Share(f"{name}/host", "cpu", 2000)
            sessions.append(held(f"{name}.{j}", name, share, started=100 * j + i % 100))
    gang = cluster_of("gang", *[ask(cpu=4)] * 2, layout="spread", job_priority=5)
    decided = plan(
        snapshot(nodes, [gang], policy=OPEN, running=tuple(sessions), now=NOW)
    )
    gone = victims_of("gang", decided)
    assert len(gone) == 4
    assert len({name.split(".")[0] for name in gone}) == 2


def test_containers_that_share_a_device_are_counted_before_others_are_let_stay():
    """The sum of what is left would do for both containers; no device has it."""
    place = node("a", host(4, used=4), shared("a/0", used=0.6), shared("a/1", used=0.4))
    sessions = [
        held("part", "a", Share("a/0", "cuda.shares", 600)),
        held("cores", "a", Share("a/host", "cpu", 4000), started=50),
    ]
    gang = cluster_of("gang", *[ask(cpu=1, shares=0.5)] * 2, job_priority=5)
    decided = plan(
        snapshot([place], [gang], policy=OPEN, running=tuple(sessions), now=NOW)
    )
    assert set(victims_of("gang", decided)) == {"part", "cores"}


# --- who waits behind many for whom nobody can go ----------------------------------


def test_those_for_whom_nobody_can_go_do_not_use_up_the_searches():
    a, b = (
        node("a", host(4), gpu("a/0", used=1)),
        node("b", host(8), *(gpu(f"b/{i}", used=1) for i in (0, 1))),
    )
    sessions = [
        held("stays", "b", Share("b/0", "cuda.device", 1000), preemptible=False),
        held("goes", "b", Share("b/1", "cuda.device", 1000)),
        held("on-a", "a", Share("a/0", "cuda.device", 1000)),
    ]
    queue = [
        pending(f"p{i}", gpus=2, user=f"u{i}", job_priority=5, cpu=i / 1000)
        for i in range(MANY)
    ]
    queue.append(pending("last", gpus=1, job_priority=5))
    decided = plan(
        snapshot([a, b], queue, policy=OPEN, running=tuple(sessions), now=NOW)
    )
    assert len(victims_of("last", decided)) == 1


def test_who_is_behind_many_has_a_turn_in_one_pass_or_another():
    """Each of them may displace but an own session, on a node where both must go."""
    nodes, sessions, queue = [], [], []
    for i in range(100):
        name = f"n{i // 2:03}"
        if i % 2 == 0:
            nodes.append(node(name, gpu(f"{name}/0", used=1), gpu(f"{name}/1", used=1)))
        share = Share(f"{name}/{i % 2}", "cuda.device", 1000)
        sessions.append(held(f"r{i}", name, share, user=f"u{i}"))
        queue.append(pending(f"p{i}", gpus=2, user=f"u{i}", job_priority=5))
    place, victim = gpu_node("g", user="alice")
    queue.append(pending("last", gpus=1, job_priority=5))
    policy = replace(OPEN, preemption=Preemption(enabled=True, victim_scope="user"))
    given = snapshot(
        [*nodes, place], queue, policy=policy, running=(*sessions, victim), now=NOW
    )
    passes = 100
    found = next(
        now
        for now in range(NOW, NOW + passes)
        if victims_of("last", plan(replace(given, now=now)))
    )
    again = plan(replace(given, now=found))
    assert victims_of("last", again) == ["on-g"], "the same pass decides the same"


# --- clusters on one node ------------------------------------------------------------


@pytest.mark.parametrize("placement", ["concentrated", "roundrobin", "fragmentation"])
def test_a_cluster_finds_the_one_node_whose_devices_have_room_for_each(placement: str):
    nodes = [
        node(
            f"n{i:03}",
            host(4),
            shared(f"{i}/0", used=0.6),
            shared(f"{i}/1", used=0.4),
        )
        for i in range(MANY)
    ]
    place = node("z", host(2), shared("z/0", used=0.2), shared("z/1", used=0.2))
    gang = cluster_of("gang", *[ask(cpu=1, shares=0.5)] * 2)
    policy = GroupPolicy(placement=placement)
    [placed] = plan(snapshot([*nodes, place], [gang], policy=policy)).placements
    assert placed.node == "z"


def test_nodes_are_tried_to_the_last_where_nothing_but_trying_tells():
    """Six, three and three tenths: each pair of devices would do in sum."""
    parts = [ask(shares=part) for part in (0.6, 0.3, 0.3)]
    nodes = [
        node(f"n{i:03}", shared(f"{i}/0", used=0.3), shared(f"{i}/1", used=0.5))
        for i in range(MANY)
    ]
    place = node("z", shared("z/0", used=0.4), shared("z/1", used=0.4))
    gang = cluster_of("gang", *parts)
    policy = GroupPolicy(placement="concentrated")
    [placed] = plan(snapshot([*nodes, place], [gang], policy=policy)).placements
    assert placed.node == "z"
