"""What people usually ask for, as arrays: how much of a node could each request use.

*Steps* are the amounts that are asked of one device: its fractions, and 1000 for whole
devices. What a node has *open* for a step is what is left, in all, on devices with at
least that much left.

Devices become free again. Where a request for several devices lacks some, those that
are free count in part all the same, half as much for each that is missing: a node that
is nearly free is sooner whole again than one that is nearly full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.shapes import read_demand
from backendai_hub.scheduling.snapshot import PendingSession

Usual = Sequence[tuple[Demand, float]]
Matrix = NDArray[np.float32]

MOST: Final = 64
"""How many requests count as usual at most; the cost of a decision grows with it."""
_ENOUGH: Final = 20.0
"""How many requests say what is usual without a guess."""
_LOOKED_AT: Final = 1000
"""How many of those who wait are looked at."""
_WIDER: Final = 0.5
"""Requests weigh more the more devices they ask for, by this power of the number.

They are few, but each of them takes as much as many others, and waits for all of it at
once.
"""
_SCARCE: Final = 0.05
"""Requests that can use less than this share of all devices weigh no more still."""
_ALMOST: Final = 1 - 1e-6
"""Numbers are short: what misses a need by less than this part meets it."""
_MOST_OFTEN: Final = 1e12
_MOST_MIXES: Final = 64
"""So many mixes are remembered for a cluster."""
_MOST_REQUESTS: Final = 4096
"""Of so many requests it is remembered what they are as demands."""
_NONE, _A_TRACE = 1e-9, 1e-3


class Mix:
    """The usual requests with their weights, which add up to 1."""

    def __init__(
        self, cluster: Cluster, demands: Sequence[Demand], weights: FloatVector
    ) -> None:
        profiles = {d.column for d in demands if cluster.is_profile(d.column)}
        self.demands = tuple(demands)
        self.profiles = tuple(sorted(profiles))
        """The columns of instances of sliced devices that are asked for."""
        sizes = {column: _size(cluster, column) for column in self.profiles}
        self._sizes = tuple(sizes.values())
        on_devices = [d for d in demands if d.column not in profiles]
        parts = {min(d.milli, MILLI) for d in on_devices}
        self.steps: IntVector = np.array(sorted(parts), np.int64)
        places: dict[int, int] = {int(step): i for i, step in enumerate(self.steps)}
        places |= {~column: len(parts) + i for i, column in enumerate(self.profiles)}
        self._place: IntVector = np.array(
            [
                places[~d.column if d.column in profiles else min(d.milli, MILLI)]
                for d in demands
            ],
            np.int64,
        )
        needs = np.array([d.milli * sizes.get(d.column, 1.0) for d in demands])
        self._least = (needs * _ALMOST).astype(np.float32)
        self._several = np.flatnonzero([d.milli >= 2 * MILLI for d in demands])
        """The requests for several devices."""
        one = [
            MILLI * sizes.get(demands[i].column, 1.0) for i in self._several.tolist()
        ]
        self._one = np.array(one, np.float32)
        """What each of them asks of one device."""
        self.host = tuple(
            column
            for column, slot in enumerate(cluster.slots)
            if slot in HOST_SLOTS and any(d.amounts[column] for d in demands)
        )
        self._rates = []
        for column in self.host:
            amounts = np.array([max(d.amounts[column], _NONE) for d in demands])
            self._rates.append((needs / amounts).astype(np.float32))
        self._able, self._kind = _find_able(cluster, demands)
        self.open_to, self.most = self._find_most(cluster, needs)
        self.weigh(weights)

    def weigh(self, weights: FloatVector) -> None:
        """Give the requests other weights."""
        self.weights = weights / max(float(weights.sum()), 1e-300)
        self._by_kind = (self._able * self.weights).astype(np.float32)

    def _find_most(
        self, cluster: Cluster, needs: FloatVector
    ) -> tuple[FloatVector, FloatVector]:
        """Return what devices each request may have any of, and could use when empty.

        The second is less where cores or memory do not suffice for all devices.
        """
        open_to, most = np.zeros(len(needs)), np.zeros(len(needs))
        hosts = [cluster.total_of(column) + _A_TRACE for column in self.host]
        for index, demand in enumerate(self.demands):
            able = self._able[self._kind, index]
            usable = cluster.total_of(demand.column) * (needs[index] / demand.milli)
            open_to[index] = (able * usable).sum()
            for host, rates in zip(hosts, self._rates, strict=True):
                usable = np.minimum(usable, host * float(rates[index]))
            most[index] = (able * usable).sum()
        return open_to, most

    def read_host(self, cluster: Cluster, rows: IntVector) -> Matrix:
        """Return what each of *rows* has free of what requests ask of the host."""
        found = np.empty((len(rows), len(self.host)), np.float32)
        for index, column in enumerate(self.host):
            found[:, index] = cluster.free_of(column)[rows]
        # So that nothing free is enough for a request that asks for none.
        found += _A_TRACE
        return found

    def read_open(self, cluster: Cluster, rows: IntVector) -> Matrix:
        """Return what each of *rows* has open: ``[row, step or profile]``."""
        left = cluster.left[rows][:, None, :]
        steps = len(self.steps)
        found = np.empty((len(rows), steps + len(self.profiles)), np.float32)
        found[:, :steps] = (left * (left >= self.steps[:, None])).sum(axis=2)
        for index, column in enumerate(self.profiles):
            free = cluster.free_of(column)[rows]
            found[:, steps + index] = free * self._sizes[index]
        return found

    def use(self, free: Matrix, open_: Matrix) -> Matrix:
        """Return how much each request could use now: ``[row, request]``."""
        usable = self._reach(free, open_)
        usable *= usable >= self._least
        return usable

    def _reach(self, free: Matrix, open_: Matrix) -> Matrix:
        """Return how much each could use if whatever there is were enough for it."""
        reached: Matrix = open_.take(self._place, axis=1)
        for index, rates in enumerate(self._rates):
            np.minimum(reached, free[:, index, None] * rates, out=reached)
        return reached

    def _use_soon(self, free: Matrix, open_: Matrix) -> Matrix:
        """Return how much each could use now, or in part once it lacks nothing."""
        usable = self._reach(free, open_)
        several = usable[:, self._several]
        usable *= usable >= self._least
        if several.size:
            missing = np.ceil((self._least[self._several] - several) / self._one)
            # Exact, whatever the number of rows, as powers of two are.
            halves = -np.maximum(missing, 0).astype(np.int32)
            usable[:, self._several] = np.ldexp(several, halves)
        return usable

    def expect(self, free: Matrix, open_: Matrix, rows: IntVector) -> FloatVector:
        """Return what a usual request could use of nodes like *rows*, as expected."""
        usable = self._use_soon(free, open_)
        # Not by matrix multiplication: that adds up in another order for more rows,
        # and may wait for other threads.
        if len(self._by_kind) == 1:
            expected = np.einsum("rm,m->r", usable, self._by_kind[0])
        else:
            weights = self._by_kind.take(self._kind[rows], axis=0)
            expected = np.einsum("rm,rm->r", usable, weights)
        found: FloatVector = expected.astype(np.float64)
        return found

    def room(self, free: Matrix, open_: Matrix) -> FloatVector:
        """Return how much of the whole cluster each request could use."""
        usable = self.use(free, open_)
        found = np.zeros(len(self.demands))
        for kind, able in enumerate(self._able):
            found += able * usable[self._kind == kind].sum(axis=0, dtype=np.float64)
        return found


def gather(
    cluster: Cluster,
    learned: Sequence[tuple[ResourceSlots, float]],
    queue: Sequence[PendingSession],
) -> list[tuple[Demand, float]]:
    """Add those who wait, with the labels they insist on, to what has been learned.

    Each of them counts as much as one request that has just come. If that is little to
    go by, a guess makes up for what is missing.
    """
    found: dict[Demand, float] = {}
    for request, told in learned:
        # Whatever is told, no sum of it must be infinite or no number.
        weight = min(told, _MOST_OFTEN) if told > 0 else 0.0
        demand = read_demand(cluster, request)
        found[demand] = found.get(demand, 0.0) + weight
    known: dict[tuple[int, int], Demand] = {}
    for session in queue[:_LOOKED_AT]:
        asked = [m.request for m in session.members] or [session.request]
        for request in asked:
            # The snapshot keeps these objects, so their identities stay their own.
            key = (id(request), id(session.labels))
            wanted = known.get(key)
            if wanted is None:
                wanted = known[key] = _read(cluster, request, session.labels)
            found[wanted] = found.get(wanted, 0.0) + 1.0
    missing = _ENOUGH - sum(w for demand, w in found.items() if demand.milli)
    if missing > 0:
        guess = _guess(cluster)
        for demand, _ in guess:
            found[demand] = found.get(demand, 0.0) + missing / len(guess)
    return list(found.items())


def _read(
    cluster: Cluster, request: ResourceSlots, labels: Mapping[str, str]
) -> Demand:
    demands: dict[ResourceSlots, Demand] = cluster.known.setdefault(_read, {})
    demand = demands.get(request)
    if demand is None:
        if len(demands) > _MOST_REQUESTS:
            demands.clear()
        demand = demands[request] = read_demand(cluster, request)
    return demand._replace(labels=tuple(sorted(labels.items()))) if labels else demand


def find_usual(cluster: Cluster, typical: Usual) -> Usual:
    """Choose what counts as usual: the most frequent, and all for several devices.

    Without any it is a half, one, two, four and eight devices, each with its share of
    a node's cores and memory.
    """
    asked = [(d, w) for d, w in typical if d.milli > 0 and w > 0]
    asked.sort(key=lambda item: (item[0].milli < 2 * MILLI, -item[1], item[0]))
    wide = sum(d.milli >= 2 * MILLI for d, _ in asked)
    return asked[: max(MOST, min(wide, 2 * MOST))] or _guess(cluster)


def weigh(cluster: Cluster, usual: Usual) -> tuple[Mix, Matrix, Matrix]:
    """Weigh requests by how often they come and how little of the cluster is for them.

    It is the slope of the expected logarithm of what requests can use, so that the
    last node for one kind counts as much as half of the nodes for another. What they
    could not use of an empty cluster either, for want of cores or memory, is not left
    out: who needs much beside a device is no reason to refuse those who need little.

    What nodes have free and open now, which has to be read for it, comes with it.
    """
    often = np.array([weight for _, weight in usual], np.float64)
    often *= [max(1.0, demand.milli / MILLI) ** _WIDER for demand, _ in usual]
    mix = _recall(cluster, tuple(demand for demand, _ in usual))
    rows = np.arange(len(cluster.nodes))
    free, open_ = mix.read_host(cluster, rows), mix.read_open(cluster, rows)
    part = mix.room(free, open_) / np.maximum(mix.most, _NONE)
    part *= mix.open_to / (MILLI * _count_devices(cluster))
    mix.weigh(often / np.maximum(part, _SCARCE))
    return mix, free, open_


def _recall(cluster: Cluster, demands: tuple[Demand, ...]) -> Mix:
    """Return a mix of these requests of one's own; its arrays are made once."""
    key = (Mix, demands)
    known = cluster.known.get(key)
    if known is None:
        mixes = [k for k in cluster.known if isinstance(k, tuple) and k[0] is Mix]
        for old in mixes[: len(mixes) - _MOST_MIXES + 1]:
            del cluster.known[old]
        known = cluster.known[key] = Mix(cluster, demands, np.ones(len(demands)))
    mix: Mix = copy(known)
    return mix


