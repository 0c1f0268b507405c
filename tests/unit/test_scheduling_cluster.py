"""What is added up about nodes stays true, whatever is taken, given back and tried."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.scoring import Demand
from backendai_hub.scheduling.snapshot import DeviceState, NodeState, Share
from backendai_hub.scheduling.strategies import RankedScorer
from tests.unit.scheduling_snapshots import gpu, host, node, shared
from tests.unit.test_scheduling_devices import LARGE, SMALL, sliced

AGGREGATES = ("free", "largest", "untouched", "total", "biggest", "units")
ACCELERATORS = ("left", "full_free", "max_left", "total_left")
KINDS = ("gpu", "shared", "sliced", "host")


def build(kinds: list[list[str]]) -> list[NodeState]:
    made = {"gpu": gpu, "shared": shared, "sliced": sliced}
    return [
        node(
            f"n{i}",
            *(
                host(2, mem=3, name=f"h{j}")
                if kind == "host"
                else made[kind](f"{i}/{j}")
                for j, kind in enumerate(row)
            ),
        )
        for i, row in enumerate(kinds)
    ]


class Taking(RuleBasedStateMachine):
    """Shares are taken and given back; a copy may be tried on and dropped."""

    @initialize(
        kinds=st.lists(
            st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
            min_size=1,
            max_size=3,
        )
    )
    def start(self, kinds: list[list[str]]) -> None:
        self.nodes = build(kinds)
        self.cluster = Cluster(self.nodes)
        self.taken: list[tuple[int, list[Share]]] = []
        self.scorer = RankedScorer(self.cluster, sign=1)

    @rule(
        row=st.integers(0, 2),
        slot=st.sampled_from(
            ["cpu", "mem", "cuda.device", "cuda.shares", SMALL, LARGE]
        ),
        amount=st.sampled_from([1, 500, 1000, 2000, 3000]),
        split=st.booleans(),
    )
    def take(self, row: int, slot: str, amount: int, *, split: bool) -> None:
        row %= len(self.nodes)
        fits = bool(self.cluster.fits(slot, amount)[row])
        shares = self.cluster.choose_devices(row, slot, amount, split=split)
        assert shares is not None if fits else split or shares is None
        if shares is not None:
            assert sum(s.amount for s in shares) == amount
            self.cluster.take(row, shares)
            self.taken.append((row, shares))

    @rule(which=st.integers(0, 20))
    def give_back(self, which: int) -> None:
        if self.taken:
            row, shares = self.taken.pop(which % len(self.taken))
            self.cluster.give(row, shares)

    @rule(which=st.integers(0, 20))
    def try_on_a_copy(self, which: int) -> None:
        fork = self.cluster.fork()
        for row, shares in self.taken[which:]:
            fork.give(row, shares)
        for row in range(len(self.nodes)):
            fork.take(row, fork.left_on(row))
            for slot in fork.slots:
                assert fork.choose_devices(row, slot, 1) is None

    @invariant()
    def nothing_is_given_twice(self) -> None:
        for name in AGGREGATES:
            assert (getattr(self.cluster, name) >= 0).all()

    @invariant()
    def everything_equals_what_is_added_up_anew(self) -> None:
        again = Cluster([self._now(row) for row in range(len(self.nodes))])
        for name in (*AGGREGATES, *ACCELERATORS):
            mine, anew = getattr(self.cluster, name), getattr(again, name)
            assert np.array_equal(mine, anew), (name, mine, anew)

    @invariant()
    def ranks_that_are_kept_equal_those_made_anew(self) -> None:
        rows = np.arange(len(self.nodes))
        for column in range(len(self.cluster.slots)):
            amounts = tuple(int(c == column) for c in range(len(self.cluster.slots)))
            anew = RankedScorer(self.cluster, sign=1).score(Demand(amounts), rows)
            assert np.array_equal(self.scorer.score(Demand(amounts), rows), anew)

    def _now(self, row: int) -> NodeState:
        free = {d.id: dict(d.free) for d in self.nodes[row].devices}
        slices = dict.fromkeys(free, 0)
        for where, shares in self.taken:
            for share in shares if where == row else ():
                if share.slices:
                    assert not slices[share.device] & share.slices
                    slices[share.device] |= share.slices
                else:
                    free[share.device][share.slot] -= share.amount
                    assert free[share.device][share.slot] >= 0
        devices = tuple(
            replace(d, free=free[d.id], sliced=slices[d.id])
            for d in self.nodes[row].devices
        )
        self._check_modes(devices)
        return replace(self.nodes[row], devices=devices)

    def _check_modes(self, devices: tuple[DeviceState, ...]) -> None:
        for device in devices:
            if device.sliced:
                assert device.free["cuda.device"] == MILLI, "in slices and in parts"


TestTaking: Any = Taking.TestCase
TestTaking.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
