"""How much of each slot nodes have, in all and free, as integer arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backendai_hub.core.slots import MILLI, SlotType, slot_type
from backendai_hub.scheduling.cells import capacity, read_cells
from backendai_hub.scheduling.layouts import (
    NOTHING,
    Cell,
    Layout,
    Room,
    describe,
    lay_out,
)
from backendai_hub.scheduling.nodes import Mask, Nodes, Vector
from backendai_hub.scheduling.snapshot import NodeState, PendingSession

UNLIMITED = 1 << 40


class Amounts(Nodes):
    """Free room per node and slot, with what one device can give at most.

    ``free[node, slot]`` is the sum over devices, ``largest[node, slot]`` the most a
    single device can give, ``untouched[node, slot]`` the sum over *units* (devices
    that count as exactly one) of which nothing is in use. A request fits a node if
    one device can give it, or if it asks for several units and enough are untouched.

    ``left[node, device]`` is what is left of each accelerator, in thousandths;
    ``full_free``, ``max_left`` and ``total_left`` tell for each node how many are
    untouched, the most one has left, and the sum.
    """

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        super().__init__(nodes)
        found = {s for n in nodes for d in n.devices for s in (*d.total, *d.profiles)}
        self.slots = tuple(sorted(found))
        self.column = {slot: i for i, slot in enumerate(self.slots)}
        self._only_units: dict[int, bool] = {}
        self._has_units: dict[int, bool] = {}
        self._profiles = {
            self.column[s] for n in nodes for d in n.devices for s in d.profiles
        }
        self._lay_out()
        self._count()
        self.limits_containers = any(n.max_containers is not None for n in nodes)
        self.spare: Vector = np.array(
            [
                UNLIMITED
                if n.max_containers is None
                else max(0, n.max_containers - n.containers)
                for n in nodes
            ],
            np.int64,
        )
        """How many more containers each node may run."""

    # --- how it is built ---------------------------------------------------------

    def _lay_out(self) -> None:
        known: dict[object, Layout] = {}
        self._layouts: list[Layout] = []
        for node in self.nodes:
            key = describe(node)
            layout = known.get(key)
            if layout is None:
                layout = known[key] = lay_out(node, self.slots)
            self._layouts.append(layout)
        self._makes = tuple(known.values())
        models = {layout.model: i for i, layout in enumerate(self._makes)}
        ids = sorted(models)
        self.model_id: Vector = np.array(
            [ids.index(x.model) if x.model else -1 for x in self._layouts], np.int64
        )
        """Which nodes have the same accelerators; -1 where there are none."""
        most = max((len(x.accelerators) for x in known.values()), default=0)
        self.left: Vector = np.zeros((len(self.nodes), most), np.int64)
        self._only: Vector = np.array([x.only for x in self._layouts], np.int64)

    def _count(self) -> None:
        """Read what is left from the snapshot, and add it up."""
        self._cells: list[tuple[Cell, ...] | list[Cell]] = []
        rooms: list[tuple[Room, ...]] = []
        for node, layout in zip(self.nodes, self._layouts, strict=True):
            if all(d.free == d.total and not d.sliced for d in node.devices):
                self._cells.append(layout.full)
                rooms.append(layout.rooms)
                continue
            cells = read_cells(node, layout)
            self._cells.append(cells)
            rooms.append(
                tuple(
                    NOTHING if c is None else c.add_up(cell)
                    for c, cell in zip(layout.columns, cells, strict=True)
                )
            )
        shape = (len(self.nodes), len(self.slots), 3)
        table = np.array(rooms, np.int64).reshape(shape).transpose(2, 1, 0).copy()
        self._free, self._largest, self._untouched = (
            [np.ascontiguousarray(v) for v in part] for part in table
        )
        self._total, self._biggest, self._units = capacity(self._layouts, shape)
        for row, layout in enumerate(self._layouts):
            if layout.accelerators:
                self._fill_left(row, layout)
        self.full_free: Vector = (self.left == MILLI).sum(axis=1)
        self.max_left: Vector = self.left.max(axis=1, initial=0)
        self.total_left: Vector = self.left.sum(axis=1)

    def _fill_left(self, row: int, layout: Layout) -> None:
        """Write what is left of each accelerator of one node."""
        left = self.left[row]
        cells = self._cells[row]
        for column, cell in zip(layout.columns, cells, strict=True):
            if column is None or column.tables:
                continue
            for place, amount, total, whole in zip(
                column.accelerators, cell, column.totals, column.whole, strict=True
            ):
                if place >= 0 and slot_type(column.slot) is SlotType.COUNT:
                    left[place] = 0 if whole and amount < total else amount

    def unshare(self) -> None:
        """Get arrays of one's own for everything that changes."""
        super().unshare()
        self._cells = list(self._cells)
        self._free = [v.copy() for v in self._free]
        self._largest = [v.copy() for v in self._largest]
        self._untouched = [v.copy() for v in self._untouched]
        self.left, self.full_free = self.left.copy(), self.full_free.copy()
        self.max_left, self.total_left = self.max_left.copy(), self.total_left.copy()
        self.spare = self.spare.copy()

    @property
    def free(self) -> Vector:
        """What is free, summed over devices: ``[node, slot]``."""
        return _stack(self._free, len(self.nodes))

    @property
    def largest(self) -> Vector:
        """The most that one device can give: ``[node, slot]``."""
        return _stack(self._largest, len(self.nodes))

    @property
    def untouched(self) -> Vector:
        """What untouched units add up to: ``[node, slot]``."""
        return _stack(self._untouched, len(self.nodes))

    @property
    def total(self) -> Vector:
        """What nodes have in all: ``[node, slot]``."""
        return _stack(self._total, len(self.nodes))

    @property
    def biggest(self) -> Vector:
        """The most that one device has in all: ``[node, slot]``."""
        return _stack(self._biggest, len(self.nodes))

    @property
    def units(self) -> Vector:
        """What units add up to: ``[node, slot]``."""
        return _stack(self._units, len(self.nodes))

    def free_of(self, column: int) -> Vector:
        """Return what is free of one slot; it changes as the cluster does."""
        return self._free[column]

    def largest_of(self, column: int) -> Vector:
        """Return the most one device can give; it changes as the cluster does."""
        return self._largest[column]

    def untouched_of(self, column: int) -> Vector:
        """Return what untouched units add up to; it changes as the cluster does."""
        return self._untouched[column]

    def biggest_of(self, column: int) -> Vector:
        """Return the most one device has in all."""
        return self._biggest[column]

    def units_of(self, column: int) -> Vector:
        """Return what units add up to."""
        return self._units[column]

    def pieces_of(self, column: int, amount: int) -> Vector:
        """Return how many times each node can give *amount* from one accelerator.

        Where nodes have accelerators of several kinds it is more than anybody asks.
        """
        pieces = (self.left // amount).sum(axis=1)
        return np.where(self._only == column, pieces, UNLIMITED)

    def total_of(self, column: int) -> Vector:
        """Return what nodes have of one slot in all."""
        return self._total[column]

    def only_units(self, column: int) -> bool:
        """Tell whether every device with this slot counts as exactly one."""
        known = self._only_units.get(column)
        if known is None:
            known = self._only_units[column] = all(
                c.units for x in self._makes if (c := x.columns[column]) is not None
            )
        return known

    def has_units(self, column: int) -> bool:
        """Tell whether any device with this slot counts as exactly one."""
        known = self._has_units.get(column)
        if known is None:
            known = self._has_units[column] = bool(self._units[column].any())
        return known

    # --- what fits ---------------------------------------------------------------

    def fits(self, slot: str, amount: int, *, ever: bool = False) -> Mask:
        """Tell for each node whether it can give *amount* of *slot*.

        With ``ever``, judge by what the node has in all, not by what is free.
        """
        column = self.column.get(slot)
        if column is None:
            return np.zeros(len(self.nodes), bool)
        mask: Mask = (self._biggest if ever else self._largest)[column] >= amount
        if slot_type(slot) is SlotType.COUNT and amount % MILLI == 0:
            mask = mask | ((self._units if ever else self._untouched)[column] >= amount)
        if amount % MILLI and self.is_profile(column):
            mask = np.zeros(len(self.nodes), bool)
        return mask

    def gives(self, row: int, slot: str, amount: int) -> bool:
        """Tell whether one node can give *amount* of *slot*, as :meth:`fits` does."""
        column = self.column.get(slot)
        if column is None or (amount % MILLI and self.is_profile(column)):
            return False
        if self._largest[column][row] >= amount:
            return True
        several = slot_type(slot) is SlotType.COUNT and amount % MILLI == 0
        return several and bool(self._untouched[column][row] >= amount)

    def is_sliced(self, row: int) -> bool:
        """Tell whether a node has devices of which one slot takes from another."""
        return self._layouts[row].sliced

    def big_enough(self, session: PendingSession) -> Mask:
        """Tell which nodes could be of use to *session* if nobody else used them."""
        mask = self.able(session) & self.open
        for slot, amount in () if session.members else session.request.items():
            column = self.column.get(slot)
            mask &= column is not None and self._total[column] >= amount
        return mask

    def is_profile(self, column: int) -> bool:
        """Tell whether a slot counts instances of sliced devices."""
        return column in self._profiles


def _stack(columns: Sequence[Vector], count: int) -> Vector:
    return np.array(columns, np.int64).reshape(len(columns), count).T
