"""How long people wait: requests come over weeks, run, and leave.

Arrivals follow the hours of the day, and some people send many at once; run times are
long-tailed, most minutes, some days, cut at the longest lifetime a session may have.
What a session says about how long it will run is up to three times too long.

Three rules for the queue: ``strict`` (nobody passes the first who waits), ``skip``
(everybody who fits starts) and ``easy`` (the first who waits gets devices reserved at
the time when they will be free, and others start if they end before or do not touch
them). They are what the scheduler is compared with, which is measured apart, in its own
simulation.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from benchmarks.packing.ours import shuffled
from benchmarks.packing.room import NOWHERE, Ints, Room, Scoreboard
from benchmarks.packing.saturation import POLICIES
from benchmarks.packing.workloads import (
    GPU,
    Mix,
    NodeKind,
    Shape,
    Workload,
)

HOUR = 3600.0
WIDE = 4
RULES = {"strict": 0.0, "skip": np.inf, "easy": 0.0}
"""After how long the first who waits gets devices reserved."""


@dataclass(frozen=True)
class Job:
    """One request in time."""

    arrives: float
    runs: float
    says: float
    shape: Shape


@dataclass(frozen=True)
class Site:
    """A small cluster with its stream; wide jobs are few and hard to place."""

    name: str
    kinds: Sequence[NodeKind]
    load: float
    lifetime: float
    widths: tuple[tuple[float, float], ...] = (
        (0, 0.13),
        (0.5, 0.37),
        (1, 0.47),
        (2, 0.01),
        (4, 0.008),
        (8, 0.012),
    )

    def workload(self) -> Workload:
        """Return what its requests are drawn from."""
        return Workload(self.name, Mix(dict(self.widths), shapes=60), self.kinds)

    def draw(self, seed: int, jobs: int) -> list[Job]:
        """Draw *jobs* requests that ask for *load* of all GPUs over their time."""
        rng = np.random.default_rng(seed)
        shapes, weights = self.workload().shapes()
        chosen = rng.choice(len(shapes), size=jobs, p=weights)
        runs = np.minimum(rng.lognormal(np.log(0.7 * HOUR), 1.9, jobs), self.lifetime)
        asked = sum(shapes[i].milli * run for i, run in zip(chosen, runs, strict=True))
        capacity = GPU * sum(k.count * k.devices for k in self.kinds)
        span = asked / capacity / self.load
        arrives = _arrivals(rng, jobs, span)
        says = np.minimum(runs * rng.uniform(1, 3, jobs), self.lifetime)
        return [
            Job(float(a), float(r), float(s), shapes[i])
            for a, r, s, i in zip(arrives, runs, says, chosen, strict=True)
        ]


SITES = (
    Site(
        "one wide node",
        (NodeKind(1, 8, 0, 96, 512), NodeKind(4, 2, 1, 48, 192)),
        load=0.62,
        lifetime=24 * HOUR,
    ),
    Site(
        "two wide nodes",
        (NodeKind(2, 8, 0, 96, 512), NodeKind(1, 2, 1, 48, 192)),
        load=0.62,
        lifetime=48 * HOUR,
    ),
    Site(
        "a department",
        (
            NodeKind(6, 8, 0, 96, 512),
            NodeKind(4, 4, 1, 64, 256),
            NodeKind(10, 2, 2, 48, 192),
            NodeKind(3, 0, -1, 64, 256),
        ),
        load=0.8,
        lifetime=48 * HOUR,
    ),
)


def _arrivals(rng: np.random.Generator, jobs: int, span: float) -> np.ndarray:
    """Spread *jobs* over *span* seconds: by day rather than night, some in bursts."""
    times: list[float] = []
    while len(times) < jobs:
        at = rng.uniform(0, span)
        day = 0.55 - 0.45 * np.cos(2 * np.pi * (at / HOUR - 3) / 24)
        if rng.random() < day:
            burst = int(rng.geometric(0.4)) if rng.random() < 0.85 else 12
            times += (at + rng.exponential(60, burst).cumsum()).tolist()
    return np.sort(times[:jobs])


@dataclass(frozen=True)
class _Kept:
    """Devices kept for the first who waits: a node, from when, and its room then."""

    row: int
    starts: float
    cpu: int
    mem: int
    left: Ints
    shape: Shape

    def bears(self, shape: Shape, devices: Sequence[int]) -> bool:
        """Tell whether there is still room then if *shape* stays until later."""
        cpu, mem, left = self.cpu - shape.cpu, self.mem - shape.mem, self.left.copy()
        left[list(devices)] -= min(shape.milli, GPU)
        return _fits(self.shape, cpu, mem, left) and bool((left >= 0).all())


def _fits(shape: Shape, cpu: int, mem: int, left: Ints) -> bool:
    if cpu < shape.cpu or mem < shape.mem:
        return False
    if not shape.milli:
        return True
    able = np.count_nonzero(left >= min(shape.milli, GPU))
    return bool(able >= max(1, shape.devices))


class Replay:
    """One cluster, one queue, one rule and one policy in time."""

    def __init__(
        self, site: Site, jobs: Sequence[Job], *, rule: str, policy: str
    ) -> None:
        kinds = [kind for kind in site.kinds for _ in range(kind.count)]
        self._room = Room(shuffled(kinds, 0))
        stream = [job.shape for job in jobs]
        made = POLICIES[policy](self._room, stream, stream, 0)
        self._policy = made
        self._board = Scoreboard(self._room, made)
        self._rule, self._patience = rule, RULES[rule]
        self._jobs = jobs
        self._waiting: list[int] = []
        self._running: dict[int, tuple[float, int, Shape, list[int]]] = {}
        self._ends: list[tuple[float, int, int]] = []
        self._number = count()
        self.waits = np.zeros(len(jobs))

    def run(self) -> np.ndarray:
        """Return how long each job waited."""
        coming = 0
        while coming < len(self._jobs) or self._ends:
            arrival = self._jobs[coming].arrives if coming < len(self._jobs) else np.inf
            now = min(arrival, self._ends[0][0] if self._ends else np.inf)
            while coming < len(self._jobs) and self._jobs[coming].arrives <= now:
                self._waiting.append(coming)
                coming += 1
            while self._ends and self._ends[0][0] <= now:
                _, _, job = heapq.heappop(self._ends)
                _, row, shape, devices = self._running.pop(job)
                self._room.give(row, shape, devices)
            self._pass(now)
        return self.waits

    def _pass(self, now: float) -> None:
        if hasattr(self._policy, "renew"):
            self._policy.renew()
            self._board = Scoreboard(self._room, self._policy)
        kept: _Kept | None = None
        full: set[Shape] = set()
        still: list[int] = []
        blocked = False
        for index in self._waiting:
            job = self._jobs[index]
            if blocked or job.shape in full or not self._start(index, now, kept):
                still.append(index)
                if kept is None:
                    full.add(job.shape)
                    blocked = self._rule == "strict"
                    if not blocked and now - job.arrives >= self._patience:
                        kept = self._reserve(job.shape, now)
        self._waiting = still

    def _start(self, index: int, now: float, kept: _Kept | None) -> bool:
        job = self._jobs[index]
        scores = self._board.scores(job.shape)
        row = int(scores.argmin())
        if scores[row] == NOWHERE:
            return False
        devices = self._board.choose(job.shape, row)
        if kept is not None and row == kept.row and now + job.says > kept.starts:
            if not kept.bears(job.shape, devices):
                scores = scores.copy()
                scores[row] = NOWHERE
                row = int(scores.argmin())
                if scores[row] == NOWHERE:
                    return False
            else:
                self._take_from(kept, job.shape, devices)
        devices = self._board.place(job.shape, row)
        self._running[index] = (now + job.says, row, job.shape, devices)
        heapq.heappush(self._ends, (now + job.runs, next(self._number), index))
        self.waits[index] = now - job.arrives
        return True

    def _take_from(self, kept: _Kept, shape: Shape, devices: Sequence[int]) -> None:
        kept.left[list(devices)] -= min(shape.milli, GPU)
        object.__setattr__(kept, "cpu", kept.cpu - shape.cpu)
        object.__setattr__(kept, "mem", kept.mem - shape.mem)

    def _reserve(self, shape: Shape, now: float) -> _Kept | None:
        """Find the node that has room for *shape* first, as far as people say."""
        room = self._room
        cpu, mem, left = room.cpu.copy(), room.mem.copy(), room.left.copy()
        for ends, row, other, devices in sorted(
            self._running.values(), key=lambda r: (r[0], r[1])
        ):
            cpu[row] += other.cpu
            mem[row] += other.mem
            left[row, devices] += min(other.milli, GPU)
            if shape.models and int(room.model[row]) not in shape.models:
                continue
            if _fits(shape, int(cpu[row]), int(mem[row]), left[row]):
                starts = max(ends, now)
                return _Kept(
                    row, starts, int(cpu[row]), int(mem[row]), left[row], shape
                )
        return None


@dataclass(frozen=True)
class Waits:
    """What people felt, in minutes."""

    mean: float
    p95: float
    wide: float
    worst: float


def summarise(waits: np.ndarray, jobs: Sequence[Job]) -> Waits:
    """Say what *waits*, in minutes, were for all and for those who wanted much."""
    wide = [w for w, j in zip(waits, jobs, strict=True) if j.shape.devices >= WIDE]
    return Waits(
        mean=float(waits.mean()),
        p95=float(np.percentile(waits, 95)),
        wide=float(np.mean(wide)) if wide else 0.0,
        worst=float(waits.max()),
    )


def measure(site: Site, *, rule: str, policy: str, jobs: int, seed: int) -> Waits:
    """Replay *jobs* requests and say how long they waited."""
    stream = site.draw(seed, jobs)
    return summarise(Replay(site, stream, rule=rule, policy=policy).run() / 60, stream)
