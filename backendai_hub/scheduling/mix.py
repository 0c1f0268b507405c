"""What people usually ask for, as arrays: how much of a node will be used?

*Steps* are the amounts that are asked of one device: its fractions, and 1000 for whole
devices. What a node has *open* for a step is what is left, in all, on devices with at
least that much left.

Devices become free again. Where a request for several devices lacks some, those that
are free count in part all the same, half as much for each that is missing: a node that
is nearly free is sooner whole again than one that is nearly full.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.remains import find_worth
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.usual import (
    LOOKED_AT,
    MOST,
    Usual,
    find_usual,
    gather,
)

__all__ = ["LOOKED_AT", "MOST", "Matrix", "Mix", "find_usual", "gather", "weigh"]

Matrix = NDArray[np.float32]

AHEAD: Final = 10.0
"""Requests are expected that want so many times as many devices as are free, where
cores or memory would run out first."""
_STEEPLY, _AMPLE = 5, 0.65
"""How fast fewer are expected where these suffice, and when no fewer: where so small
a part of them is needed."""
_SHARPLY: Final = 3
"""How sharply the first that is exhausted counts alone: by two to the power of this."""
ONE_MORE, _AT_MOST = 0.2, 0.7
"""Which part of what is expected is what one more request could use, alone: the first,
divided by the cube of how short cores or memory are, and the second at most."""
EXTRA: Final = 2
"""Columns that nodes have open beside steps and profiles: what all of it is worth, and
one for requests without accelerators, which have no such bound."""
_ALMOST: Final = 1 - 1e-6
"""Numbers are short: what misses a need by less than this part meets it."""
_TOGETHER: Final = 400
"""So many nodes are reckoned with at a time: few enough for what is found out about
them to stay in the processor's cache, and in memory that the process has already."""
_MOST_MIXES: Final = 64
"""So many mixes are remembered for a cluster."""
_NONE, _A_TRACE = 1e-9, 1e-3
_BOUNDLESS: Final = 1e9


