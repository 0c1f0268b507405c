"""Sessions of several containers: all of them get room, or none takes any.

Members are placed one by one, the widest first, on the cluster itself; if one finds no
room, everything taken so far is given back. ``one-node`` wants one node for all.
``spread`` prefers nodes that have no other member, ``pack`` as few nodes as it finds,
and before that nodes of one rack.
"""

from __future__ import annotations

import numpy as np

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.cluster import Mask, Vector
from backendai_hub.scheduling.placing import Placer, Room
from backendai_hub.scheduling.shapes import Shape, Shapes
from backendai_hub.scheduling.snapshot import PendingSession

_MOST_RACKS = 16
"""How many racks are tried for one gang; a pass must not grow without end."""


class Gang:
    """One try to place a session's members."""

    def __init__(
        self,
        placer: Placer,
        shapes: Shapes,
        session: PendingSession,
        among: Mask | None = None,
    ) -> None:
        self._placer = placer
        self._cluster = placer.cluster
        self._session = session
        self._among = among
        self._members = [(shapes.asking(session, m.request)) for m in session.members]
        self._order = sorted(
            range(len(self._members)),
            key=lambda i: (_width(self._members[i]), -i),
            reverse=True,
        )
        self._taken: dict[int, Room] = {}

    def place(self, rack_label: str) -> list[Room] | None:
        """Take room for all members, or none; in the order of the members."""
        if any(shape.never for shape in self._members):
            return None
        if self._session.layout == "one-node":
            done = self._on_one_node()
        elif self._session.layout == "spread":
            done = self._spread()
        else:
            done = self._in_one_rack(rack_label) or self._pack(self._among)
        if not done:
            return None
        return [self._taken[i] for i in range(len(self._members))]

    def useful(self) -> Mask:
        """Tell which nodes have room: for all on one node, or for any of them.

        A node that has none now has none when others take more.
        """
        rooms = [self._placer.room(shape) for shape in self._members]
        if self._session.layout == "one-node":
            together: Mask = np.all(rooms, axis=0) & self._enough()
            return together
        either: Mask = np.any(rooms, axis=0) & all(room.any() for room in rooms)
        return either

    # --- the three layouts ---------------------------------------------------------

    def _on_one_node(self) -> bool:
        shape = self._members[self._order[0]]
        rows = self._fitting(shape) & self._enough()
        # Nearly all of them can: it is not true of one that there is no room on it
        # until it has been tried.
        while (row := self._placer.find(shape, self._session.owner_id, rows)) >= 0:
            if all(self._take(i, row) for i in self._order):
                return True
            self._give_back()
            rows[row] = False
        return False

    def _spread(self) -> bool:
        fresh = self._everywhere()
        for i in self._order:
            shape, owner = self._members[i], self._session.owner_id
            row = self._placer.find(shape, owner, fresh)
            if row < 0:
                row = self._placer.find(shape, owner, self._among)
            if row < 0 or not self._take(i, row):
                self._give_back()
                return False
            fresh[row] = False
        return True

    def _pack(self, among: Mask | None) -> bool:
        waiting = list(self._order)
        while waiting:
            shape = self._members[waiting[0]]
            rows = self._fitting(shape)
            if among is not None:
                rows &= among
            many = np.minimum(self._capacity(shape), len(waiting))
            many[~rows] = 0
            most = int(many.max(initial=0))
            owner = self._session.owner_id
            row = self._placer.find(shape, owner, many == most) if most else -1
            if row < 0:
                self._give_back()
                return False
            # Whoever else fits beside the widest comes along.
            left = [i for i in waiting if not self._take(i, row)]
            if len(left) == len(waiting):
                self._give_back()
                return False
            waiting = left
        return True

    def _in_one_rack(self, label: str) -> bool:
        racks = self._cluster.racks(label)
        if len(racks) < 2:
            return False
        shape = self._members[self._order[0]]
        capacity = np.where(self._fitting(shape), self._capacity(shape), 0)
        hopeful = sorted(
            (int(capacity[mask].sum()), name)
            for name, mask in racks.items()
            if capacity[mask].any()
        )
        # The tightest of those that may have enough: wide racks stay wide.
        same = all(s is shape for s in self._members)
        hopeful = [h for h in hopeful if not same or h[0] >= len(self._members)]
        for _, name in hopeful[:_MOST_RACKS]:
            among = racks[name] if self._among is None else racks[name] & self._among
            if self._pack(among):
                return True
        return False

    # --- what they need ----------------------------------------------------------

    def _everywhere(self) -> Mask:
        if self._among is not None:
            return self._among.copy()
        return np.ones(len(self._cluster.nodes), bool)

    def _fitting(self, shape: Shape) -> Mask:
        rows = self._placer.room(shape) & self._everywhere()
        if not self._cluster.keeps_apart:
            rows &= self._cluster.serving(self._session.owner_id)
        return rows

    def _enough(self) -> Mask:
        """Tell which nodes have as much as all members ask for together."""
        rows = self._cluster.spare >= len(self._members)
        together = np.zeros(len(self._cluster.slots), np.int64)
        for shape in self._members:
            together += np.array(shape.demand.amounts, np.int64)
        for column, amount in enumerate(together.tolist()):
            if amount:
                rows = rows & (self._cluster.free_of(column) >= amount)
                rows &= self._whole_enough(column)
        return rows

    def _whole_enough(self, column: int) -> Mask:
        """Tell which nodes have enough of a slot, as no device gives to two halves.

        Devices that are given whole serve nobody else, and one that serves a fraction
        has to have all of it.
        """
        cluster = self._cluster
        rows = np.ones(len(cluster.nodes), bool)
        asked = [a for m in self._members if (a := m.demand.amounts[column])]
        if self._placer.allow_split or not cluster.only_units(column):
            return rows
        whole = sum(amount for amount in asked if amount % MILLI == 0)
        parts = [amount for amount in asked if amount < MILLI]
        if whole:
            rows &= cluster.untouched_of(column) >= whole
        for part in set(parts):
            least = sum(other >= part for other in parts)
            least += whole // MILLI * (MILLI // part)
            rows &= cluster.pieces_of(column, part) >= least
        return rows

    def _capacity(self, shape: Shape) -> Vector:
        """Estimate how many such members each node takes."""
        many = self._cluster.spare.copy()
        for column, amount in enumerate(shape.demand.amounts):
            if amount:
                whole = amount % MILLI == 0 and self._cluster.only_units(column)
                cluster = self._cluster
                free = (cluster.untouched_of if whole else cluster.free_of)(column)
                many = np.minimum(many, free // amount)
        # One that has room for one has room, whatever this says.
        return np.maximum(many, 1)

    # --- taking and giving back ----------------------------------------------------

    def _take(self, member: int, row: int) -> bool:
        shape = self._members[member]
        if not self._placer.has_room(shape, row):
            return False
        shares = self._placer.take(shape, row)
        if shares is None:
            return False
        self._taken[member] = self._placer.settle(row, shares, self._session.owner_id)
        return True

    def _give_back(self) -> None:
        for room in reversed(list(self._taken.values())):
            self._placer.undo(room)
        self._taken = {}


def _width(shape: Shape) -> tuple[int, tuple[int, ...]]:
    return shape.demand.milli, shape.demand.amounts
