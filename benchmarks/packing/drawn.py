"""Workloads drawn at random: machines, widths, cores, parts and habits from a number.

The six and the ten were each made up by somebody who had something in mind. Of these
there are as many as one likes, odd ones among them: some ask for four times the memory
that there is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from benchmarks.packing.held_out import ALIKE, BROAD
from benchmarks.packing.workloads import (
    ACCELERATED,
    DEFAULT,
    LEAN,
    MIXED,
    Mix,
    NodeKind,
    Workload,
)

_FIRST = 77_000
_CLUSTERS = (MIXED, ACCELERATED, LEAN, BROAD, ALIKE)
_CORES = ((4, 6, 8, 10, 12), (2, 4, 4, 6, 8), (8, 10, 12, 16), (1, 2, 4, 16))
_GIB = ((2, 4, 4, 6, 8), (1, 2, 4), (4, 6, 8, 12))
_ALONE = ((1, 2, 4, 8, 8, 16, 32), (1, 1, 2, 2, 4), (16, 32, 48))
_PARTS = (
    Mix(DEFAULT).parts,
    (250, 500, 750),
    (100, 200),
    (170, 230, 290, 370, 430, 530, 610, 770),
)


def draw_workload(number: int) -> Workload:
    """Draw the workload of that number, always the same one."""
    rng = np.random.default_rng(_FIRST + number)
    own = rng.random() < 0.6
    kinds = _draw_kinds(rng) if own else _CLUSTERS[int(rng.integers(len(_CLUSTERS)))]
    widths = _draw_widths(rng, max(kind.devices for kind in kinds))
    mix = Mix(
        widths,
        cores_per_gpu=_CORES[int(rng.integers(len(_CORES)))],
        gib_per_core=_GIB[int(rng.integers(len(_GIB)))],
        cores_alone=_ALONE[int(rng.integers(len(_ALONE)))],
        parts=_PARTS[int(rng.integers(len(_PARTS)))],
        constrained=float(rng.choice([0, 0, 0.2, 0.5])),
        shapes=int(rng.choice([24, 96, 150])),
    )
    possible = {w: often for w, often in widths.items() if _is_possible(w, mix, kinds)}
    return Workload(
        f"drawn {number}",
        replace(mix, widths=possible),
        kinds=kinds,
        population=100 + number,
        burst=float(rng.choice([1, 1, 8])),
    )


def _draw_kinds(rng: Generator) -> tuple[NodeKind, ...]:
    many = int(rng.integers(2, 7))
    counts = (rng.dirichlet(np.ones(many)) * 1200).astype(int) + 5
    kinds = []
    for model, count in enumerate(counts.tolist()):
        devices = int(rng.choice([1, 2, 4, 4, 8, 8, 8, 16]))
        cores = max(int(devices * rng.choice([6, 8, 12, 16, 24])), 16)
        gib = int(cores * rng.choice([4, 4, 6, 8]))
        kinds.append(NodeKind(count, devices, model, cores, gib))
    if rng.random() < 0.5:
        kinds.append(NodeKind(int(rng.integers(50, 250)), 0, -1, 96, 384))
    return tuple(kinds)


def _draw_widths(rng: Generator, most: int) -> dict[float, float]:
    plain = float(rng.choice([0, 0.1, 0.2, 0.35, 0.5]))
    widths = {0: plain, 0.5: rng.uniform(0, 0.9), 1: rng.uniform(0.05, 0.6)}
    if rng.random() < 0.6:
        for width in (2, 4, 8, 16):
            if width <= most:
                widths[width] = rng.uniform(0, 0.1) / width**0.5
    return {width: float(often) for width, often in widths.items() if often > 0}


def _is_possible(width: float, mix: Mix, kinds: tuple[NodeKind, ...]) -> bool:
    """Tell whether any node has room for the smallest request of that width."""
    cores = max(1.0, width) * min(mix.cores_per_gpu)
    return width == 0 or any(
        kind.devices >= width
        and kind.cores >= cores
        and kind.gib >= cores * min(mix.gib_per_core)
        for kind in kinds
    )
