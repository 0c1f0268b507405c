"""How much of a cluster can be given away: requests come until it is full.

Nodes are shuffled with the seed, requests come one by one until they have asked for
130 % of all GPUs; nobody leaves, and who finds no room is not tried again. The figure
is the share of all GPUs that is given away when 100 % and 130 % have been asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.packing.baselines import (
    BestFit,
    Clustering,
    Dispersed,
    DotProduct,
    Fgd,
    Packing,
    Random,
)
from benchmarks.packing.ours import Ours, shuffled
from benchmarks.packing.room import Room, Scoreboard
from benchmarks.packing.workloads import Shape, Workload

POINTS = (1.0, 1.3)
RENEWED = 0.05
"""Our policy looks at the cluster anew when this share of it has been given away."""
_OTHER_DRAW = 10_000
"""What our policy has learned comes from another seed than what it is measured on."""

Make = Callable[[Room, Sequence[Shape], Sequence[Shape], int], Any]

POLICIES: Mapping[str, Make] = {
    "random": lambda room, _stream, _learned, seed: Random(room, seed),
    "dispersed": lambda room, *_: Dispersed(room),
    "dot-product": lambda room, *_: DotProduct(room),
    "clustering": lambda room, *_: Clustering(room),
    "packing": lambda room, *_: Packing(room),
    "best-fit": lambda room, *_: BestFit(room),
    "fgd": lambda room, stream, *_: Fgd(room, stream),
    "ours": lambda room, _stream, learned, _seed: Ours(room, learned),
}


def saturate(
    workload: Workload, policy: str, seed: int, *, scale: float = 1.0
) -> tuple[float, ...]:
    """Return the percentage of GPUs given away at each of the points."""
    room = Room(shuffled(workload.nodes(scale), seed))
    stream = workload.draw(seed, scale)
    learned = workload.draw(seed + _OTHER_DRAW, scale)
    chosen = POLICIES[policy](room, stream, learned, seed)
    board = Scoreboard(room, chosen)
    renew = getattr(chosen, "renew", None)
    asked = given = fresh = 0
    full: set[Shape] = set()
    found: list[float] = []
    for shape in stream:
        asked += shape.milli
        if shape not in full:
            row = board.find(shape)
            if row is None:
                full.add(shape)
            else:
                board.place(shape, row)
                given += shape.milli
                fresh += shape.milli
        if renew is not None and fresh >= RENEWED * room.capacity:
            fresh = 0
            renew()
            board = Scoreboard(room, chosen)
        while len(found) < len(POINTS) and asked >= POINTS[len(found)] * room.capacity:
            found.append(100 * given / room.capacity)
    return tuple(found)
