"""The default way to choose a node: where least is lost of what will be used.

Requests like those that people usually make go on coming, and each asks every node for
the part of what it can use there that the node is of all its room: where few nodes
serve a request, it comes to each of them the more often. Together they use a node's
accelerators, cores and memory, until one of the three is exhausted, which may be any of
those of which there is hardly more than enough. What will be used of the node's
accelerators before is *usable*; the rest of what is free is *fragmented*.
A session goes where fragmentation grows least: that is where what is usable shrinks
least, since its own part leaves any node it is placed on.

So the few nodes that can still take eight devices, or have the model somebody needs,
are used up last by those who could go elsewhere. Where cores or memory are short, nodes
are kept for those who use most devices with them, and not for those who use few.

One measure serves whole devices, fractions and instances of sliced devices: all are
counted in thousandths of a device.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.alike import Alike
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.mix import EXTRA, Matrix, Mix, find_usual, weigh
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.sliced import SlicedRoom

Asked = TypeVar("Asked", bound=Hashable)

FORGOTTEN: Final = 0.05
"""What has come so rarely and so long ago counts no more."""

PACKING: Final = 0.001
"""How much a free device counts against a node, beside one that becomes unusable.

It decides between nodes that are otherwise equal: the fuller one is taken.
"""
_OFF: Final = 1e6
"""Added for plain requests on nodes with accelerators: they go there last."""
_FEW: Final = 24
"""Of so many nodes it is not asked which are in the same state."""


class Fragmentation:
    """Keeps free what people usually ask for."""

    name = "fragmentation"

    def scorer(
        self, cluster: Cluster, typical: Sequence[tuple[Demand, float]]
    ) -> FragmentationScorer:
        """Weigh what is *typical* by what this cluster has free now."""
        usual = find_usual(cluster, typical)
        return FragmentationScorer(cluster, *weigh(cluster, usual))


class FragmentationScorer:
    """Knows of every node what is usable of it, and what would be after a demand."""

    def __init__(self, cluster: Cluster, mix: Mix, free: Matrix, open_: Matrix) -> None:
        self._cluster = cluster
        self._mix = mix
        self._sliced = SlicedRoom(cluster, mix)
        self._free, self._open = free, open_
        self._seen = self._compared = len(cluster.log)
        self._fixed: IntVector = 2 * mix.kind + cluster.accelerated
        """What scores hang on of what a node is."""
        rows = np.arange(len(cluster.nodes))
        self._alike = Alike(self._describe(rows))
        some, which = self._alike.choose(rows)
        self._usable = mix.expect(free[some], open_[some], some)[which]

    def usable(self) -> FloatVector:
        """Return how much of each node usual requests will use, as expected."""
        self._renew()
        return self._usable.copy()

    def fragmentation(self) -> FloatVector:
        """Return how much of each node is free without being usable, as expected."""
        self._renew()
        free = self._open[:, :-EXTRA].max(axis=1, initial=0.0)
        free = np.maximum(free, self._cluster.total_left)
        fragmented: FloatVector = np.maximum(0.0, free - self._usable)
        return fragmented

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        """Return by how much *demand* shrinks what is usable of each of *rows*."""
        changed = self._read_changed()
        if len(rows) <= _FEW:
            return self._score(demand, rows, changed)
        self._compare()
        some, which = self._alike.choose(rows)
        return self._score(demand, some, changed)[which]

    def _score(
        self, demand: Demand, rows: IntVector, changed: IntVector
    ) -> FloatVector:
        asked = [demand.amounts[column] for column in self._mix.host]
        free = self._free[rows] - np.array(asked, np.float32)
        left = self._cluster.total_left[rows]
        plain = not demand.milli
        after = self._open[rows] if plain else self._open_after(demand, rows)
        # What has changed and what would change are reckoned with together.
        expected = self._mix.expect(
            np.concatenate([self._free[changed], free]),
            np.concatenate([self._open[changed], after]),
            np.concatenate([changed, rows]),
        )
        self._usable[changed] = expected[: len(changed)]
        shrinks: FloatVector = self._usable[rows] - expected[len(changed) :]
        shrinks += PACKING * (left - demand.milli)
        if plain:
            shrinks += _OFF * self._cluster.accelerated[rows]
        return shrinks

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        """Choose the tightest, the first of equals: big gaps stay for big requests."""
        del demand
        left = self._cluster.left[row]
        return min(fitting, key=left.__getitem__)

    def _open_after(self, demand: Demand, rows: IntVector) -> Matrix:
        """Return what devices could give if *demand* had its part of each of *rows*."""
        if self._sliced:
            return self._sliced.open_after(demand, rows)
        of_one, after = self._mix.of_one, self._open[rows]
        if demand.milli >= MILLI:
            # Untouched devices count for every request, so each misses them alike.
            after += -demand.milli / MILLI * of_one[MILLI]
            return after
        left = self._cluster.left.T.take(rows, axis=1)
        tight = np.where(left >= demand.milli, left, MILLI).min(axis=0)
        after += of_one.take(tight - demand.milli, axis=0)
        after -= of_one.take(tight, axis=0)
        return after

    def _renew(self) -> None:
        rows = self._read_changed()
        if len(rows):
            free, open_ = self._free[rows], self._open[rows]
            self._usable[rows] = self._mix.expect(free, open_, rows)

    def _read_changed(self) -> IntVector:
        """Read what the nodes have left that have changed; return which these are."""
        log = self._cluster.log
        rows: IntVector = np.array([*dict.fromkeys(log[self._seen :])], np.int64)
        self._seen = len(log)
        if len(rows):
            self._free[rows] = self._mix.read_host(self._cluster, rows)
            self._open[rows] = self._mix.read_open(self._cluster, rows)
            if self._seen - self._compared > _FEW:
                self._compare()
        return rows

    def _compare(self) -> None:
        """Find out in which states nodes are that have changed."""
        rows = [*dict.fromkeys(self._cluster.log[self._compared : self._seen])]
        self._compared = self._seen
        if rows:
            self._alike.change(rows, self._describe(np.array(rows)))

    def _describe(self, rows: IntVector) -> list[bytes]:
        """Return everything that scores of *rows* hang on."""
        if self._sliced:
            left = self._sliced.describe(rows)
        else:
            # It makes no difference which of a node's devices has how much left.
            left = np.sort(self._cluster.left[rows], axis=1)
        whole = self._cluster.total_left[rows, None]
        parts = (left, whole, self._fixed[rows, None], self._free[rows])
        told = np.concatenate([p.view(np.uint8) for p in parts], axis=1).tobytes()
        size = len(told) // len(rows) if len(rows) else 1
        return [told[at : at + size] for at in range(0, len(told), size)]


def learn(
    known: Mapping[Asked, float], asked: Sequence[Asked], *, keep: float = 0.999
) -> dict[Asked, float]:
    """Return how often requests come, after *asked* has come in this order.

    What came before the last request counts *keep* as much as that one, so that with
    0.999 half of the weight is on the last 700 requests.
    """
    weights = dict(known)
    grown = 1.0
    for request in asked:
        grown /= keep
        weights[request] = weights.get(request, 0.0) + grown
    return {
        request: weight / grown
        for request, weight in weights.items()
        if weight > grown * FORGOTTEN
    }
