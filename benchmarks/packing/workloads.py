"""Clusters and streams of requests like those of real ones, made from a seed.

Nothing here is a recording. The clusters have the size and the mixture of nodes that
operators of large GPU clusters have described: mostly machines with 8 GPUs and few
cores for each, many small ones with 2 older GPUs and plenty of cores, some machines
without GPUs. Requests are drawn from a population of shapes whose frequencies fall off
as those of words do, so that a few shapes make up most of a stream and a long tail of
odd ones the rest.

Amounts are integers: cores in thousandths, memory in MiB, GPUs in thousandths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

GPU = 1000


@dataclass(frozen=True)
class NodeKind:
    """*count* nodes that are alike."""

    count: int
    devices: int
    model: int
    cores: int
    gib: int


@dataclass(frozen=True)
class Shape:
    """What one request asks for. Without models any will do."""

    cpu: int
    mem: int
    milli: int = 0
    models: frozenset[int] = frozenset()

    @property
    def devices(self) -> int:
        """How many whole GPUs; 0 for none and for a part of one."""
        return self.milli // GPU if self.milli >= GPU else 0


@dataclass(frozen=True)
class Mix:
    """How often requests of each width come, and how many cores they want."""

    widths: Mapping[float, float]
    """0 for none, 0.5 for any part of a GPU, else the number of GPUs."""
    cores_per_gpu: Sequence[int] = (4, 6, 8, 10, 12)
    gib_per_core: Sequence[int] = (2, 4, 4, 6, 8)
    cores_alone: Sequence[int] = (1, 2, 4, 8, 8, 16, 32)
    constrained: float = 0.0
    """The share of GPU requests that name a model."""
    parts: Sequence[int] = (100, 150, 200, 250, 300, 330, 400, 450, 500, 600, 700, 800)
    shapes: int = 96


MIXED = (
    NodeKind(500, 8, 0, 96, 384),
    NodeKind(40, 8, 1, 128, 768),
    NodeKind(25, 8, 2, 96, 384),
    NodeKind(30, 4, 2, 64, 256),
    NodeKind(60, 4, 3, 96, 384),
    NodeKind(200, 2, 4, 48, 192),
    NodeKind(100, 2, 4, 96, 384),
    NodeKind(130, 2, 5, 64, 256),
    NodeKind(115, 0, -1, 128, 512),
)
"""1,200 nodes, 5,740 GPUs of six models."""

ACCELERATED = (*(k for k in MIXED if k.devices), NodeKind(115, 2, 4, 64, 384))
"""The same without nodes for plain jobs: these compete for the cores beside GPUs."""

LEAN = (
    NodeKind(400, 8, 0, 64, 256),
    NodeKind(200, 4, 1, 32, 128),
    NodeKind(400, 2, 2, 16, 64),
    NodeKind(200, 1, 3, 16, 64),
)
"""1,200 nodes with no more than 8 cores for each GPU."""

DEFAULT = {0: 0.133, 0.5: 0.378, 1: 0.48, 2: 0.002, 4: 0.002, 8: 0.005}


@dataclass(frozen=True)
class Workload:
    """One cluster and one mix; *draw* makes the stream of a seed."""

    name: str
    mix: Mix
    kinds: Sequence[NodeKind] = MIXED
    population: int = 0
    """Another number, another population of shapes."""
    about: str = ""
    burst: float = 1.0
    """How many requests alike come one after the other, on average."""

    def of(self, population: int) -> Workload:
        """Return one of the same kind, with other shapes."""
        return replace(self, population=population)

    def nodes(self, scale: float = 1.0) -> list[NodeKind]:
        """Return the nodes one by one, each kind scaled."""
        return [
            kind
            for kind in self.kinds
            for _ in range(max(1, round(kind.count * scale)))
        ]

    def shapes(self) -> tuple[list[Shape], np.ndarray]:
        """Return the population with its frequencies; the same for every seed."""
        return make_shapes(
            self.mix, self.kinds, np.random.default_rng(1000 + self.population)
        )

    def draw(self, seed: int, scale: float = 1.0, load: float = 1.3) -> list[Shape]:
        """Draw requests until *load* of all GPUs is asked for."""
        shapes, weights = self.shapes()
        rng = np.random.default_rng(seed)
        capacity = GPU * sum(kind.devices for kind in self.nodes(scale))
        stream: list[Shape] = []
        asked = 0
        while asked < load * capacity:
            chosen = rng.choice(len(shapes), size=512, p=weights)
            if self.burst > 1:
                chosen = np.repeat(chosen, rng.geometric(1 / self.burst, len(chosen)))
            for index in chosen:
                stream.append(shapes[index])
                asked += shapes[index].milli
                if asked >= load * capacity:
                    break
        return stream


def make_shapes(
    mix: Mix, kinds: Sequence[NodeKind], rng: Generator
) -> tuple[list[Shape], np.ndarray]:
    """Make a population of shapes that all fit somewhere, and their frequencies."""
    tally: dict[Shape, float] = {}
    total = sum(mix.widths.values())
    for width, frequency in mix.widths.items():
        count = max(3, round(mix.shapes * (frequency / total) ** 0.5 / 2))
        ranks = 1.0 / np.arange(1, count + 1)
        for rank in ranks / ranks.sum() * frequency / total:
            plain = rank * (1 - mix.constrained * (width > 0))
            shape = _make_shape(width, mix, kinds, rng)
            tally[shape] = tally.get(shape, 0.0) + plain
            if plain < rank:
                for model in _draw_models(shape, kinds, rng):
                    named = Shape(shape.cpu, shape.mem, shape.milli, frozenset({model}))
                    tally[named] = tally.get(named, 0.0) + (rank - plain) / 2
    shapes = list(tally)
    weights = np.array([tally[shape] for shape in shapes])
    return shapes, weights / weights.sum()


def _make_shape(
    width: float, mix: Mix, kinds: Sequence[NodeKind], rng: Generator
) -> Shape:
    while True:
        milli = int(width * GPU)
        if width == 0.5:
            milli = int(rng.choice(mix.parts))
        if width == 0:
            cores = float(rng.choice(mix.cores_alone))
        else:
            whole = max(1, width)
            cores = whole * float(rng.choice(mix.cores_per_gpu))
            if width == 0.5:
                cores = max(1, round(cores * float(rng.choice((0.5, 0.75, 1)))))
        gib = cores * float(rng.choice(mix.gib_per_core))
        shape = Shape(int(cores * 1000), int(gib * 1024), milli)
        if any(_fits(shape, kind) for kind in kinds):
            return shape


def _fits(shape: Shape, kind: NodeKind) -> bool:
    return (
        shape.cpu <= kind.cores * 1000
        and shape.mem <= kind.gib * 1024
        and shape.milli <= kind.devices * GPU
    )


def _draw_models(shape: Shape, kinds: Sequence[NodeKind], rng: Generator) -> list[int]:
    """Draw two models that have room for *shape*, likelier those with more GPUs."""
    able = [kind for kind in kinds if kind.devices and _fits(shape, kind)]
    sizes = np.array([kind.count * kind.devices for kind in able], float)
    return [able[i].model for i in rng.choice(len(able), size=2, p=sizes / sizes.sum())]


def _wide(share: float) -> dict[float, float]:
    """Widths of which requests for several GPUs ask *share* of all GPUs."""
    narrow = {0: 0.133, 0.5: 0.378, 1: 0.48}
    asked = 0.378 * 0.4 + 0.48
    each = asked * share / (1 - share) / (0.1 * 2 + 0.2 * 4 + 0.7 * 8)
    return {**narrow, 2: 0.1 * each, 4: 0.2 * each, 8: 0.7 * each}


ALL = (
    Workload("default", Mix(DEFAULT), about="mostly one GPU or a part of one"),
    Workload(
        "shared",
        Mix({0: 0.133, 0.5: 0.867}),
        about="every GPU request asks for a part of one",
    ),
    Workload("multi", Mix(_wide(0.5)), about="half of the GPUs go to wide requests"),
    Workload(
        "models",
        Mix(DEFAULT, constrained=1 / 3),
        about="a third of GPU requests name a model",
    ),
    Workload(
        "cpu-heavy",
        Mix({**DEFAULT, 0: 0.4}),
        kinds=ACCELERATED,
        about="many plain jobs compete for the cores beside GPUs",
    ),
    Workload(
        "lean",
        Mix(DEFAULT, cores_per_gpu=(2, 4, 4, 6, 8)),
        kinds=LEAN,
        about="at most 8 cores for each GPU",
    ),
)
"""What `python -m benchmarks packing` measures on."""
