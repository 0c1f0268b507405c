"""The nodes of an experiment as arrays, and the loop that fills them.

A policy sees a demand and some rows that have room for it, and says how good each is:
lower is better. The loop remembers the answers of every shape and asks again only for
rows that changed since, which is what the scheduler does too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.packing.workloads import GPU, NodeKind, Shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOWHERE = np.inf


class Room:
    """What is free: ``cpu``, ``mem`` and ``left[node, device]``, absent devices 0."""

    def __init__(self, kinds: Sequence[NodeKind]) -> None:
        self.kinds = tuple(kinds)
        self.cpu = np.array([k.cores * 1000 for k in kinds], np.int64)
        self.mem = np.array([k.gib * 1024 for k in kinds], np.int64)
        self.devices = np.array([k.devices for k in kinds], np.int64)
        self.model = np.array([k.model for k in kinds], np.int64)
        most = max((kind.devices for kind in kinds), default=0)
        self.left = np.zeros((len(kinds), most), np.int64)
        for row, kind in enumerate(kinds):
            self.left[row, : kind.devices] = GPU
        self.all_cpu, self.all_mem = self.cpu.copy(), self.mem.copy()
        self.total = self.left.sum(axis=1)
        self.largest = self.left.max(axis=1)
        self.whole = (self.left == GPU).sum(axis=1)
        self.capacity = int(self.total.sum())
        self.log: list[int] = []
        """The nodes that have changed, in order."""

    def __len__(self) -> int:
        return len(self.kinds)

    def fitting(self, shape: Shape, rows: Ints) -> Ints:
        """Return those of *rows* that have room for *shape*."""
        fits = (self.cpu[rows] >= shape.cpu) & (self.mem[rows] >= shape.mem)
        if shape.devices:
            fits &= self.whole[rows] >= shape.devices
        elif shape.milli:
            fits &= self.largest[rows] >= shape.milli
        if shape.models:
            fits &= np.isin(self.model[rows], list(shape.models))
        return rows[fits]

    def fitting_devices(self, shape: Shape, row: int) -> list[int]:
        """Return the devices of a node that can give the part that *shape* asks."""
        return np.flatnonzero(self.left[row] >= shape.milli).tolist()

    def take(self, row: int, shape: Shape, devices: Sequence[int]) -> None:
        """Give *shape* its cores, memory and these devices."""
        self._change(row, shape, devices, -1)

    def give(self, row: int, shape: Shape, devices: Sequence[int]) -> None:
        """Take them back."""
        self._change(row, shape, devices, 1)

    def _change(
        self, row: int, shape: Shape, devices: Sequence[int], sign: int
    ) -> None:
        self.log.append(row)
        self.cpu[row] += sign * shape.cpu
        self.mem[row] += sign * shape.mem
        if shape.milli:
            each = GPU if shape.devices else shape.milli
            left = self.left[row]
            for device in devices:
                left[device] += sign * each
            self.total[row] += sign * shape.milli
            self.largest[row] = left.max()
            self.whole[row] = np.count_nonzero(left == GPU)


class Policy(Protocol):
    """Where a shape goes, and on which device if it wants a part of one."""

    def score(self, shape: Shape, rows: Ints) -> Floats:
        """Say how good each of *rows* is; all have room; lower is better."""
        ...

    def choose_device(self, shape: Shape, row: int, fitting: Sequence[int]) -> int:
        """Choose one of the devices that can give the part."""
        ...


class Scoreboard:
    """Places one request after another, asking again only about what changed."""

    def __init__(self, room: Room, policy: Policy) -> None:
        self.room, self.policy = room, policy
        self._rows = np.arange(len(room))
        self._scores: dict[Shape, Floats] = {}
        self._seen: dict[Shape, int] = {}

    def scores(self, shape: Shape) -> Floats:
        """Return the score of every node, infinite where there is no room."""
        scores = self._scores.get(shape)
        if scores is None:
            scores = self._scores[shape] = np.full(len(self.room), NOWHERE)
            rows = self._rows
        else:
            recent = set(self.room.log[self._seen[shape] :])
            rows = np.fromiter(recent, np.int64, len(recent))
            scores[rows] = NOWHERE
        self._seen[shape] = len(self.room.log)
        if len(rows):
            fitting = self.room.fitting(shape, rows)
            if len(fitting):
                scores[fitting] = self.policy.score(shape, fitting)
        return scores

    def find(self, shape: Shape) -> int | None:
        """Return the best node, the first of equals, or none if none has room."""
        scores = self.scores(shape)
        row = int(scores.argmin())
        return None if scores[row] == NOWHERE else row

    def choose(self, shape: Shape, row: int) -> list[int]:
        """Choose the devices of a node for *shape*."""
        if shape.devices:
            idle = np.flatnonzero(self.room.left[row] == GPU)
            return idle[: shape.devices].tolist()
        if not shape.milli:
            return []
        fitting = self.room.fitting_devices(shape, row)
        return [self.policy.choose_device(shape, row, fitting)]

    def place(self, shape: Shape, row: int) -> list[int]:
        """Place *shape* on a node; return its devices."""
        devices = self.choose(shape, row)
        self.room.take(row, shape, devices)
        placed = getattr(self.policy, "placed", None)
        if placed is not None:
            placed(shape, row)
        return devices
