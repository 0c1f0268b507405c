"""The scheduler itself on the clusters and streams of the experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.fragmentation import Fragmentation
from backendai_hub.scheduling.scoring import Demand
from backendai_hub.scheduling.snapshot import DeviceState, NodeState, PendingSession
from benchmarks.packing.room import Floats, Ints, Room
from benchmarks.packing.workloads import NodeKind, Shape

MIB = 1 << 20
SLOT = "cuda.shares"
LABEL = "gpu-model"


def make_node(number: int, kind: NodeKind) -> NodeState:
    """Describe one node as its agent would."""
    name = f"node-{number:04d}"
    host = {"cpu": kind.cores * MILLI, "mem": kind.gib * 1024 * MIB}
    gpu = {SLOT: MILLI}
    return NodeState(
        id=name,
        name=name,
        runtime="docker",
        architecture="x86_64",
        labels={LABEL: str(kind.model)},
        devices=(
            DeviceState(id=f"{name}/host", name="host", total=host, free=host),
            *(
                DeviceState(
                    id=f"{name}/gpu{i}",
                    name=f"gpu{i}",
                    total=gpu,
                    free=gpu,
                    kind="cuda",
                    model=str(kind.model),
                )
                for i in range(kind.devices)
            ),
        ),
    )


def make_request(shape: Shape) -> ResourceSlots:
    """Write a shape as people would ask for it."""
    return ResourceSlots({"cpu": shape.cpu, "mem": shape.mem * MIB, SLOT: shape.milli})


def make_demand(slots: Sequence[str], shape: Shape) -> Demand:
    """Write a shape in the order of a cluster's columns."""
    request = make_request(shape)
    labels = tuple((LABEL, str(model)) for model in sorted(shape.models))
    column = slots.index(SLOT) if shape.milli else -1
    return Demand(tuple(request[s] for s in slots), column, shape.milli, labels)


def make_typical(
    slots: Sequence[str], stream: Sequence[Shape]
) -> list[tuple[Demand, float]]:
    """Return what the scheduler would have learned from *stream*."""
    counts = Counter(stream).most_common()
    return [(make_demand(slots, shape), float(n)) for shape, n in counts]


def make_sessions(stream: Sequence[Shape]) -> Iterator[PendingSession]:
    """Return one waiting session for each request."""
    requests = {shape: make_request(shape) for shape in set(stream)}
    labels = {s: {LABEL: str(*s.models)} if s.models else {} for s in requests}
    references = {"docker": "jupyterlab"}
    for number, shape in enumerate(stream):
        yield PendingSession(
            id=str(number),
            owner_id="user",
            request=requests[shape],
            references=references,
            architecture="x86_64",
            scopes=(),
            labels=labels[shape],
        )


class _View:
    """What the product's policy reads of a cluster, over an experiment's arrays."""

    slots = ("cpu", SLOT, "mem")

    def __init__(self, room: Room) -> None:
        self.nodes = tuple(make_node(i, kind) for i, kind in enumerate(room.kinds))
        self.known: dict[object, Any] = {}
        self.log = room.log
        self.left = room.left
        self.total_left = room.total
        self.accelerated = room.devices > 0
        self._free = (room.cpu, room.total, _Bytes(room.mem))
        self._total = (room.all_cpu, room.devices * MILLI, room.all_mem * MIB)

    def is_profile(self, column: int) -> bool:
        del column
        return False

    def free_of(self, column: int) -> Any:
        return self._free[column]

    def total_of(self, column: int) -> Ints:
        return self._total[column]


class _Bytes:
    """Memory in bytes, of an array that counts MiB."""

    def __init__(self, mib: Ints) -> None:
        self._mib = mib

    def __getitem__(self, rows: Ints) -> Ints:
        return self._mib[rows] * MIB


class Ours:
    """The product's default policy; every so often it looks at the cluster anew."""

    def __init__(self, room: Room, learned: Sequence[Shape]) -> None:
        self._view = cast("Cluster", _View(room))
        self._typical = make_typical(_View.slots, learned)
        self._demands: dict[Shape, Demand] = {}
        self.renew()

    def renew(self) -> None:
        """Begin another pass: weigh what is typical by what is free now."""
        self._scorer = Fragmentation().scorer(self._view, self._typical)

    def score(self, shape: Shape, rows: Ints) -> Floats:
        return self._scorer.score(self._demand(shape), rows)

    def choose_device(self, shape: Shape, row: int, fitting: Sequence[int]) -> int:
        return self._scorer.choose_device(self._demand(shape), row, fitting)

    def _demand(self, shape: Shape) -> Demand:
        demand = self._demands.get(shape)
        if demand is None:
            demand = self._demands[shape] = make_demand(_View.slots, shape)
        return demand


def build_cluster(kinds: Sequence[NodeKind]) -> Cluster:
    """Build the product's own cluster of these nodes."""
    return Cluster([make_node(number, kind) for number, kind in enumerate(kinds)])


def shuffled(kinds: Sequence[NodeKind], seed: int) -> list[NodeKind]:
    """Return the nodes in another order for every seed."""
    order = np.random.default_rng(seed).permutation(len(kinds))
    return [kinds[i] for i in order]