class Mix:
    """The usual requests, as often as they come.

    What they use is counted in thousandths of a device; of those that ask for none,
    each counts as if it asked for one.
    """

    def __init__(
        self, cluster: Cluster, demands: Sequence[Demand], often: FloatVector
    ) -> None:
        """Take requests for several devices first, as :func:`find_usual` does."""
        self.demands, self.often = tuple(demands), often
        profiles = {d.column for d in demands if cluster.is_profile(d.column)}
        self.profiles = tuple(sorted(profiles))
        """The columns of instances of sliced devices that are asked for."""
        sizes = {column: _size(cluster, column) for column in self.profiles}
        self._sizes = tuple(sizes.values())
        one = np.array([MILLI * sizes.get(d.column, 1.0) for d in demands])
        milli: IntVector = np.array([d.milli for d in demands], np.int64)
        self._plain = milli == 0
        self._needs = np.where(self._plain, MILLI, milli * one / MILLI)
        self._least = (self._needs * _ALMOST).astype(np.float32)
        self._wide = int((milli >= 2 * MILLI).sum())
        """How many requests are for several devices: they are the first."""
        self._of_one_device = (1 / one[: self._wide]).astype(np.float32)
        """Which part of what each of them asks of one device a thousandth is."""
        parts = np.where([d.column in profiles for d in demands], 0, milli)
        pieces = np.maximum(1, parts // MILLI)
        parts = np.minimum(parts, MILLI)
        self.steps: IntVector = np.unique(parts[parts > 0])
        worth = find_worth(parts[parts > 0], (often * pieces)[parts > 0])
        self.of_one = self._read_one(worth)
        """What is open by one device of which so much is left: ``[left, column]``."""
        self._place = self._find_places(parts)
        self.host = tuple(
            column
            for column, slot in enumerate(cluster.slots)
            if slot in HOST_SLOTS and any(d.amounts[column] for d in demands)
        )
        self._rates: list[Matrix] = []
        self._costs: list[FloatVector] = []
        for column in self.host:
            amounts = np.array([d.amounts[column] for d in demands], np.float64)
            rates = self._needs / np.maximum(amounts, _NONE)
            self._rates.append(rates.astype(np.float32))
            self._costs.append(amounts / self._needs)
        able, self.kind = _find_able(cluster, demands)
        self._able = able.astype(np.float32)
        self._shortage = self._find_shortage(cluster)
        self._one_more = float(
            min(_AT_MOST, ONE_MORE / max(self._shortage, _A_TRACE) ** 3)
        )
        self.meet(self._needs, 1.0)

    @property
    def ahead(self) -> float:
        """How many times as many devices as are free will be asked for, as expected."""
        return AHEAD * float(min(max(self._shortage, _AMPLE), 1.0) ** _STEEPLY)

    def _find_shortage(self, cluster: Cluster) -> float:
        """Tell how many times all cores, or memory, are needed to use all devices."""
        most = np.zeros(len(cluster.nodes))
        sizes = dict(zip(self.profiles, self._sizes, strict=True))
        for column in {d.column for d in self.demands if d.milli}:
            here = cluster.total_of(column) * sizes.get(column, 1.0)
            np.maximum(most, here, out=most)
        supply = float(most.sum())
        often = self.often * self._able.any(axis=0)
        devices = float((often * self._needs)[~self._plain].sum())
        short = 0.0
        for column in self.host:
            amounts = np.array([d.amounts[column] for d in self.demands], np.float64)
            there = float(cluster.total_of(column).sum())
            wanted = float((often * amounts).sum()) * supply
            short = max(short, wanted / max(there * devices, _NONE))
        return short if devices else 1.0

    def _read_one(self, worth: FloatVector) -> Matrix:
        steps = len(self.steps)
        left = np.arange(MILLI + 1)[:, None]
        found = np.zeros((MILLI + 1, steps + len(self.profiles) + EXTRA), np.float32)
        found[:, :steps] = left * (left >= self.steps)
        found[:, -2] = worth
        return found

    def _find_places(self, parts: IntVector) -> IntVector:
        """Return in which column of what is open each request finds its own."""
        steps = len(self.steps)
        places = np.searchsorted(self.steps, parts)
        for index, demand in enumerate(self.demands):
            if demand.column in self.profiles:
                places[index] = steps + self.profiles.index(demand.column)
            elif not demand.milli:
                places[index] = steps + len(self.profiles) + EXTRA - 1
        return places

    def weigh(self, weights: FloatVector) -> None:
        """Say how much of what each request can use of a node it will ask for."""
        self.weights = weights
        self._devices = np.where(self._plain, 0, weights).astype(np.float32)
        self._takes = [(weights * cost).astype(np.float32) for cost in self._costs]

    def meet(self, room: FloatVector, devices: float) -> None:
        """Weigh requests: *devices* are asked for in all, wherever there is *room*.

        Who has room on few nodes comes to each of them the more often; of those who
        hardly have any left, one is expected. Who is the one more is likelier one who
        finds little room, but less so: by the square root.
        """
        wanted = self.often * self._needs
        possible = self._able.any(axis=0) & ~self._plain
        asked = float(wanted[possible].sum())
        wanted *= devices / max(asked, _NONE)
        there = np.maximum(room, self._needs)
        self.weigh(wanted / there)
        comes = self.often * possible / np.sqrt(there)
        comes *= self._one_more / max(float(comes.sum()), _NONE)
        self.alone = comes.astype(np.float32)

    def read_host(self, cluster: Cluster, rows: IntVector) -> Matrix:
        """Return what each of *rows* has free of what requests ask of the host."""
        found = np.empty((len(rows), len(self.host)), np.float32)
        for index, column in enumerate(self.host):
            found[:, index] = cluster.free_of(column)[rows]
        # So that nothing free is enough for a request that asks for none.
        found += _A_TRACE
        return found

    def read_open(self, cluster: Cluster, rows: IntVector) -> Matrix:
        """Return what *rows* have open: ``[row, step, profile or extra]``."""
        if len(rows) > _TOGETHER:
            parts = _part(len(rows))
            return np.concatenate([self.read_open(cluster, rows[p]) for p in parts])
        left = np.minimum(cluster.left[rows].T, MILLI)
        found: Matrix = self.of_one.take(left, axis=0).sum(axis=0)
        for index, column in enumerate(self.profiles):
            cut = found[:, len(self.steps) + index]
            cut[:] = cluster.free_of(column)[rows] * self._sizes[index]
            np.maximum(found[:, -2], cut, out=found[:, -2])
        found[:, -1] = _BOUNDLESS
        return found

    def open_to(self, open_: Matrix, rows: IntVector) -> Matrix:
        """Return what devices of *rows* alone would let each request use."""
        # Row by row in memory, without which sums depended on how many rows there are.
        opened: Matrix = open_.take(self._place, axis=1)
        opened *= self._able.take(self.kind[rows], axis=0)
        return opened

    def bound(self, opened: Matrix, free: Matrix) -> Matrix:
        """Return of what devices give what cores and memory suffice for."""
        reached = opened
        most = np.empty_like(opened)
        for index, rates in enumerate(self._rates):
            np.multiply(free[:, index, None], rates, out=most)
            reached = np.minimum(reached, most, out=None if index == 0 else reached)
        return reached if self._rates else opened.copy()

    def use_soon(self, usable: Matrix, fits: Matrix) -> None:
        """Leave of what is *usable* what each can use now, or in part before long.

        Those for several devices who lack some, or cores or memory for some, use the
        less the more they lack.
        """
        wide = self._wide
        several = usable[:, :wide].copy()
        usable *= fits
        if wide:
            spare = several - self._least[:wide]
            spare *= self._of_one_device
            # Exact, whatever the number of rows, as powers of two are.
            halves = np.minimum(np.floor(spare), 0).astype(np.int32)
            np.ldexp(several, halves, out=usable[:, :wide])

    def expect(self, free: Matrix, open_: Matrix, rows: IntVector) -> FloatVector:
        """Return how much of nodes like *rows* will be used, as expected.

        Each request asks for its part of what it can use there. Together they use
        devices, cores and memory at some rate; *room* is how much they have used when
        the first of these is exhausted. That is how it is on average: of which there is
        hardly more than enough is often the first all the same. Nobody knows how many
        will come: if it is as likely at any time that no more do, what they use is
        this. What one more could use counts beside it, the more where cores and memory
        suffice.
        """
        if len(rows) > _TOGETHER:
            parts = _part(len(rows))
            return np.concatenate(
                [self.expect(free[part], open_[part], rows[part]) for part in parts]
            )
        opened = self.open_to(open_, rows)
        usable = self.bound(opened, free)
        # Numbers, since they are multiplied faster than truths.
        fits = (usable >= self._least).astype(np.float32)
        self.use_soon(usable, fits)
        several = usable[:, : self._wide].copy()
        asked = np.maximum(_add_up(usable, self._devices), _NONE)
        scarce = np.empty((len(self.host), len(rows)))
        for index, weights in enumerate(self._takes):
            scarce[index] = _add_up(usable, weights)
        usable *= opened
        room = (_add_up(usable, self._devices) / asked + open_[:, -2]) / 2
        scarce *= room
        scarce /= np.maximum(free.T * asked, _NONE)
        np.minimum(scarce, _BOUNDLESS, out=scarce)
        for _ in range(_SHARPLY):
            scarce *= scarce
        short = 1 + scarce.sum(axis=0)
        for _ in range(_SHARPLY):
            np.sqrt(short, out=short)
        room /= short
        found: FloatVector = (1 - self._one_more) * asked * room / (asked + room)
        opened *= fits
        opened[:, : self._wide] = several
        found += _add_up(opened, self.alone)
        return found

    def room(self, free: Matrix, open_: Matrix, rows: IntVector) -> FloatVector:
        """Return how much of all *rows* each request could use."""
        found = np.zeros(len(self.demands))
        for part in _part(len(rows)):
            usable = self.bound(self.open_to(open_[part], rows[part]), free[part])
            usable *= (usable >= self._least).astype(np.float32)
            found += usable.sum(axis=0, dtype=np.float64)
        return found


def _part(count: int) -> list[slice]:
    return [slice(i, i + _TOGETHER) for i in range(0, count, _TOGETHER)]


def _add_up(usable: Matrix, weights: Matrix) -> FloatVector:
    # Not by matrix multiplication: that adds up in another order for more rows, and
    # may wait for other threads.
    found: FloatVector = np.einsum("rm,m->r", usable, weights).astype(np.float64)
    return found


def weigh(cluster: Cluster, usual: Usual) -> tuple[Mix, Matrix, Matrix]:
    """Weigh requests by how often they come and how much of the cluster is for them.

    What nodes have free and open now, which has to be read for it, comes with it.
    """
    often = np.array([weight for _, weight in usual], np.float64)
    often /= max(float(often.sum()), 1e-300)
    mix = _recall(cluster, tuple(demand for demand, _ in usual), often)
    rows = np.arange(len(cluster.nodes))
    free, open_ = mix.read_host(cluster, rows), mix.read_open(cluster, rows)
    left = np.maximum(open_[:, :-EXTRA].max(axis=1, initial=0.0), cluster.total_left)
    mix.meet(mix.room(free, open_, rows), mix.ahead * float(left.sum()))
    return mix, free, open_


def _recall(cluster: Cluster, demands: tuple[Demand, ...], often: FloatVector) -> Mix:
    """Return a mix of these requests of one's own; its arrays are made once."""
    key = (Mix, demands, often.tobytes())
    known = cluster.known.get(key)
    if known is None:
        mixes = [k for k in cluster.known if isinstance(k, tuple) and k[0] is Mix]
        for old in mixes[: len(mixes) - _MOST_MIXES + 1]:
            del cluster.known[old]
        known = cluster.known[key] = Mix(cluster, demands, often)
    mix: Mix = copy(known)
    return mix


def _size(cluster: Cluster, column: int) -> float:
    """Return which part of a device an instance of one profile is."""
    slot = cluster.slots[column]
    for node in cluster.nodes:
        for device in node.devices:
            places = device.profiles.get(slot)
            if places:
                every = 0
                for others in device.profiles.values():
                    for place in others:
                        every |= place
                return places[0].bit_count() / every.bit_count()
    return 1.0


def _find_able(
    cluster: Cluster, demands: Sequence[Demand]
) -> tuple[FloatVector, IntVector]:
    """Tell what each kind of node has at all, and the kind of each node.

    The first is 1 for ``[kind, demand]`` if such nodes have the slot and the labels,
    and room for it when they are empty.
    """
    able = np.ones((len(cluster.nodes), len(demands)), bool)
    labelled: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for index, demand in enumerate(demands):
        for column, amount in enumerate(demand.amounts):
            if amount:
                able[:, index] &= cluster.total_of(column) >= amount
        for label in demand.labels:
            if label not in labelled:
                name, value = label
                nodes = [n.labels.get(name) == value for n in cluster.nodes]
                labelled[label] = np.array(nodes, bool)
            able[:, index] &= labelled[label]
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(row.tobytes(), len(kinds)) for row in able]
    found = [np.frombuffer(row, np.bool_) for row in kinds]
    shape = (len(found), len(demands))
    return np.array(found, np.float64).reshape(shape), np.array(kind, np.int64)
