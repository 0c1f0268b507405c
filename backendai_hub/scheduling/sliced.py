"""What devices have open after a demand, where some can be cut into slices.

A slice taken from a device closes it to whole requests, and the other way round, so
this is found by trying: once for each state that nodes of one make are in.
"""

from __future__ import annotations

import numpy as np

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.layouts import describe
from backendai_hub.scheduling.mix import Matrix, Mix
from backendai_hub.scheduling.scoring import Demand, IntVector


class SlicedRoom:
    """Remembers what is open after each demand in each state of a node."""

    def __init__(self, cluster: Cluster, mix: Mix) -> None:
        self._cluster = cluster
        self._mix = mix
        self._known: dict[object, Matrix] = {}
        self._columns, self._makes = _find_makes(cluster)

    def __bool__(self) -> bool:
        """Tell whether there are such devices at all."""
        return bool(self._columns)

    def open_after(self, demand: Demand, rows: IntVector) -> Matrix:
        """Return what each of *rows* has open once *demand* has its part of it."""
        keys = self._keys(demand, rows)
        unknown: dict[object, int] = {}
        for key, row in zip(keys, rows.tolist(), strict=True):
            if key not in self._known:
                unknown.setdefault(key, row)
        if unknown:
            tried = self._try(demand, np.fromiter(unknown.values(), np.int64))
            self._known.update(zip(unknown, tried, strict=True))
        return np.stack([self._known[key] for key in keys])

    def describe(self, rows: IntVector) -> IntVector:
        """Return the make of each of *rows*, and what its devices have left."""
        cluster = self._cluster
        free = (cluster.free_of(column)[rows] for column in self._columns)
        described: IntVector = np.column_stack(
            [self._makes[rows], cluster.left[rows], *free]
        )
        return described

    def _keys(self, demand: Demand, rows: IntVector) -> list[object]:
        return [
            (demand.column, demand.milli, state.tobytes())
            for state in self.describe(rows)
        ]

    def _try(self, demand: Demand, rows: IntVector) -> Matrix:
        fork = self._cluster.fork()
        slot = fork.slots[demand.column]
        for row in rows.tolist():
            shares = fork.choose_devices(row, slot, demand.milli)
            if shares is not None:
                fork.take(row, shares)
        return self._mix.read_open(fork, rows)


def _find_makes(cluster: Cluster) -> tuple[list[int], IntVector]:
    """Return the columns of profiles, and which nodes are of one make."""
    known: tuple[list[int], IntVector] | None = cluster.known.get(_find_makes)
    if known is None:
        slots = {s for n in cluster.nodes for d in n.devices for s in d.profiles}
        makes: dict[object, int] = {}
        known = cluster.known[_find_makes] = (
            sorted(cluster.column[s] for s in slots),
            np.array(
                [makes.setdefault(describe(n), len(makes)) for n in cluster.nodes]
                if slots
                else [],
                np.int64,
            ),
        )
    return known
