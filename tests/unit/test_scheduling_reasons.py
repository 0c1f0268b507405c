"""What could never start is told apart from what only has to wait."""

from __future__ import annotations

from typing import Any

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.reasons import explain_never
from tests.unit.scheduling_snapshots import GIB, gpu, host, node, pending, shared


def never(nodes: Any, **asked: Any) -> str | None:
    return explain_never(Cluster(nodes), pending(**asked))


def test_what_is_in_use_now_will_be_free_one_day():
    full = node("a", host(4, used=4), gpu("a/0", used=1), gpu("a/1"))
    assert never([full], cpu=4, gpus=2) is None


def test_a_node_that_takes_nothing_now_may_be_opened_again():
    assert never([node("a", host(4), closed="takes nothing new")], cpu=4) is None


def test_a_node_somebody_has_to_himself_will_be_free_one_day():
    single = node("a", host(4), multi_user=False, sole_owner="mallory")
    assert never([single], cpu=4) is None


def test_more_than_the_largest_node_has_is_told_with_both_numbers():
    nodes = [node("a", host(4)), node("b", host(8, mem=GIB))]
    assert never(nodes, cpu=9) == "cpu: asks 9, the largest node has 8"
    assert never([nodes[1]], cpu=9, mem=2 * GIB) == (
        "cpu: asks 9, the largest node has 8; mem: asks 2 GiB, the largest node has"
        " 1 GiB"
    )


def test_a_slot_no_node_has_is_told_to_be_none():
    told = never([node("a", host(4))], gpus=1)
    assert told == "cuda.device: asks 1, the largest node has 0"


def test_what_no_device_can_give_in_one_piece_is_told_so():
    nodes = [node("a", shared("a/0"), shared("a/1"))]
    assert never(nodes, shares=2) is None
    assert never(nodes, shares=1.5) == (
        "cuda.shares: asks 1.5, the largest node has 2 in pieces of at most 1"
    )


def test_what_no_node_has_together_is_told_so():
    nodes = [node("a", host(8)), node("b", host(1), gpu("b/0"))]
    assert never(nodes, cpu=2, gpus=1) == (
        "no single node has all of it, even when empty"
    )


def test_only_nodes_that_can_run_the_image_count():
    nodes = [
        node("a", host(8), runtime="process"),
        node("b", host(8), architecture="aarch64"),
    ]
    assert never(nodes, cpu=1) == "no node can run this image"
    told = never([*nodes, node("c", host(1))], cpu=2)
    assert told == "cpu: asks 2, the largest node has 1"
