"""Which devices of one node belong together, and how one device is cut into slices.

Nodes of one make share a *topology* (how far their devices are from each other) and
*slicing* (where instances of each profile fit on a device). Both answer from tables
that fill as questions come up: a node of eight GPUs has 256 states, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

from backendai_hub.scheduling.snapshot import DeviceState

Distances = tuple[tuple[int, ...], ...]

_MOST_CHOICES = 5000
"""Above this many ways to choose, devices are taken one after the other."""


class Topology:
    """How far the devices of one slot are from each other, by their positions."""

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self._best: dict[tuple[int, int], int] = {}
        apart = {d for i, row in enumerate(distances) for d in row[:i] + row[i + 1 :]}
        self._uniform = len(apart) <= 1

    def choose(self, free: int, count: int) -> tuple[int, ...]:
        """Choose *count* of the devices whose bits are set in *free*.

        The farthest two are as close as can be; then all of them; then those that
        stay behind are as close as can be.
        """
        key = (free, count)
        best = self._best.get(key)
        if best is None:
            best = self._best[key] = self._choose(list(bits(free)), count)
        return tuple(bits(best))

    def _choose(self, free: list[int], count: int) -> int:
        if self._uniform or count in {1, len(free)}:
            # Of single ones, that is best which the others miss least.
            chosen: Sequence[int] = free[:count]
            if count == 1 and not self._uniform:
                chosen = min(((d,) for d in free), key=lambda c: self._cost(c, free))
        elif comb(len(free), count) > _MOST_CHOICES:
            chosen = min(
                (self._gather(first, free, count) for first in free),
                key=lambda c: self._cost(c, free),
            )
        else:
            chosen = min(combinations(free, count), key=lambda c: self._cost(c, free))
        return sum(1 << d for d in chosen)

    def _gather(self, first: int, free: list[int], count: int) -> tuple[int, ...]:
        chosen = [first]
        while len(chosen) < count:
            rest = (d for d in free if d not in chosen)
            chosen.append(min(rest, key=lambda d: self._cost((*chosen, d), ())))
        return tuple(sorted(chosen))

    def _cost(self, chosen: Sequence[int], free: Sequence[int]) -> tuple[int, int, int]:
        inside = [self._distances[a][b] for a, b in combinations(chosen, 2)]
        behind = combinations([d for d in free if d not in chosen], 2)
        left = sum(self._distances[a][b] for a, b in behind)
        return max(inside, default=0), sum(inside), left


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@lru_cache(maxsize=256)
def topology(distances: Distances) -> Topology:
    """Return the table of all nodes with these *distances*."""
    return Topology(distances)


def measure(devices: Sequence[DeviceState]) -> Distances:
    """Tell how far *devices* are from each other: by their links, or by NUMA node.

    What a report of links leaves out is farther than what it tells.
    """
    farthest = max((level for d in devices for level in d.links.values()), default=-1)

    def distance(one: DeviceState, other: DeviceState) -> int:
        if one.id == other.id:
            return 0
        known = [
            level
            for level in (one.links.get(other.id), other.links.get(one.id))
            if level is not None
        ]
        return min(known) if known else farthest + 1 + (one.numa != other.numa)

    return tuple(tuple(distance(a, b) for b in devices) for a in devices)


Profiles = tuple[tuple[str, tuple[int, ...]], ...]


class Slicing:
    """How a device is cut: where instances of each profile fit, by its state.

    A state is the slices in use, as bits.
    """

    def __init__(self, profiles: Profiles) -> None:
        self._places: Mapping[str, tuple[int, ...]] = dict(profiles)
        self._most: dict[tuple[int, str], int] = {}
        self._chosen: dict[tuple[int, str], int] = {}
        self.all = 0
        for _, places in profiles:
            for place in places:
                self.all |= place

    def most(self, state: int, slot: str) -> int:
        """Return how many more instances of the profile *slot* fit."""
        key = (state, slot)
        known = self._most.get(key)
        if known is None:
            known = self._most[key] = max(
                (
                    1 + self.most(state | place, slot)
                    for place in self._places.get(slot, ())
                    if not state & place
                ),
                default=0,
            )
        return known

    def choose(self, state: int, slot: str) -> int:
        """Return the slices that one more instance takes, or 0 if none fits.

        The place is chosen that leaves most room to all other profiles.
        """
        key = (state, slot)
        known = self._chosen.get(key)
        if known is None:
            places = [p for p in self._places.get(slot, ()) if not state & p]
            known = max(places, key=lambda p: self._room(state | p), default=0)
            self._chosen[key] = known
        return known

    def _room(self, state: int) -> int:
        """Sum up how much of the device each profile could still make use of."""
        return sum(
            self.most(state, slot) * places[0].bit_count()
            for slot, places in self._places.items()
            if places
        )


@lru_cache(maxsize=256)
def slicing(profiles: Profiles) -> Slicing:
    """Return the table of all devices that are cut like this."""
    return Slicing(profiles)
