"""The default placement policy keeps free what people usually ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.fragmentation import (
    PACKING,
    Fragmentation,
    FragmentationScorer,
    learn,
)
from backendai_hub.scheduling.mix import AHEAD, weigh
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.remains import find_worth
from backendai_hub.scheduling.scoring import Demand
from backendai_hub.scheduling.shapes import read_demand
from backendai_hub.scheduling.snapshot import (
    Ask,
    DeviceState,
    GroupPolicy,
    Member,
    NodeState,
    PendingSession,
)
from backendai_hub.scheduling.usual import MOST, MOST_PLAIN, asks_of, find_usual, gather
from tests.unit.scheduling_snapshots import (
    GIB,
    ask,
    host,
    node,
    pending,
    shared,
    snapshot,
)

Typical = Sequence[tuple[ResourceSlots, float]]
INSTANCE, HALF = "cuda.device:1g.10gb", "cuda.device:3g.40gb"
PROFILES = {INSTANCE: tuple(1 << i for i in range(6)), HALF: (0b000111, 0b111000)}


def gpus(name: str, *used: float) -> list[DeviceState]:
    return [shared(f"{name}-{i}", used=part) for i, part in enumerate(used)]


def place(
    nodes: Sequence[NodeState], *queue: PendingSession, typical: Typical = ()
) -> dict[str, Any]:
    often = tuple((Ask(request), 1000.0 * weight) for request, weight in typical)
    policy = GroupPolicy(placement="fragmentation", typical=often)
    decided = plan(snapshot(nodes, queue, policy=policy))
    return {p.session: p for p in decided.placements}


def where(
    nodes: Sequence[NodeState], *queue: PendingSession, typical: Typical = ()
) -> dict[str, str]:
    return {s: p.node for s, p in place(nodes, *queue, typical=typical).items()}


def demands_of(cluster: Cluster, typical: Typical) -> list[tuple[Demand, float]]:
    return [(read_demand(cluster, request), weight) for request, weight in typical]


def scorer_of(cluster: Cluster, typical: Typical) -> FragmentationScorer:
    return Fragmentation().scorer(cluster, demands_of(cluster, typical))


# --- worked examples ----------------------------------------------------------------


def test_a_half_goes_beside_another_half_so_that_whole_devices_stay():
    begun = node("begun", host(16), *gpus("b", 0.5, 0))
    idle = node("idle", host(16), *gpus("i", 0, 0))
    usual = [(ask(cpu=1, shares=1), 1), (ask(cpu=1, shares=2), 1)]
    placed = place([idle, begun], pending(cpu=1, shares=0.5), typical=usual)["s"]
    assert placed.node == "begun"
    assert [s.device for s in placed.shares if s.slot == "cuda.shares"] == ["b-0"]


def test_what_nobody_asks_for_may_be_broken_up():
    thirds = [(ask(cpu=1, shares=0.3), 1)]
    # 0.3 beside 0.4 leaves 0.3, which is used up; beside 0.5 it leaves 0.2 to nobody.
    tight = node("tight", host(16), *gpus("t", 0.4))
    loose = node("loose", host(16), *gpus("l", 0.5))
    nodes = [loose, tight]
    assert where(nodes, pending(cpu=1, shares=0.3), typical=thirds) == {"s": "tight"}


def test_a_session_that_wants_many_cores_goes_where_cores_are_to_spare():
    usual = [(ask(cpu=8, shares=1), 1)]
    lean = node("lean", host(32), *gpus("l", 0, 0, 0, 0))
    rich = node("rich", host(64), *gpus("r", 0, 0, 0, 0))
    # 16 cores on the lean node would leave another GPU without any.
    cluster = Cluster([lean, rich])
    scorer = scorer_of(cluster, usual)
    wanted = read_demand(cluster, ask(cpu=16, shares=1))
    lost = scorer.score(wanted, np.arange(2))
    # Five devices are asked for on each, which has four: 2.3 by all, 4 by one more.
    # All cores of the lean node are needed for that, and may turn out not to suffice.
    assert scorer.usable().tolist() == pytest.approx([3403, 3439], rel=0.001)
    assert lost.tolist() == pytest.approx([1012, 863], rel=0.001)
    placed = where([lean, rich], pending(cpu=16, shares=1), typical=usual)
    assert placed == {"s": "rich"}


def test_the_only_node_for_eight_devices_is_used_last_though_few_ask_for_it():
    usual = [(ask(cpu=1, shares=1), 1000), (ask(cpu=1, shares=8), 1)]
    wide = node("wide", host(64), *gpus("w", *([0] * 8)))
    small = [node(f"small-{i}", host(8), *gpus(f"s{i}", 0)) for i in range(4)]
    queue = [pending(f"s{i}", cpu=1, shares=1) for i in range(4)]
    placed = where([wide, *small], *queue, typical=usual)
    assert "wide" not in placed.values()


def test_plain_jobs_stay_off_nodes_with_accelerators_while_there_are_others():
    plain = node("plain", host(4))
    fast = node("fast", host(64), *gpus("f", 0, 0))
    queue = [pending(f"s{i}", cpu=2) for i in range(3)]
    assert where([fast, plain], *queue) == {"s0": "plain", "s1": "plain", "s2": "fast"}


def test_plain_jobs_stay_off_even_where_no_accelerator_is_free():
    busy = node("busy", host(64), *gpus("f", 1, 1))
    assert where([busy, node("plain", host(4))], pending(cpu=2)) == {"s": "plain"}


def test_a_plain_job_takes_cores_that_no_device_needs():
    usual = [(ask(cpu=8, shares=1), 1)]
    full = node("full", host(16), *gpus("u", 1, 1))
    free = node("free", host(16), *gpus("e", 0, 0))
    assert where([free, full], pending(cpu=8), typical=usual) == {"s": "full"}


def test_among_equals_the_fuller_node_is_taken():
    usual = [(ask(shares=1), 1)]
    begun = node("begun", host(64), *gpus("b", 1, 0, 0))
    idle = node("idle", host(64), *gpus("i", 0, 0, 0))
    assert where([idle, begun], pending(shares=1), typical=usual) == {"s": "begun"}


def test_small_nodes_are_filled_before_a_wide_one_that_has_been_begun():
    usual = [(ask(cpu=1, shares=1), 1000), (ask(cpu=1, shares=8), 20)]
    # Three of eight free are not enough for who wants eight, but may be eight soon.
    wide = node("wide", host(64), *gpus("w", 1, 1, 1, 1, 1, 0, 0, 0))
    small = node("small", host(8), *gpus("s", 0, 0, 0, 0))
    placed = where([wide, small], pending(cpu=1, shares=1), typical=usual)
    assert placed == {"s": "small"}


def test_of_two_begun_nodes_the_one_that_is_nearly_free_is_left_alone():
    usual = [(ask(cpu=1, shares=1), 1), (ask(cpu=1, shares=8), 1)]
    nearly_free = node("free", host(64), *gpus("f", 1, 0, 0, 0, 0, 0, 0, 0))
    nearly_full = node("full", host(64), *gpus("u", 1, 1, 1, 1, 1, 1, 0, 0))
    cluster = Cluster([nearly_free, nearly_full])
    wanted = read_demand(cluster, ask(cpu=1, shares=1))
    lost = scorer_of(cluster, usual).score(wanted, np.arange(2))
    assert lost[1] + 100 < lost[0]


@pytest.mark.parametrize(("used", "usable"), [(0, 8000), (1, 3500), (2, 1500), (8, 0)])
def test_what_is_there_counts_half_for_each_device_that_is_missing(
    used: int, usable: float
):
    devices = gpus("a", *([1] * used + [0] * (8 - used)))
    cluster = Cluster([node("a", host(64), *devices)])
    wide = ResourceSlots(ask(cpu=1, shares=8))
    mix, free, open_ = weigh(
        cluster, find_usual(cluster, demands_of(cluster, [(wide, 1)]))
    )
    reached = mix.bound(mix.open_to(open_, np.arange(1)), free)
    mix.use_soon(reached, (reached >= 8000).astype(np.float32))
    assert reached.tolist() == [[usable]]


def weights_of(cluster: Cluster, *asked: Demand) -> list[float]:
    """Return what requests that come equally often weigh."""
    mix, _, _ = weigh(cluster, find_usual(cluster, [(demand, 1.0) for demand in asked]))
    weights = dict(zip(mix.demands, mix.weights.tolist(), strict=True))
    return [weights[demand] for demand in asked]


def test_who_has_less_room_comes_the_more_often_to_where_there_is_some():
    # Beside the four devices there are cores for four who need one, or for two.
    cluster = Cluster([node("a", host(8), *gpus("a", 0, 0, 0, 0))])
    modest = read_demand(cluster, ask(cpu=1, shares=1))
    hungry = read_demand(cluster, ask(cpu=4, shares=1))
    one, other = weights_of(cluster, modest, hungry)
    assert other == pytest.approx(2 * one)


def test_who_asks_for_several_devices_counts_for_all_of_them():
    cluster = Cluster([node("a", host(64), *gpus("a", *([0] * 8)))])
    narrow = read_demand(cluster, ask(cpu=1, shares=1))
    wide = read_demand(cluster, ask(cpu=1, shares=4))
    one, other = weights_of(cluster, narrow, wide)
    assert other == pytest.approx(4 * one)


def test_a_node_that_never_has_room_for_a_wide_request_keeps_nothing_for_it():
    narrow = (ask(cpu=1, shares=1), 1)
    cluster = Cluster([node("small", host(64), *gpus("s", 0, 0, 0, 0))])
    wanted = read_demand(cluster, narrow[0])
    row = np.arange(1)
    alone = scorer_of(cluster, [narrow]).score(wanted, row)
    beside = scorer_of(cluster, [narrow, (ask(cpu=1, shares=8), 1)]).score(wanted, row)
    assert beside.tolist() == pytest.approx(alone.tolist())


def test_cores_are_used_up_first_where_few_would_take_them_from_devices():
    # A plain job of 32 cores finds room on either node; once 4 are gone from the first
    # it does not there any more, and what is left serves eight who want devices.
    usual = [(ask(cpu=4, shares=1), 1), (ask(cpu=32), 1)]
    scarce = node("scarce", host(34), *gpus("s", *([0] * 8)))
    ample = node("ample", host(64), *gpus("a", *([0] * 8)))
    placed = where([ample, scarce], pending(cpu=4, shares=1), typical=usual)
    assert placed == {"s": "scarce"}
    wanted = ask(cpu=4, shares=1)

    def prefer_scarce(typical: Typical) -> float:
        cluster = Cluster([ample, scarce])
        demand = read_demand(cluster, wanted)
        lost = scorer_of(cluster, typical).score(demand, np.arange(2))
        return float(lost[0] - lost[1])

    assert prefer_scarce(usual) > 2 * prefer_scarce(usual[:1])


def test_a_part_goes_where_what_is_left_is_of_use_to_somebody():
    # 0.4 beside 0.4 leaves 0.2, which nobody asks for; beside 0.6 it leaves nothing.
    usual = [(ask(cpu=1, shares=0.4), 1), (ask(cpu=1, shares=0.6), 1)]
    even = node("even", host(16), *gpus("e", 0.6))
    odd = node("odd", host(16), *gpus("o", 0.4))
    assert where([odd, even], pending(cpu=1, shares=0.4), typical=usual) == {
        "s": "even"
    }


def test_nodes_with_labels_that_somebody_needs_are_left_to_them():
    new = node("new", host(64), *gpus("n", 0), labels={"model": "new"})
    old = node("old", host(64), *gpus("o", 0), labels={"model": "old"})
    cluster = Cluster([new, old])
    anybody = read_demand(cluster, ask(cpu=1, shares=1))
    picky = anybody._replace(labels=(("model", "new"),))
    scorer = Fragmentation().scorer(cluster, [(anybody, 3.0), (picky, 1.0)])
    on_new, on_old = scorer.score(anybody, np.arange(2))
    assert on_old < on_new


def ahead_of(cores: int, *more: tuple[ResourceSlots, int]) -> float:
    """Return what is expected where four devices need eight of these cores each."""
    cluster = Cluster([node("a", host(cores), *gpus("a", 0, 0, 0, 0))])
    asked = demands_of(cluster, [(ask(cpu=8, shares=1), 1), *more])
    return weigh(cluster, find_usual(cluster, asked))[0].ahead


def test_most_are_expected_where_cores_would_run_out_before_devices():
    assert ahead_of(32) == ahead_of(25) == ahead_of(8) == AHEAD
    # Who asks for cores alone makes them short, and who finds no room does not.
    ample = ahead_of(40)
    assert ahead_of(40, (ask(cpu=8), 1)) == AHEAD
    assert ahead_of(40, (ask(cpu=64, shares=1), 100)) == ample < AHEAD


def test_fewer_are_expected_where_cores_suffice_but_never_less_than_what_is_free():
    assert ahead_of(40) == pytest.approx(AHEAD * (32 / 40) ** 5)
    assert ahead_of(45) < ahead_of(40)
    assert ahead_of(50) == ahead_of(500) > 1


@pytest.mark.parametrize(
    ("cores", "part"),
    [(8, 0.003125), (16, 0.025), (32, 0.2), (40, 0.390625), (48, 0.675), (64, 0.7)],
)
def test_what_one_more_could_use_counts_less_where_cores_run_out_sooner(
    cores: int, part: float
):
    cluster = Cluster([node("a", host(cores), *gpus("a", 0, 0, 0, 0))])
    usable = scorer_of(cluster, [(ask(cpu=8, shares=1), 1)]).usable()
    # Cores for one, two, four and more of four devices: one more could use any.
    room = 4000 / (1 + (32 / cores) ** 8) ** (1 / 8)
    asked = ahead_of(cores) * 4000
    together = asked * room / (asked + room)
    found = (1 - part) * together + part * 4000
    assert usable.tolist() == pytest.approx([found], rel=0.001)


@pytest.mark.parametrize(("width", "usable"), [(1, 0), (2, 125)])
def test_one_more_who_lacks_cores_uses_nothing_or_in_part_if_it_is_wide(
    width: int, usable: float
):
    # The core that is free serves half a device. Who wants two lacks one and a half,
    # which counts as two that are missing.
    bare = node("bare", host(16, used=15), *gpus("b", *([0] * 8)))
    idle = [node(f"n{i}", host(128), *gpus(f"n{i}", *([0] * 8))) for i in range(9)]
    usual = [(ask(cpu=2 * width, shares=width), 1)]
    found = scorer_of(Cluster([bare, *idle]), usual).usable()
    assert found[0] == pytest.approx(usable, rel=0.01, abs=0.01)


def test_one_more_is_the_likelier_who_finds_little_room_by_the_square_root():
    new = node("new", host(64), *gpus("n", 0), labels={"model": "new"})
    old = node("old", host(64), *gpus("o", 0, 0, 0), labels={"model": "old"})
    cluster = Cluster([new, old])
    anybody = read_demand(cluster, ask(cpu=1, shares=1))
    picky = anybody._replace(labels=(("model", "new"),))
    usual = find_usual(cluster, [(anybody, 1.0), (picky, 1.0)])
    mix, _, _ = weigh(cluster, usual)
    alone = dict(zip(mix.demands, mix.alone.tolist(), strict=True))
    # On one device of four, and both as much as one more counts where cores suffice.
    assert alone[picky] == pytest.approx(2 * alone[anybody])
    assert sum(alone.values()) == pytest.approx(0.7)


# --- slices -------------------------------------------------------------------------


def sliced(name: str, taken: int = 0) -> DeviceState:
    total = {"cuda.device": MILLI, INSTANCE: 6 * MILLI, HALF: 2 * MILLI}
    return DeviceState(
        id=name,
        name=name,
        total=total,
        free=total,
        kind="cuda",
        profiles=PROFILES,
        sliced=taken,
    )


def test_an_instance_is_cut_where_no_larger_one_is_lost():
    usual = [(ResourceSlots({INSTANCE: MILLI}), 1), (ResourceSlots({HALF: MILLI}), 1)]
    # One slice more leaves the first with no half; the second has none already.
    halved = node("halved", host(8), sliced("h", 0b000111))
    crumbs = node("crumbs", host(8), sliced("c", 0b001001))
    wanted = pending(request=ResourceSlots({INSTANCE: MILLI}))
    assert where([halved, crumbs], wanted, typical=usual) == {"s": "crumbs"}


def test_an_instance_is_cut_from_a_device_that_is_cut_already():
    usual = [
        (ResourceSlots({INSTANCE: MILLI}), 1),
        (ResourceSlots({"cuda.device": MILLI}), 1),
    ]
    whole = node("whole", host(8), sliced("w"))
    begun = node("begun", host(8), sliced("b", 0b1))
    wanted = pending(request=ResourceSlots({INSTANCE: MILLI}))
    assert where([whole, begun], wanted, typical=usual) == {"s": "begun"}


# --- what is learned ----------------------------------------------------------------


def test_what_has_been_learned_and_who_waits_count_with_the_labels_they_insist_on():
    labels = {"model": "new", "disk": "fast"}
    waiting = pending(cpu=1, shares=1, labels=labels)
    new = node("new", host(64), *gpus("n", 0), labels=labels)
    cluster = Cluster([new])
    learned = asks_of(waiting)
    assert learned == [Ask(waiting.request, (("disk", "fast"), ("model", "new")))]
    wanted = read_demand(cluster, waiting.request)._replace(labels=learned[0].labels)
    others = ask(cpu=1, shares=1)
    known = [(learned[0], 30.0), (Ask(others), 12.0)]
    assert gather(cluster, known, [waiting]) == [
        (wanted, 31.0),
        (read_demand(cluster, others), 12.0),
    ]


def test_a_cluster_counts_as_its_containers():
    alone, members = pending(cpu=4, shares=4), ("main", "sub")
    cluster = pending(
        members=tuple(Member(name=m, request=ask(cpu=2, shares=2)) for m in members)
    )
    assert asks_of(alone) == [Ask(ask(cpu=4, shares=4))]
    assert asks_of(cluster) == [Ask(ask(cpu=2, shares=2))] * 2


def test_what_was_asked_long_ago_counts_less():
    one, two = Demand((1,), 0, 1000), Demand((2,), 0, 2000)
    known = learn({}, [one], keep=0.5)
    known = learn(known, [two, two], keep=0.5)
    assert known == {one: pytest.approx(0.25), two: pytest.approx(1.5)}


def test_learning_in_parts_is_learning_at_once():
    demands = [Demand((n % 3,), 0, 100 * (n % 3 + 1)) for n in range(50)]
    parts = learn(learn({}, demands[:20]), demands[20:])
    assert parts == pytest.approx(learn({}, demands))


@pytest.mark.parametrize(("many", "few"), [(0.5, 8), (1, 8), (8, 0.5), (2, 1)])
def test_wide_requests_and_others_leave_a_place_to_each_other_however_rare(
    many: float, few: float
):
    cluster = Cluster([node("a", host(64), *gpus("a", *([0] * 8)))])

    def demands(shares: float, count: int, often: float) -> list[tuple[Demand, float]]:
        asked = [ask(cpu=1 + i / 10, shares=shares) for i in range(count)]
        return demands_of(cluster, [(one, often + i) for i, one in enumerate(asked)])

    common, rare = demands(many, 2 * MOST, 1000.0), demands(few, 3, 0.001)
    usual = find_usual(cluster, [*common, *rare])
    assert set(usual) == {*common[MOST:], *rare}
    assert usual == sorted(usual, key=lambda one: one[0].milli < 2 * MILLI)


def test_some_of_those_who_ask_for_no_device_are_usual_too():
    cluster = Cluster([node("a", host(64), *gpus("a", 0))])
    one = (read_demand(cluster, ask(cpu=1, shares=1)), 1.0)
    plain = [
        (read_demand(cluster, ask(cpu=1 + i)), float(i + 1))
        for i in range(2 * MOST_PLAIN)
    ]
    usual = find_usual(cluster, [one, *plain])
    assert usual == [one, *plain[: MOST_PLAIN - 1 : -1]]


# --- what crumbs of a device are worth ----------------------------------------------


def worth_of(*parts: tuple[int, float]) -> list[float]:
    sizes, often = zip(*parts, strict=True)
    return find_worth(np.array(sizes), np.array(often)).tolist()


def test_a_crumb_that_nobody_asks_for_is_worth_nothing():
    worth = worth_of((400, 1.0))
    assert [worth[left] for left in (0, 395, 400, 795, 800, 1000)] == [
        0,
        0,
        400,
        400,
        800,
        800,
    ]


def test_what_is_left_is_worth_what_those_who_come_make_of_it():
    # Of 0.9 either 0.4 and 0.4 are used, or 0.4 and 0.5 in one order or the other.
    assert worth_of((400, 1.0), (500, 1.0))[900] == pytest.approx(
        (850 + 900) / 2, abs=1
    )
    assert worth_of((400, 3.0), (500, 1.0))[900] == pytest.approx(
        0.75 * (400 + 0.75 * 400 + 0.25 * 500) + 0.25 * 900, abs=1
    )


@given(
    st.lists(
        st.tuples(st.integers(1, 1000), st.floats(0.0, 10.0)), min_size=1, max_size=8
    )
)
def test_what_is_left_is_worth_no_more_than_itself(parts):
    worth = worth_of(*parts)
    assert len(worth) == MILLI + 1
    assert all(0 <= value <= left for left, value in enumerate(worth))


def test_before_anything_is_learned_there_is_a_guess():
    cluster = Cluster([node("a", host(64), *gpus("a", *([0] * 4)))])
    assert {d.milli for d, _ in find_usual(cluster, [])} == {500, 1000, 2000, 4000}


def test_who_waits_says_what_is_usual_too():
    cluster = Cluster([node("a", host(64), *gpus("a", *([0] * 4)))])
    labels = {"model": "new"}
    queue = [pending(f"s{i}", cpu=3, shares=1, labels=labels) for i in range(30)]
    learned = [(Ask(ask(cpu=2, shares=0.5)), 5.0)]
    found = {(d.milli, d.labels): w for d, w in gather(cluster, learned, queue)}
    assert found == {(500, ()): 5.0, (1000, (("model", "new"),)): 30.0}


def test_little_that_is_known_is_made_up_for_by_a_guess():
    cluster = Cluster([node("a", host(64), *gpus("a", *([0] * 4)))])
    found = gather(cluster, [], [pending(cpu=3, shares=1)])
    assert sum(weight for _, weight in found) == pytest.approx(20)
    assert {d.milli for d, _ in found} == {500, 1000, 2000, 4000}


def test_a_cluster_without_nodes_or_accelerators_is_no_trouble():
    assert place([], pending(cpu=1)) == {}
    assert where([node("a", host(4))], pending(cpu=1)) == {"s": "a"}


# --- properties ---------------------------------------------------------------------

PARTS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
NODES = st.lists(
    st.tuples(st.sampled_from([0, 4, 8]), st.lists(PARTS, max_size=4)),
    min_size=1,
    max_size=5,
)
REQUESTS = st.tuples(
    st.sampled_from([1, 2, 4]), st.sampled_from([0, 0.25, 0.5, 1, 2, 3])
)
MIXES = st.lists(st.tuples(REQUESTS, st.integers(1, 9)), min_size=1, max_size=6)


def build(shape: Sequence[tuple[int, Sequence[float]]]) -> Cluster:
    return Cluster(
        [
            node(f"n{i}", host(max(cores, 1)), *gpus(f"g{i}", *used))
            for i, (cores, used) in enumerate(shape)
        ]
    )


def fill(cluster: Cluster, queue: Sequence[tuple[int, float]]) -> None:
    """Put each request on the first node with room."""
    for cores, part in queue:
        request = ask(cpu=cores, shares=part)
        fits = np.ones(len(cluster.nodes), bool)
        for slot, amount in request.items():
            fits &= cluster.fits(slot, amount)
        for row in np.flatnonzero(fits)[:1].tolist():
            for slot, amount in request.items():
                shares = cluster.choose_devices(row, slot, amount)
                assert shares is not None
                cluster.take(row, shares)


@given(NODES, MIXES, st.lists(REQUESTS, max_size=6))
@settings(max_examples=60, deadline=None)
def test_fragmentation_lies_between_nothing_and_what_is_free(shape, mix, queue):
    cluster = build(shape)
    scorer = scorer_of(cluster, [(ask(cpu=c, shares=p), w) for (c, p), w in mix])
    fill(cluster, queue)
    fragmentation = scorer.fragmentation()
    assert (fragmentation >= 0).all()
    assert (fragmentation <= cluster.total_left + 1e-3).all()
    np.testing.assert_allclose(
        fragmentation + scorer.usable(), cluster.total_left, atol=1e-2
    )


@given(NODES, MIXES, st.lists(REQUESTS, max_size=6), REQUESTS)
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_is_what_would_be_found_anew(shape, mix, queue, last):
    cluster = build(shape)
    typical = [(read_demand(cluster, ask(cpu=c, shares=p)), w) for (c, p), w in mix]
    weighed, free, open_ = weigh(cluster, find_usual(cluster, typical))
    remembers = FragmentationScorer(cluster, weighed, free.copy(), open_.copy())
    demand = read_demand(cluster, ask(cpu=last[0], shares=last[1]))
    for i in range(len(queue)):
        fill(cluster, queue[i : i + 1])
        remembers.score(demand, np.array([i % len(cluster.nodes)]))
    rows = np.arange(len(cluster.nodes))
    anew = FragmentationScorer(
        cluster,
        weighed,
        weighed.read_host(cluster, rows),
        weighed.read_open(cluster, rows),
    )
    np.testing.assert_array_equal(
        remembers.score(demand, rows), anew.score(demand, rows)
    )


@given(NODES, MIXES, REQUESTS)
@settings(max_examples=60, deadline=None)
def test_a_score_is_the_fragmentation_it_adds_and_a_little_packing(shape, mix, last):
    cluster = build(shape)
    scorer = scorer_of(cluster, [(ask(cpu=c, shares=p), w) for (c, p), w in mix])
    request = ask(cpu=last[0], shares=last[1])
    fits = np.ones(len(cluster.nodes), bool)
    for slot, amount in request.items():
        fits &= cluster.fits(slot, amount)
    if not last[1]:
        fits &= ~cluster.accelerated
    for row in np.flatnonzero(fits):
        demand = read_demand(cluster, request)
        score = float(scorer.score(demand, np.array([row]))[0])
        before = scorer.fragmentation()[row]
        shares = [
            share
            for slot, amount in request.items()
            for share in cluster.choose_devices(int(row), slot, amount) or ()
        ]
        cluster.take(int(row), shares)
        grown = scorer.fragmentation()[row] - before + demand.milli
        packing = PACKING * cluster.total_left[row] + 0.05
        cluster.give(int(row), shares)
        assert grown - 0.05 <= score <= grown + packing


@given(NODES, MIXES, st.lists(REQUESTS, min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_the_same_is_decided_again(shape, mix, queue):
    nodes = [
        node(f"n{i}", host(max(cores, 1), mem=GIB), *gpus(f"g{i}", *used))
        for i, (cores, used) in enumerate(shape)
    ]
    typical = [(ask(cpu=c, shares=p), float(w)) for (c, p), w in mix]
    sessions = [pending(f"s{i}", cpu=c, shares=p) for i, (c, p) in enumerate(queue)]
    assert place(nodes, *sessions, typical=typical) == place(
        nodes, *sessions, typical=typical
    )
