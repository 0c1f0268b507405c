"""What others do, written from the descriptions they have published.

All see exact devices, so that only the choice of the node, and of the device for a
part, differs. Scores that were published as integers are integers here, and the first
node wins among equals; the experiment shuffles the nodes for every seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.packing.room import Floats, Ints, Room
from benchmarks.packing.workloads import GPU, Shape

COVERED = 0.95
"""The published typical set: the most frequent shapes that make up this much."""


class Tightest:
    """Part of most policies: the device that has least left over takes a part."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def choose_device(self, shape: Shape, row: int, fitting: Sequence[int]) -> int:
        del shape
        left = self.room.left[row]
        return min(fitting, key=lambda device: (left[device], device))


class BestFit(Tightest):
    """The node where least is left over, cores and GPUs as shares of the largest."""

    def score(self, shape: Shape, rows: Ints) -> Floats:
        room = self.room
        cpu = (room.cpu[rows] - shape.cpu) / room.all_cpu.max()
        gpu = (room.total[rows] - shape.milli) / (GPU * room.devices.max())
        return np.trunc(100 * (cpu + gpu) / 2)


class Packing(Tightest):
    """First a GPU already shared, then an idle GPU of a node in use, then any."""

    def score(self, shape: Shape, rows: Ints) -> Floats:
        room = self.room
        left = room.left[rows]
        idle = room.whole[rows]
        in_use = room.total[rows] < GPU * room.devices[rows]
        last = np.where(in_use, 300.0 + idle, 600.0 + idle)
        if shape.milli and not shape.devices:
            fits = (left >= shape.milli) & (left < GPU)
            tight = np.where(fits, left, GPU).min(axis=1)
            return np.where(fits.any(axis=1), np.trunc(tight / 10), last)
        if not shape.milli:
            return np.where(room.devices[rows] == 0, 0.0, last)
        return last


class Clustering(Tightest):
    """Beside requests that want as much of a GPU, else the first node with room."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._here = [Counter[int]() for _ in range(len(room))]

    def score(self, shape: Shape, rows: Ints) -> Floats:
        alike = [self._here[row][shape.milli] > 0 for row in rows.tolist()]
        return -np.array(alike, np.float64)

    def placed(self, shape: Shape, row: int) -> None:
        """Remember who runs where."""
        self._here[row][shape.milli] += 1


class Dispersed(Tightest):
    """The emptiest node: the largest share of cores and GPUs free."""

    def score(self, shape: Shape, rows: Ints) -> Floats:
        room = self.room
        share = room.cpu[rows] / room.all_cpu[rows]
        if shape.milli:
            gpus = np.maximum(GPU * room.devices[rows], 1)
            share = np.minimum(share, room.total[rows] / gpus)
        return -share


class DotProduct(Tightest):
    """The node whose free room, multiplied with the request, gives least."""

    def score(self, shape: Shape, rows: Ints) -> Floats:
        room = self.room
        cpu = room.cpu[rows] / room.all_cpu.max() * (shape.cpu / room.all_cpu.max())
        most = GPU * room.devices.max()
        gpu = room.total[rows] / most * (shape.milli / most)
        return np.trunc(100 * (cpu + gpu) / 2)


class Random(Tightest):
    """Any node with room, any device."""

    def __init__(self, room: Room, seed: int) -> None:
        super().__init__(room)
        self._rng = np.random.default_rng(seed)

    def score(self, shape: Shape, rows: Ints) -> Floats:
        del shape
        return self._rng.random(len(rows))

    def choose_device(self, shape: Shape, row: int, fitting: Sequence[int]) -> int:
        del shape, row
        return int(self._rng.choice(list(fitting)))


class Fgd:
    """Fragmentation gradient descent as published (USENIX ATC 2023).

    A node's fragmentation for one typical request is all its free GPU if the request
    cannot run there (or asks for no GPU), and else what is free on devices that could
    not serve it. The score is the expected growth of that over the typical requests,
    squeezed by a logistic function to an integer from 0 to 100.
    """

    def __init__(self, room: Room, stream: Sequence[Shape]) -> None:
        self.room = room
        shapes, weights = find_typical(stream)
        self._weights = weights
        self._cpu = np.array([s.cpu for s in shapes])
        self._mem = np.array([s.mem for s in shapes])
        self._milli = np.array([s.milli for s in shapes])
        self._need = np.minimum(self._milli, GPU)
        self._devices = np.array([s.devices for s in shapes])
        models = int(room.model.max()) + 1
        self._models = np.array(
            [[not s.models or m in s.models for s in shapes] for m in range(models)]
            + [[not s.models for s in shapes]]  # a node without GPUs: model -1
        )
        self._steps, self._step = np.unique(self._need, return_inverse=True)

    def score(self, shape: Shape, rows: Ints) -> Floats:
        gain = self._gain(shape, rows)
        return -np.trunc(100 / (1 + np.exp(-gain.max(axis=1) / GPU)))

    def choose_device(self, shape: Shape, row: int, fitting: Sequence[int]) -> int:
        del fitting
        return int(self._gain(shape, np.array([row]))[0].argmax())

    def _gain(self, shape: Shape, rows: Ints) -> Floats:
        """Return by how much fragmentation shrinks: a column for each choice."""
        room = self.room
        left, cpu, mem = room.left[rows], room.cpu[rows], room.mem[rows]
        model = room.model[rows]
        before = self.fragmentation(cpu, mem, left, model)
        cpu, mem = cpu - shape.cpu, mem - shape.mem
        if shape.devices or not shape.milli:
            full = left == GPU
            after = np.where(full & (full.cumsum(axis=1) <= shape.devices), 0, left)
            return (before - self.fragmentation(cpu, mem, after, model))[:, None]
        gains = np.full(left.shape, -np.inf)
        where, device = np.nonzero(left >= shape.milli)
        states = left[where]
        states[np.arange(len(where)), device] -= shape.milli
        after = self.fragmentation(cpu[where], mem[where], states, model[where])
        gains[where, device] = before[where] - after
        return gains

    def fragmentation(self, cpu: Ints, mem: Ints, left: Ints, model: Ints) -> Floats:
        """Return the expected free GPU that a typical request cannot use."""
        total = left.sum(axis=1)
        usable = np.stack(
            [np.where(left >= step, left, 0).sum(axis=1) for step in self._steps], 1
        )[:, self._step]
        runs = (
            (cpu[:, None] >= self._cpu)
            & (mem[:, None] >= self._mem)
            & (usable >= self._need)
            & ((left == GPU).sum(axis=1)[:, None] >= self._devices)
            & self._models[model]
            & (self._milli > 0)
        )
        return total - np.where(runs, usable, 0) @ self._weights


def find_typical(stream: Sequence[Shape]) -> tuple[list[Shape], Floats]:
    """Return the most frequent shapes that cover 95 %, with their frequencies."""
    counts = Counter(stream)
    shapes: list[Shape] = []
    covered = 0
    for shape, count in counts.most_common():
        shapes.append(shape)
        covered += count
        if covered >= COVERED * len(stream):
            break
    weights = np.array([counts[s] for s in shapes], float)
    return shapes, weights / weights.sum()
