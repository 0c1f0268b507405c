"""Which devices are given: topology, slices, fractions, labels and named nodes."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.devices import Slicing, Topology
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import DeviceState, GroupPolicy
from tests.unit.scheduling_snapshots import (
    gpu,
    host,
    node,
    pending,
    shared,
    snapshot,
)

SMALL, LARGE = "cuda.device:1g.10gb", "cuda.device:3g.40gb"
PROFILES = {SMALL: tuple(1 << i for i in range(7)), LARGE: (0b0001111, 0b1110000)}


def linked(name: str, close: dict[str, int]) -> DeviceState:
    return replace(gpu(name), links=close)


def ring(*names: str) -> list[DeviceState]:
    """Pairs of GPUs with a fast link: (0,1), (2,3)..., the others are far."""
    found = []
    for i, name in enumerate(names):
        partner = names[i ^ 1]
        found.append(
            linked(name, {n: 0 if n == partner else 3 for n in names if n != name})
        )
    return found


def sliced(name: str, taken: int = 0, **changes: Any) -> DeviceState:
    total = {"cuda.device": MILLI, SMALL: 7 * MILLI, LARGE: 2 * MILLI}
    return DeviceState(
        **{
            "id": name,
            "name": name,
            "total": total,
            "free": total,
            "whole": False,
            "kind": "cuda",
            "profiles": PROFILES,
            "sliced": taken,
            **changes,
        }
    )


def asking(slots: dict[str, float], name: str = "s", **changes: Any) -> Any:
    amounts = {slot: round(n * MILLI) for slot, n in slots.items()}
    return pending(name, request=ResourceSlots(amounts), **changes)


def given(nodes: Any, *queue: Any, **policy: Any) -> dict[str, list[Any]]:
    decided = plan(snapshot(nodes, queue, policy=GroupPolicy(**policy)))
    return {p.session: list(p.shares) for p in decided.placements}


def devices(shares: list[Any]) -> list[str]:
    return [s.device for s in shares]


# --- topology ----------------------------------------------------------------------


def test_two_gpus_are_two_with_a_fast_link():
    found = ring("g0", "g1", "g2", "g3")
    found[0] = replace(found[0], free={"cuda.device": 0})
    assert devices(given([node("a", *found)], pending(gpus=2))["s"]) == ["g2", "g3"]


def test_one_gpu_is_one_whose_partner_is_gone():
    found = ring("g0", "g1", "g2", "g3")
    found[2] = replace(found[2], free={"cuda.device": 0})
    assert devices(given([node("a", *found)], pending(gpus=1))["s"]) == ["g3"]


def test_links_count_in_both_directions_and_what_is_not_told_is_far():
    found = [linked("g0", {}), linked("g1", {"g2": 1}), linked("g2", {})]
    assert devices(given([node("a", *found)], pending(gpus=2))["s"]) == ["g1", "g2"]


def test_many_devices_are_chosen_one_by_one_and_quickly():
    count = 32
    far = tuple(
        tuple(0 if i == j else 1 if i // 8 == j // 8 else 2 for j in range(count))
        for i in range(count)
    )
    free = (1 << count) - 1 - 0b111
    assert Topology(far).choose(free, 8) == tuple(range(8, 16))


# --- slices ------------------------------------------------------------------------


def test_instances_take_slices_of_their_own():
    queue = [asking({LARGE: 1}, "l"), *[asking({SMALL: 1}, f"s{i}") for i in range(5)]]
    shares = given([node("a", sliced("g0"))], *queue)
    taken = [s.slices for found in shares.values() for s in found]
    assert sorted(shares) == ["l", "s0", "s1", "s2"] or len(shares) == 5
    together = 0
    for slices in taken:
        assert not together & slices
        together |= slices


def test_small_instances_leave_room_for_large_ones():
    queue = [*[asking({SMALL: 1}, f"s{i}") for i in range(3)], asking({LARGE: 1}, "l")]
    assert "l" in given([node("a", sliced("g0"))], *queue)


def test_several_instances_may_share_a_device_and_come_from_several():
    shares = given([node("a", sliced("g0"), sliced("g1"))], asking({LARGE: 3}))["s"]
    assert sorted(devices(shares)) == ["g0", "g0", "g1"]


def test_a_device_in_slices_is_not_given_whole_nor_the_other_way_round():
    one = [node("a", sliced("g0"))]
    whole, part = pending("w", gpus=1), asking({SMALL: 1}, "p")
    assert list(given(one, whole, part)) == ["w"]
    assert list(given(one, part, whole)) == ["p"]
    used = sliced("g0", free={"cuda.device": 500, SMALL: 7000, LARGE: 2000})
    assert given([node("a", used)], part) == {}


def test_slices_in_use_are_not_given_again():
    assert given([node("a", sliced("g0", 0b1110000))], asking({LARGE: 2})) == {}
    [share] = given([node("a", sliced("g0", 0b1110000))], asking({LARGE: 1}))["s"]
    assert share.slices == 0b0001111


def test_a_part_of_an_instance_is_never_given():
    assert given([node("a", sliced("g0"))], asking({SMALL: 0.5})) == {}


def test_two_profiles_in_one_request_do_not_take_the_same_slices():
    shares = given([node("a", sliced("g0"))], asking({LARGE: 1, SMALL: 5}))
    assert shares == {}
    [large, *small] = given([node("a", sliced("g0"))], asking({LARGE: 1, SMALL: 3}))[
        "s"
    ]
    assert all(not large.slices & s.slices for s in small)


def test_the_table_of_slices_knows_how_many_fit():
    table = Slicing(tuple(PROFILES.items()))
    assert (table.most(0, SMALL), table.most(0, LARGE)) == (7, 2)
    assert table.most(0b1, LARGE) == 1
    assert table.choose(0b1110000, LARGE) == 0b0001111
    assert table.choose(table.all, SMALL) == 0


# --- fractions ---------------------------------------------------------------------


def test_a_fraction_is_put_together_only_where_the_group_allows_it():
    place = [node("a", shared("g0", used=0.5), shared("g1", used=0.75))]
    assert given(place, pending(shares=0.75)) == {}
    shares = given(place, pending(shares=0.75), allow_split=True)["s"]
    assert [(s.device, s.amount) for s in shares] == [("g0", 500), ("g1", 250)]


def test_even_then_one_device_is_better():
    place = [node("a", shared("g0"), shared("g1", used=0.5))]
    shares = given(place, pending(shares=0.5), allow_split=True)["s"]
    assert devices(shares) == ["g1"]
    assert len(given(place, pending(shares=1.5), allow_split=True)["s"]) == 2


# --- which nodes -------------------------------------------------------------------


def three() -> list[Any]:
    return [node(name, host(8), labels={"zone": name}) for name in "abc"]


def where(places: Any, /, **changes: Any) -> str:
    decided = plan(snapshot(places, [pending(cpu=1, **changes)]))
    return decided.placements[0].node if decided.placements else decided.waiting["s"]


def test_named_nodes_are_a_must_or_a_wish():
    assert where(three(), nodes=("b",)) == "b"
    assert (
        where(three(), nodes=("x",)) == "3 of 3 nodes: is not one of the nodes it names"
    )
    assert where(three(), nodes=("b",), only_nodes=False) == "b"
    full = [three()[0], node("b", host(8, used=8))]
    assert where(full, nodes=("b",), only_nodes=False) == "a"


def test_a_node_where_it_has_just_failed_comes_last():
    assert where(three(), avoid=("a", "b")) == "c"
    assert where(three()[:1], avoid=("a",)) == "a"


def test_labels_must_be_there():
    assert where(three(), labels={"zone": "c"}) == "c"
    told = where(three(), labels={"zone": "x"})
    assert told == "3 of 3 nodes: is not labelled zone=x"


def test_a_node_runs_no_more_containers_than_it_may():
    place = node("a", host(8), containers=1, max_containers=3)
    queue = [pending(f"s{i}", cpu=1) for i in range(3)]
    decided = plan(snapshot([place], queue))
    assert len(decided.placements) == 2
    assert decided.waiting == {"s2": "1 of 1 node: runs as many containers as it may"}


def test_the_reason_names_what_is_missing_beside_the_scarcest_and_who_is_nearest():
    gib = 1 << 30
    nodes = [
        node("gpu-01", host(8, mem=16 * gib), gpu("a0"), gpu("a1")),
        node("gpu-03", host(8, mem=56 * gib), gpu("b0"), gpu("b1")),
        node("cpu-01", host(8, mem=96 * gib)),
    ]
    decided = plan(snapshot(nodes, [pending(gpus=2, mem=64 * gib)]))
    assert decided.waiting["s"] == (
        "2 of 3 nodes have 2 cuda.device free but not 64 GiB mem;"
        " nearest gpu-03 lacks 8 GiB"
    )
