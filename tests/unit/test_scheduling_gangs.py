"""Sessions of several containers get room for all of them, or take none."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.scheduling.plan import plan
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    gpu,
    host,
    node,
    pending,
    shared,
    snapshot,
)


def nodes_of(decided: Any, session: str = "gang") -> list[str]:
    found = [p for p in decided.placements if p.session == session]
    return [m.node for p in found for m in p.members]


def gpus(name: str, count: int = 4, **changes: Any) -> Any:
    return node(name, host(64), *(gpu(f"{name}/{i}") for i in range(count)), **changes)


def test_all_containers_get_their_own_devices_of_one_node():
    gang = cluster_of("gang", ask(gpus=2), ask(gpus=1), ask(cpu=1))
    [placement] = plan(snapshot([gpus("a")], [gang])).placements
    assert [m.member for m in placement.members] == ["gang-0", "gang-1", "gang-2"]
    given = [{s.device for s in m.shares} for m in placement.members]
    assert [len(devices) for devices in given] == [2, 1, 1]
    assert given[0].isdisjoint(given[1])
    assert (placement.node, placement.shares) == ("a", placement.members[0].shares)


@pytest.mark.parametrize("layout", ["one-node", "spread", "pack"])
def test_all_or_nothing_and_what_was_tried_is_free_for_others(layout: str):
    gang = cluster_of("gang", *[ask(gpus=2)] * 3, layout=layout)
    decided = plan(snapshot([gpus("a")], [gang, pending("other", gpus=4)]))
    assert [p.session for p in decided.placements] == ["other"]
    assert "3 containers start together or not at all" in decided.waiting["gang"]


def test_halves_do_not_add_up_to_one_device():
    gang = cluster_of("gang", ask(shares=0.75), ask(shares=0.75))
    two = node("a", shared("a/0"), shared("a/1"))
    assert len(nodes_of(plan(snapshot([two], [gang])))) == 2
    one_and_a_half = node("a", shared("a/0"), shared("a/1", used=0.5))
    assert nodes_of(plan(snapshot([one_and_a_half], [gang]))) == []


def test_one_node_means_one_node():
    gang = cluster_of("gang", ask(gpus=3), ask(gpus=3))
    assert nodes_of(plan(snapshot([gpus("a"), gpus("b")], [gang]))) == []


def test_spread_keeps_members_apart_and_puts_them_together_rather_than_wait():
    gang = cluster_of("gang", *[ask(gpus=1)] * 3, layout="spread")
    three = [gpus("a"), gpus("b"), gpus("c")]
    assert sorted(nodes_of(plan(snapshot(three, [gang])))) == ["a", "b", "c"]
    assert sorted(set(nodes_of(plan(snapshot(three[:2], [gang]))))) == ["a", "b"]


def test_pack_uses_as_few_nodes_as_it_finds():
    gang = cluster_of("gang", *[ask(gpus=2)] * 4, layout="pack")
    nodes = [gpus("a", 4), gpus("b", 2), gpus("c", 8), gpus("d", 4)]
    assert set(nodes_of(plan(snapshot(nodes, [gang])))) == {"c"}
    assert set(nodes_of(plan(snapshot([*nodes[:2], nodes[3]], [gang])))) == {"a", "d"}


def test_pack_stays_in_one_rack_if_one_has_room():
    racks = {"a": "r1", "b": "r2", "c": "r1", "d": "r2"}
    nodes = [gpus(n, 4, labels={"rack": r}) for n, r in racks.items()]
    nodes[0] = gpus("a", 2, labels={"rack": "r1"})
    gang = cluster_of("gang", *[ask(gpus=4)] * 2, layout="pack")
    assert set(nodes_of(plan(snapshot(nodes, [gang])))) == {"b", "d"}


def test_the_widest_member_is_placed_first():
    nodes = [gpus("a", 4), gpus("b", 3)]
    gang = cluster_of("gang", *[ask(gpus=1)] * 3, ask(gpus=4), layout="spread")
    assert nodes_of(plan(snapshot(nodes, [gang])))[3] == "a"


def test_a_node_that_serves_one_owner_may_take_all_members_and_is_free_again_if_not():
    alone = gpus("a", 4, multi_user=False)
    gang = cluster_of("gang", ask(gpus=3), ask(gpus=3), layout="pack", user="alice")
    decided = plan(snapshot([alone], [gang, pending("next", user="bob", gpus=1)]))
    assert [p.session for p in decided.placements] == ["next"]


def test_each_container_counts_against_how_many_a_node_runs():
    few = gpus("a", 4, containers=3, max_containers=5)
    three = cluster_of("gang", *[ask(gpus=1)] * 3)
    assert nodes_of(plan(snapshot([few], [three]))) == []
    two = cluster_of("gang", *[ask(gpus=1)] * 2)
    assert nodes_of(plan(snapshot([few], [two]))) == ["a", "a"]


def test_a_member_that_fits_nowhere_is_named():
    gang = cluster_of("gang", ask(gpus=1), ask(gpus=5))
    told = plan(snapshot([gpus("a")], [gang])).waiting["gang"]
    assert told == "container gang-1: cuda.device: asks 5, 4 free on a"


@pytest.mark.parametrize("layout", ["spread", "pack"])
def test_how_many_containers_find_room_is_told_and_what_the_next_lacks(layout: str):
    there = [node("a", host(3)), node("b", host(2))]
    gang = cluster_of(
        "s", ask(cpu=2), ask(cpu=2), ask(cpu=1), ask(cpu=1), layout=layout
    )
    told = plan(snapshot(there, [gang])).waiting["s"]
    assert told == (
        "its 4 containers start together or not at all, and the nodes have room for 3"
        " of them now; container s-3: cpu: asks 1, 0 free on a, the best of 2 nodes"
    )


def test_how_many_containers_find_room_on_one_node_is_told():
    there = [node("a", host(3)), node("b", host(2))]
    gang = cluster_of("s", *[ask(cpu=1)] * 4)
    told = plan(snapshot(there, [gang])).waiting["s"]
    assert told == (
        "its 4 containers start together or not at all, and one node has room for 3"
        " of them now; container s-3: cpu: asks 1, 0 free on a"
    )
