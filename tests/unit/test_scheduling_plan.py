"""What a pass decides, told as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Snapshot
from tests.unit.scheduling_snapshots import (
    GIB,
    gpu,
    host,
    limit,
    node,
    pending,
    shared,
    snapshot,
)


def decide(nodes: Any, queue: Any, scopes: Any = ()) -> Any:
    return plan(snapshot(nodes, queue, scopes))


def placed(decided: Any) -> dict[str, str]:
    return {p.session: p.node for p in decided.placements}


def devices(decided: Any, session: str = "s") -> list[str]:
    [shares] = [p.shares for p in decided.placements if p.session == session]
    return [s.device for s in shares if s.slot.startswith("cuda")]


# --- who starts, and in which order ---------------------------------------------


def test_what_fits_is_placed_with_exact_shares_and_the_image_of_the_runtime():
    decided = decide([node("a", host(4, mem=GIB))], [pending(cpu=1, mem=GIB)])

    [placement] = decided.placements
    assert (placement.session, placement.node, placement.image) == ("s", "a", "lab:1")
    assert {(s.device, s.slot, s.amount) for s in placement.shares} == {
        ("a/host", "cpu", 1000),
        ("a/host", "mem", GIB),
    }
    assert decided.waiting == {}


def test_the_last_thousandth_of_a_core_is_given_and_not_one_more():
    assert placed(decide([node("a", host(1))], [pending(cpu=1)])) == {"s": "a"}
    assert placed(decide([node("a", host(1))], [pending(cpu=1.001)])) == {}


def test_who_came_first_gets_what_is_left():
    queue = [pending("first", cpu=3), pending("second", cpu=3)]
    assert placed(decide([node("a", host(4))], queue)) == {"first": "a"}


def test_nobody_blocks_those_behind():
    queue = [pending("big", cpu=8), pending("small", cpu=1)]
    decided = decide([node("a", host(4))], queue)
    assert placed(decided) == {"small": "a"}
    assert set(decided.waiting) == {"big"}


def test_a_session_over_its_limit_does_not_hold_room_others_could_use():
    queue = [pending("over", user="alice", cpu=4), pending("next", user="bob", cpu=4)]
    decided = decide([node("a", host(4))], queue, [limit("alice", cpu=2)])
    assert placed(decided) == {"next": "a"}


def test_what_is_placed_counts_against_limits_in_the_same_pass():
    queue = [pending(name, user="alice", cpu=1) for name in ("s1", "s2", "s3")]
    decided = decide([node("a", host(8))], queue, [limit("alice", cpu=2)])
    assert placed(decided) == {"s1": "a", "s2": "a"}
    assert decided.waiting == {"s3": "user alice: cpu 2 of 2 in use, asks 1"}


def test_two_users_share_the_limit_of_their_project():
    scopes = [limit("vision", kind=ScopeKind.PROJECT, cpu=2)]
    queue = [
        pending("s1", user="alice", project="vision", cpu=2),
        pending("s2", user="bob", project="vision", cpu=1),
        pending("s3", user="carol", project="speech", cpu=1),
    ]
    decided = decide([node("a", host(8))], queue, scopes)
    assert placed(decided) == {"s1": "a", "s3": "a"}
    assert decided.waiting == {"s2": "project vision: cpu 2 of 2 in use, asks 1"}


def test_every_limit_in_the_way_is_named():
    scopes = [
        limit("vision", kind=ScopeKind.PROJECT, cpu=1),
        limit("alice", cpu=1, mem=GIB),
    ]
    asked = pending(user="alice", project="vision", cpu=2, mem=2 * GIB)
    decided = decide([node("a", host(8))], [asked], scopes)
    assert decided.waiting["s"] == (
        "project vision: cpu 0 of 1 in use, asks 2;"
        " user alice: cpu 0 of 1 in use, asks 2;"
        " user alice: mem 0 bytes of 1 GiB in use, asks 2 GiB"
    )


def test_what_waits_for_room_uses_no_limit_up():
    queue = [pending("big", user="alice", cpu=8), pending("s", user="alice", cpu=4)]
    decided = decide([node("a", host(4))], queue, [limit("alice", cpu=8)])
    assert placed(decided) == {"s": "a"}


# --- on which node -----------------------------------------------------------------


def test_sessions_spread_to_the_emptiest_node():
    nodes = [node("a", host(4, used=2)), node("b", host(4, used=1))]
    assert placed(decide(nodes, [pending(cpu=1)])) == {"s": "b"}


def test_emptiest_is_judged_by_cores_before_memory():
    nodes = [
        node("a", host(4, used=2, mem=8 * GIB, used_mem=4 * GIB)),
        node("b", host(4, mem=8 * GIB, used_mem=7 * GIB)),
    ]
    assert placed(decide(nodes, [pending(cpu=1, mem=GIB)])) == {"s": "b"}


def test_jobs_without_accelerators_keep_off_nodes_that_have_some():
    nodes = [node("a", host(8), gpu("a/0")), node("b", host(8, used=6))]
    assert placed(decide(nodes, [pending(cpu=1)])) == {"s": "b"}


def test_but_they_start_there_rather_than_wait():
    nodes = [node("a", host(8), gpu("a/0")), node("b", host(8, used=8))]
    assert placed(decide(nodes, [pending(cpu=1)])) == {"s": "a"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"closed": "takes nothing new"}, "takes nothing new"),
        ({"closed": "does not answer at the moment"}, "does not answer at the moment"),
        ({"runtime": "process"}, "cannot run this image"),
        ({"architecture": "aarch64"}, "is aarch64, not x86_64"),
        (
            {"multi_user": False, "sole_owner": "mallory"},
            "cannot keep users apart and serves somebody else",
        ),
    ],
)
def test_a_node_that_may_not_run_it_is_left_out_and_the_reason_says_why(changes, why):
    decided = decide([node("a", host(8), **changes)], [pending(cpu=1)])
    assert placed(decided) == {}
    assert decided.waiting == {"s": f"1 of 1 node: {why}"}


def test_a_node_that_cannot_keep_users_apart_serves_its_first_user_alone():
    queue = [
        pending("s1", user="alice", cpu=1),
        pending("s2", user="bob", cpu=1),
        pending("s3", user="alice", cpu=1),
    ]
    decided = decide([node("a", host(8), multi_user=False)], queue)
    assert placed(decided) == {"s1": "a", "s3": "a"}
    assert "serves somebody else" in decided.waiting["s2"]


def test_who_uses_such_a_node_already_may_go_on():
    single = node("a", host(8), multi_user=False, sole_owner="alice")
    assert placed(decide([single], [pending(user="alice", cpu=1)])) == {"s": "a"}


def test_a_node_that_keeps_users_apart_serves_many():
    used = node("a", host(8), sole_owner="alice")
    assert placed(decide([used], [pending(user="bob", cpu=1)])) == {"s": "a"}


# --- which devices -----------------------------------------------------------------


def test_whole_devices_are_never_split():
    nodes = [node("a", host(8), gpu("a/0"))]
    queue = [pending("s1", gpus=0.5), pending("s2", gpus=0.5)]
    assert placed(decide(nodes, queue)) == {"s1": "a"}


def test_a_whole_device_of_which_a_part_is_gone_is_not_given():
    nodes = [node("a", gpu("a/0", used=0.5))]
    decided = decide(nodes, [pending(gpus=0.5)])
    assert decided.waiting == {"s": "cuda.device: asks 0.5, 0 free on a"}


def test_several_devices_come_from_one_node():
    nodes = [node(n, host(8), gpu(f"{n}/0")) for n in ("a", "b")]
    decided = decide(nodes, [pending(gpus=2)])
    assert decided.waiting == {
        "s": "cuda.device: asks 2, 1 free on a, the best of 2 nodes"
    }


def test_several_devices_are_different_ones_and_given_whole():
    nodes = [node("a", *(gpu(f"a/{i}") for i in range(4)))]
    decided = decide(nodes, [pending("s1", gpus=2), pending("s2", gpus=2)])
    given = devices(decided, "s1") + devices(decided, "s2")
    assert sorted(given) == ["a/0", "a/1", "a/2", "a/3"]
    assert {s.amount for p in decided.placements for s in p.shares} == {1000}


def test_several_devices_sit_together_on_one_numa_node():
    numa = {"a/0": 0, "a/1": 1, "a/2": 0, "a/3": 1}
    used = {"a/0": 1.0}
    nodes = [node("a", *(gpu(i, numa=n, used=used.get(i, 0)) for i, n in numa.items()))]
    assert devices(decide(nodes, [pending(gpus=2)])) == ["a/1", "a/3"]


def test_the_smallest_numa_node_that_has_enough_is_taken():
    numa = {"a/0": 0, "a/1": 0, "a/2": 0, "a/3": 1, "a/4": 1}
    nodes = [node("a", *(gpu(i, numa=n) for i, n in numa.items()))]
    assert devices(decide(nodes, [pending(gpus=2)])) == ["a/3", "a/4"]


def test_devices_of_different_numa_nodes_are_better_than_waiting():
    nodes = [node("a", gpu("a/0", numa=0), gpu("a/1", numa=1))]
    assert devices(decide(nodes, [pending(gpus=2)])) == ["a/0", "a/1"]


def test_a_fraction_goes_to_the_tightest_device_that_has_room():
    nodes = [node("a", shared("a/0"), shared("a/1", used=0.5), shared("a/2", used=0.9))]
    assert devices(decide(nodes, [pending(shares=0.25)])) == ["a/1"]


def test_a_fraction_comes_from_one_device_or_not_at_all():
    nodes = [node("a", shared("a/0", used=0.5), shared("a/1", used=0.25))]
    decided = decide(nodes, [pending(shares=1)])
    assert decided.waiting == {
        "s": "cuda.shares: asks 1, 1.25 free on a in pieces of at most 0.75"
    }


def test_one_and_a_half_is_no_number_of_devices():
    nodes = [node("a", shared("a/0"), shared("a/1"))]
    assert placed(decide(nodes, [pending(shares=1.5)])) == {}


def test_several_shared_devices_are_given_only_while_nobody_uses_them():
    nodes = [node("a", shared("a/0", used=0.001), shared("a/1"), shared("a/2"))]
    assert devices(decide(nodes, [pending(shares=2)])) == ["a/1", "a/2"]
    assert placed(decide(nodes, [pending(shares=3)])) == {}


def test_memory_comes_from_one_device():
    nodes = [node("a", host(1, name="h0", mem=GIB), host(1, name="h1", mem=GIB))]
    assert placed(decide(nodes, [pending(mem=2 * GIB)])) == {}


# --- why others wait ---------------------------------------------------------------


def test_without_nodes_everybody_waits_for_the_first():
    decided = decide([], [pending(cpu=1)])
    assert decided.waiting == {"s": "no node has joined yet; it starts when one does"}


def test_a_shortfall_names_the_node_that_has_most():
    nodes = [node("a", host(4, used=3)), node("b", host(4, used=2))]
    decided = decide(nodes, [pending(cpu=3)])
    assert decided.waiting == {"s": "cpu: asks 3, 2 free on b, the best of 2 nodes"}


def test_what_lacks_a_byte_is_not_said_to_be_enough():
    decided = decide([node("a", host(4, mem=GIB - 1))], [pending(mem=GIB)])
    assert decided.waiting == {"s": "mem: asks 1 GiB, 1023.9 MiB free on a"}


def test_a_slot_that_no_node_has_is_said_to_have_nothing_free():
    decided = decide([node("a", host(4))], [pending(gpus=1)])
    assert decided.waiting == {"s": "cuda.device: asks 1, 0 free on a"}


def test_what_is_there_only_in_pieces_is_said_to_be():
    nodes = [node("a", host(4, used=3), gpu("a/0")), node("b", host(4))]
    decided = decide(nodes, [pending(cpu=2, gpus=1)])
    assert decided.waiting == {
        "s": "1 of 2 nodes has 1 cuda.device free but not 2 cpu; nearest a lacks 1"
    }


def test_nodes_that_are_out_are_counted_by_why_and_the_rest_explained_with_numbers():
    nodes = [
        node("a", host(4), closed="takes nothing new"),
        node("b", host(4), closed="takes nothing new"),
        node("c", host(4), architecture="aarch64"),
        node("d", host(4, used=4)),
    ]
    decided = decide(nodes, [pending(cpu=1)])
    assert decided.waiting == {
        "s": "2 of 4 nodes: takes nothing new; 1 of 4 nodes: is aarch64, not x86_64;"
        " cpu: asks 1, 0 free on d"
    }


def test_requests_of_one_shape_are_explained_once(monkeypatch: pytest.MonkeyPatch):
    explained = []

    def count(cluster: Any, session: Any, *more: Any) -> str:
        explained.append(session.id)
        return original(cluster, session, *more)

    original = reasons.explain_no_room
    monkeypatch.setattr(reasons, "explain_no_room", count)
    queue = [pending(f"s{i}", user=f"user{i % 7}", cpu=8) for i in range(50)]
    queue.append(pending("other", cpu=9))
    decided = decide([node("a", host(4))], queue)
    assert explained == ["s0", "other"]
    assert len(decided.waiting) == 51


def test_users_are_explained_apart_since_nodes_may_serve_only_one():
    nodes = [node("a", host(4), multi_user=False, sole_owner="bob")]
    queue = [
        pending("s1", user="alice", cpu=1),
        pending("s2", user="bob", cpu=1),
        pending("s3", user="bob", cpu=8),
    ]
    decided = decide(nodes, queue)
    assert placed(decided) == {"s2": "a"}
    assert "somebody else" in decided.waiting["s1"]
    assert decided.waiting["s3"] == "cpu: asks 8, 3 free on a"


def test_an_empty_queue_is_a_short_pass():
    decided = decide([node("a", host(4))], [])
    assert decided.placements == ()
    assert decided.waiting == {}


def test_the_snapshot_is_left_as_it_was():
    given = snapshot(
        [node("a", host(4))], [pending(user="alice", cpu=1)], [limit("alice", cpu=2)]
    )
    before = repr(given)
    assert isinstance(given, Snapshot)
    assert plan(given) == plan(given)
    assert repr(given) == before
