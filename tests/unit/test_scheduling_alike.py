"""Nodes in the same state are reckoned with once, and each gets its own score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.alike import Alike
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.fragmentation import Fragmentation, FragmentationScorer
from backendai_hub.scheduling.mix import Matrix, Mix, find_usual, weigh
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.shapes import read_demand
from backendai_hub.scheduling.snapshot import DeviceState
from tests.unit.scheduling_snapshots import ask, host, node, shared

MANY = 60
STATES = st.sampled_from([b"empty", b"half", b"full"])
MOVES = st.lists(st.tuples(st.integers(0, 5), STATES), max_size=12)


@given(st.lists(STATES, min_size=6, max_size=6), MOVES, st.sets(st.integers(0, 5)))
def test_one_node_is_chosen_for_each_state_whatever_has_changed(states, moves, asked):
    alike = Alike(states)
    for row, state in moves:
        states[row] = state
        alike.change([row], [state])
    rows = np.array(sorted(asked), np.int64)
    chosen, which = alike.choose(rows)
    told = [states[row] for row in chosen[which]]
    assert told == [states[row] for row in rows]
    assert len(chosen) == len(set(told))


PARTS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
KINDS = st.lists(
    st.tuples(st.sampled_from([1, 4, 8]), st.lists(PARTS, max_size=3)),
    min_size=1,
    max_size=4,
)
REQUESTS = st.tuples(
    st.sampled_from([1, 2, 4]), st.sampled_from([0, 0.25, 0.5, 1, 2, 3])
)
MIXES = st.lists(st.tuples(REQUESTS, st.integers(1, 9)), min_size=1, max_size=6)
HALF, EIGHTH = "cuda.device:4g.40gb", "cuda.device:1g.10gb"
PROFILES = {HALF: (0x0F, 0xF0), EIGHTH: tuple(1 << i for i in range(8))}


def sliced(name: str, taken: int) -> DeviceState:
    total = {"cuda.device": MILLI, HALF: 2 * MILLI, EIGHTH: 8 * MILLI}
    return DeviceState(
        id=name,
        name=name,
        total=total,
        free=total,
        kind="cuda",
        profiles=PROFILES,
        sliced=taken,
    )


def many(kinds: Sequence[tuple[int, Sequence[float]]]) -> Cluster:
    """Build many nodes of few kinds; half have their devices the other way round."""
    nodes = []
    for number in range(MANY):
        turn, kind = divmod(number, len(kinds))
        cores, used = kinds[kind]
        devices = [
            shared(f"{number}/{i}", used=part)
            for i, part in enumerate(used[:: (-1) ** turn])
        ]
        nodes.append(node(f"n{number}", host(cores), *devices))
    return Cluster(nodes)


def each_alone(scorer: FragmentationScorer, demand: Demand, count: int) -> FloatVector:
    return np.array([scorer.score(demand, np.array([i]))[0] for i in range(count)])


@given(KINDS, MIXES, st.lists(st.integers(0, MANY - 1), max_size=40), REQUESTS)
@example([(4, [0.5, 0.5]), (4, [1.0, 0.0])], [((1, 0.5), 1), ((1, 1), 1)], [], (1, 0.5))
@settings(max_examples=60, deadline=None)
def test_many_nodes_get_the_scores_that_each_would_get_alone(kinds, mix, taken, last):
    cluster = many(kinds)
    typical = [(read_demand(cluster, ask(cpu=c, shares=p)), w) for (c, p), w in mix]
    mix, free, open_ = weigh(cluster, find_usual(cluster, typical))
    scorer = FragmentationScorer(cluster, mix, free, open_)
    demand = read_demand(cluster, ask(cpu=last[0], shares=last[1]))
    rows = np.arange(MANY)
    np.testing.assert_array_equal(scorer.usable(), mix.expect(free, open_, rows))
    scorer.score(demand, rows)
    for number, row in enumerate(taken):
        cluster.take(row, cluster.left_on(row)[number % 2 :][:1])
    np.testing.assert_array_equal(
        scorer.score(demand, rows), each_alone(scorer, demand, MANY)
    )


@pytest.mark.parametrize("slot", [HALF, EIGHTH, "cuda.device"])
def test_where_slices_have_been_cut_makes_a_difference(slot: str):
    cuts = (0, 0b1, 0b11, 0b10001, 0x0F, 0xFF)
    count = 3 * MANY
    cluster = Cluster(
        [node(f"n{i}", host(8), sliced(f"g{i}", cuts[i % 6])) for i in range(count)]
    )
    typical = [
        (read_demand(cluster, ResourceSlots({one: MILLI})), 1.0)
        for one in ("cuda.device", HALF, EIGHTH)
    ]
    scorer = Fragmentation().scorer(cluster, typical)
    demand = read_demand(cluster, ResourceSlots({slot: MILLI}))
    rows = np.flatnonzero(cluster.fits(slot, MILLI))
    alone = each_alone(scorer, demand, count)
    assert len(rows) >= MANY // 2
    np.testing.assert_array_equal(scorer.score(demand, rows), alone[rows])


class Counted(Mix):
    """A mix that says of how many nodes it has reckoned what will be used."""

    def __init__(self, mix: Mix) -> None:
        vars(self).update(vars(mix))
        self.reckoned = 0

    def expect(self, free: Matrix, open_: Matrix, rows: IntVector) -> FloatVector:
        self.reckoned += len(rows)
        return super().expect(free, open_, rows)


def test_as_many_nodes_are_reckoned_with_as_there_are_states():
    cluster = many([(8, [0.0, 0.5]), (4, [0.0])])
    demand = read_demand(cluster, ask(cpu=1, shares=0.5))
    mix, free, open_ = weigh(cluster, find_usual(cluster, [(demand, 1.0)]))
    counted = Counted(mix)
    scorer = FragmentationScorer(cluster, counted, free, open_)
    assert counted.reckoned == 2
    for row in (0, 2, 4):
        cluster.take(row, cluster.left_on(row))
    scorer.score(demand, np.arange(MANY))
    # The three that have changed, and what two kinds and the full ones would be.
    assert counted.reckoned == 2 + 3 + 3