def _count_devices(cluster: Cluster) -> int:
    known = cluster.known.get(_count_devices)
    if known is None:
        count = sum(d.kind != "host" for n in cluster.nodes for d in n.devices)
        known = cluster.known[_count_devices] = max(1, count)
    return int(known)


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
        able[:, index] = cluster.total_of(demand.column) > 0
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


def _guess(cluster: Cluster) -> Usual:
    known: Usual | None = cluster.known.get(_guess)
    if known is None:
        known = cluster.known[_guess] = _find_guess(cluster)
    return known


def _find_guess(cluster: Cluster) -> Usual:
    found: dict[Demand, float] = {}
    columns = sorted(
        {
            cluster.column[slot]
            for node in cluster.nodes
            for device in node.devices
            if device.kind != "host"
            for slot in (*device.total, *device.profiles)
        }
    )
    for column in columns:
        nodes = cluster.total_of(column)
        if not nodes.any():
            continue
        most = int(nodes.max())
        row = int(nodes.argmax())
        for milli in (MILLI // 2, MILLI, 2 * MILLI, 4 * MILLI, 8 * MILLI):
            if milli > most or (milli < MILLI and cluster.is_profile(column)):
                continue
            amounts = [0] * len(cluster.slots)
            for host, slot in enumerate(cluster.slots):
                if slot in HOST_SLOTS:
                    amounts[host] = int(cluster.total_of(host)[row]) * milli // most
            amounts[column] = milli
            found[Demand(tuple(amounts), column, milli)] = 1.0
    return list(found.items())
