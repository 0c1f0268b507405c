"""The ways to choose a node that users of the field know by name.

All prefer nodes with the fewest *unutilised capabilities*: slots that a request does
not ask for and the node still has. So jobs without accelerators stay off nodes with
some. Then ``concentrated`` takes the node with least left, ``dispersed`` the one with
most, comparing what is asked for in the order of how scarce it usually is;
``roundrobin`` takes turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector

PRIORITY = ("cuda", "rocm", "tpu", "cpu", "mem")
_EXACT = 52
"""Up to so many bits, floats hold integers exactly."""
_FEW = 8


def comparing_order(slots: Sequence[str]) -> list[int]:
    """Return the columns of *slots* in the order in which they are compared."""

    def key(column: int) -> tuple[int, str]:
        slot = slots[column]
        family = slot.partition(".")[0]
        known = PRIORITY.index(family) if family in PRIORITY else len(PRIORITY)
        return known, slot

    return sorted(range(len(slots)), key=key)


class _Ranking:
    """One number per node that orders nodes as their tuples would.

    The tuple is (unutilised capabilities, what is left of each slot asked for); what
    does not fit into a float's exact bits is cut off at the least important end.
    """

    def __init__(self, cluster: Cluster, columns: Sequence[int], *, sign: int) -> None:
        self._log = cluster.log
        self._sign = sign
        count = len(cluster.slots)
        self._others = [cluster.free_of(c) for c in range(count) if c not in columns]
        self._top = budget = _EXACT - count.bit_length()
        self._parts: list[tuple[IntVector, int, int]] = []
        for column in columns:
            most = int(cluster.total_of(column).max(initial=0))
            width = min(most.bit_length(), budget)
            budget -= width
            cut = most.bit_length() - width
            self._parts.append((cluster.free_of(column), cut, budget))
        self._all: IntVector = np.arange(len(cluster.nodes))
        self.values: FloatVector = self._compute(self._all)
        self._seen = len(self._log)

    def _compute(self, rows: IntVector) -> FloatVector:
        left = np.zeros(len(rows), np.int64)
        for free, cut, place in self._parts:
            left += (free[rows] >> cut) << place
        idle = np.zeros(len(rows), np.int64)
        for free in self._others:
            idle += free[rows] > 0
        return ((idle << self._top) + self._sign * left).astype(np.float64)

    def renew(self) -> FloatVector:
        """Return the ranks, after renewing those of nodes that have changed."""
        count = len(self._log)
        if self._seen < count:
            changed = self._log[self._seen :]
            self._seen = count
            if len(changed) <= _FEW:
                for row in changed:
                    self.values[row] = self._rank(row)
            elif len(changed) * 2 > len(self.values):
                self.values[:] = self._compute(self._all)
            else:
                rows = np.array(changed, np.int64)
                self.values[rows] = self._compute(rows)
        return self.values

    def _rank(self, row: int) -> int:
        left = idle = 0
        for free, cut, place in self._parts:
            left += (free.item(row) >> cut) << place
        for free in self._others:
            if free.item(row) > 0:
                idle += 1
        return (idle << self._top) + self._sign * left


class RankedScorer:
    """Scores nodes by what they have left."""

    anywhere = True

    def __init__(self, cluster: Cluster, *, sign: int) -> None:
        self._cluster = cluster
        self._sign = sign
        self._order = comparing_order(cluster.slots)
        self._rankings: dict[tuple[int, ...], _Ranking] = {}
        self._by_demand: dict[tuple[int, ...], _Ranking] = {}
        self._all = len(cluster.nodes)

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        """Return the ranks of *rows*."""
        ranking = self._by_demand.get(demand.amounts)
        if ranking is None:
            ranking = self._by_demand[demand.amounts] = self._ranking(demand)
        ranks = ranking.renew()
        return ranks if len(rows) == self._all else ranks[rows]

    def _ranking(self, demand: Demand) -> _Ranking:
        asked = tuple(c for c in self._order if demand.amounts[c])
        if asked not in self._rankings:
            self._rankings[asked] = _Ranking(self._cluster, asked, sign=self._sign)
        return self._rankings[asked]

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        """Choose the tightest."""
        left = self._cluster.left[row]
        return min(fitting, key=left.__getitem__)


class _InTurn(RankedScorer):
    """Gives nodes with equally few unutilised capabilities their turns."""

    def __init__(self, cluster: Cluster, last: str) -> None:
        super().__init__(cluster, sign=0)
        ids = sorted(range(len(cluster.nodes)), key=lambda i: cluster.nodes[i].id)
        self._turn = np.empty(len(ids), np.int64)
        self._turn[ids] = np.arange(len(ids))
        row = cluster.row.get(last)
        self._next = 0 if row is None else int(self._turn[row]) + 1

    def pick(self, scores: FloatVector) -> int:
        """Pick the next in turn of the best."""
        best = np.flatnonzero(scores == scores.min())
        turns = (self._turn[best] - self._next) % len(self._turn)
        row = int(best[int(np.argmin(turns))])
        self._next = int(self._turn[row]) + 1
        return row


class Concentrated:
    """Fills nodes that have least left, so that others stay empty."""

    name = "concentrated"

    def scorer(
        self, cluster: Cluster, typical: Sequence[tuple[Demand, float]]
    ) -> RankedScorer:
        """Score by what is left, least first."""
        return RankedScorer(cluster, sign=1)


class Dispersed:
    """Spreads sessions to the nodes that have most left."""

    name = "dispersed"

    def scorer(
        self, cluster: Cluster, typical: Sequence[tuple[Demand, float]]
    ) -> RankedScorer:
        """Score by what is left, most first."""
        return RankedScorer(cluster, sign=-1)


class RoundRobin:
    """Takes turns over the nodes in the order of their ids."""

    name = "roundrobin"

    def __init__(self, last: str = "") -> None:
        self._last = last

    def after(self, last: str) -> RoundRobin:
        """Return the policy that goes on after the node *last*."""
        return RoundRobin(last)

    def scorer(
        self, cluster: Cluster, typical: Sequence[tuple[Demand, float]]
    ) -> RankedScorer:
        """Score by unutilised capabilities alone, and take turns."""
        return _InTurn(cluster, self._last)
