"""The nodes as integer arrays, kept true while a pass places sessions on them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from backendai_hub.core.slots import MILLI, SlotType, slot_type
from backendai_hub.scheduling.choosing import Choice, ChooseDevice
from backendai_hub.scheduling.layouts import (
    NOTHING,
    Cell,
    Column,
    Layout,
    Room,
    describe,
    lay_out,
)
from backendai_hub.scheduling.snapshot import NodeState, PendingSession, Share

Vector = NDArray[np.int64]
Mask = NDArray[np.bool_]
ANYBODY, NOBODY = -1, -2
UNLIMITED = 1 << 40


class Cluster:
    """Free room per node and slot, with what one device can give at most.

    ``free[node, slot]`` is the sum over devices, ``largest[node, slot]`` the most a
    single device can give, ``untouched[node, slot]`` the sum over *units* (devices
    that count as exactly one) of which nothing is in use. A request fits a node if
    one device can give it, or if it asks for several units and enough are untouched.

    ``left[node, device]`` is what is left of each accelerator, in thousandths;
    ``full_free``, ``max_left`` and ``total_left`` tell for each node how many are
    untouched, the most one has left, and the sum. ``log`` lists the rows that have
    changed, in order, so that whoever keeps something per node knows what to renew.
    """

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        self.nodes = tuple(nodes)
        found = {s for n in nodes for d in n.devices for s in (*d.total, *d.profiles)}
        self.slots = tuple(sorted(found))
        self.column = {slot: i for i, slot in enumerate(self.slots)}
        self.row = {node.id: i for i, node in enumerate(self.nodes)}
        self.log: list[int] = []
        self._only_units: dict[int, bool] = {}
        self._profiles = {
            self.column[s] for n in nodes for d in n.devices for s in d.profiles
        }
        self._lay_out()
        self._count()
        self.open: Mask = np.array([not n.closed for n in nodes], bool)
        self.accelerated: Mask = np.array(
            [any(d.kind != "host" for d in n.devices) for n in nodes], bool
        )
        self.keeps_apart = all(n.multi_user for n in nodes)
        """Whether every node serves every user."""
        self._people: dict[str, int] = {}
        self._owner: Vector = np.full(len(self.nodes), ANYBODY, np.int64)
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
        for row, node in enumerate(self.nodes):
            if node.sole_owner is not None:
                self.claim(row, node.sole_owner)
        self.closures = _number([node.closed for node in nodes])
        """Why each node takes nothing new: an index into words."""
        self._groups: dict[str, Mask] = {}
        self._barred: dict[int, Mask] = {}
        self._obstacles: dict[object, tuple[Vector, list[str]]] = {}

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
        models = {layout.model: i for i, layout in enumerate(known.values())}
        ids = sorted(models)
        self.model_id: Vector = np.array(
            [ids.index(x.model) if x.model else -1 for x in self._layouts], np.int64
        )
        """Which nodes have the same accelerators; -1 where there are none."""
        most = max((len(x.accelerators) for x in known.values()), default=0)
        self.left: Vector = np.zeros((len(self.nodes), most), np.int64)

    def _count(self) -> None:
        """Read what is left from the snapshot, and add it up."""
        self._cells: list[tuple[Cell, ...] | list[Cell]] = []
        rooms: list[tuple[Room, ...]] = []
        for node, layout in zip(self.nodes, self._layouts, strict=True):
            if all(d.free == d.total and not d.sliced for d in node.devices):
                self._cells.append(layout.full)
                rooms.append(layout.rooms)
                continue
            cells = _read_cells(node, layout)
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
        self._total, self._biggest, self._units = _capacity(self._layouts, shape)
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

    def total_of(self, column: int) -> Vector:
        """Return what nodes have of one slot in all."""
        return self._total[column]

    def only_units(self, column: int) -> bool:
        """Tell whether every device with this slot counts as exactly one."""
        known = self._only_units.get(column)
        if known is None:
            known = self._only_units[column] = all(
                c.units for x in self._layouts if (c := x.columns[column]) is not None
            )
        return known

    # --- who may run where ---------------------------------------------------------

    def eligible(self, session: PendingSession) -> Mask:
        """Tell which nodes may run *session* at all, whatever room they have."""
        fixed = self.able(session)
        return fixed & self.open & self.serving(session.owner_id)

    def able(self, session: PendingSession) -> Mask:
        """Tell which nodes can run *session* and have what it insists on."""
        mask: Mask = self.obstacles(session)[0] == 0
        return mask

    def obstacles(self, session: PendingSession) -> tuple[Vector, list[str]]:
        """Tell for each node why it can never run *session*: an index into words."""
        key = (
            frozenset(session.references),
            session.architecture,
            session.group,
            session.nodes if session.only_nodes else (),
            frozenset(session.labels.items()),
        )
        found = self._obstacles.get(key)
        if found is None:
            found = self._obstacles[key] = _number(
                [obstacle(node, session) for node in self.nodes]
            )
        return found

    def barred(self, session: PendingSession) -> Mask | None:
        """Tell which nodes may not run *session*, whoever it is; None if all may."""
        obstacles = self.obstacles(session)[0]
        mask = self._barred.get(id(obstacles))
        if mask is None:
            mask = self._barred[id(obstacles)] = (obstacles > 0) | ~self.open
        return mask if mask.any() else None

    def in_group(self, group: str) -> Mask:
        """Tell which nodes are in a resource group; without one, all are."""
        mask = self._groups.get(group)
        if mask is None:
            mask = self._groups[group] = np.array(
                [group in {"", node.group} for node in self.nodes], bool
            )
        return mask

    def serving(self, owner_id: str) -> Mask:
        """Tell which nodes serve *owner_id*: all but those that others have claimed."""
        person = self._people.get(owner_id, NOBODY)
        mask: Mask = (self._owner == ANYBODY) | (self._owner == person)
        return mask

    def claim(self, row: int, owner_id: str) -> None:
        """Note that *owner_id* uses a node, which may have to serve nobody else now."""
        if not self.nodes[row].multi_user:
            self._owner[row] = self._people.setdefault(owner_id, len(self._people))

    def owner_of(self, row: int) -> int:
        """Return who has claimed a node, as a token for :meth:`unclaim`."""
        return int(self._owner[row])

    def unclaim(self, row: int, owner: int) -> None:
        """Let a node belong to whom it belonged before."""
        self._owner[row] = owner

    def racks(self, label: str) -> dict[str, Mask]:
        """Return which nodes are in each rack, as *label* tells."""
        found: dict[str, list[int]] = {}
        for row, node in enumerate(self.nodes):
            if label in node.labels:
                found.setdefault(node.labels[label], []).append(row)
        masks = {}
        for name in sorted(found):
            masks[name] = np.zeros(len(self.nodes), bool)
            masks[name][found[name]] = True
        return masks

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

    def is_profile(self, column: int) -> bool:
        """Tell whether a slot counts instances of sliced devices."""
        return column in self._profiles

    def choose_devices(
        self,
        row: int,
        slot: str,
        amount: int,
        *,
        split: bool = False,
        prefer: ChooseDevice | None = None,
    ) -> list[Share] | None:
        """Pick the devices of one node that give *amount* of *slot*, or None."""
        index = self.column.get(slot, -1)
        column = self._layouts[row].columns[index] if index >= 0 else None
        if column is None:
            return None
        left, devices = self._cells[row][index], self.nodes[row].devices
        if column.plain:
            if left[0] < amount:
                return None
            return [Share(devices[column.devices[0]].id, slot, amount)]
        return Choice(devices, column, left).choose(amount, split=split, prefer=prefer)

    def left_on(self, row: int, devices: Sequence[str] = ()) -> list[Share]:
        """Return everything that is left of some devices of a node, or of all."""
        shares: list[Share] = []
        cut: set[str] = set()
        cells = self._cells[row]
        for index, column in enumerate(self._layouts[row].columns):
            for i, place in enumerate(() if column is None else column.devices):
                device = self.nodes[row].devices[place].id
                if column is None or (devices and device not in devices):
                    continue
                table = column.tables[i] if column.tables else None
                left = cells[index][i]
                if table is None and left > 0:
                    shares.append(Share(device, column.slot, left))
                    cut.add(device)
                elif table is not None and left != table.all and device not in cut:
                    cut.add(device)
                    slices = table.all & ~left
                    shares.append(Share(device, column.slot, MILLI, slices))
        whole = {s.device for s in shares if not s.slices}
        return [s for s in shares if not (s.slices and s.device in whole)]

    def clip(self, row: int, shares: Sequence[Share]) -> list[Share]:
        """Return as much of *shares* as is left."""
        clipped = []
        for share in shares:
            index, i = self._locate(row, share)
            left = self._cells[row][index][i]
            if share.slices:
                if slices := share.slices & ~left:
                    clipped.append(
                        Share(share.device, share.slot, share.amount, slices)
                    )
            elif amount := min(share.amount, left):
                clipped.append(Share(share.device, share.slot, amount))
        return clipped

    # --- taking and giving back ------------------------------------------------------

    def take(self, row: int, shares: Sequence[Share]) -> None:
        """Subtract *shares* from one node."""
        self._move(row, shares, -1)

    def give(self, row: int, shares: Sequence[Share]) -> None:
        """Give *shares* back that have been taken."""
        self._move(row, shares, 1)

    def fork(self) -> Cluster:
        """Return a copy to try things on; what does not change is shared."""
        other = copy(self)
        other.log = []
        other.unshare()
        return other

    def unshare(self) -> None:
        """Get arrays of one's own for everything that changes."""
        self._cells = list(self._cells)
        self._free = [v.copy() for v in self._free]
        self._largest = [v.copy() for v in self._largest]
        self._untouched = [v.copy() for v in self._untouched]
        self.left, self.full_free = self.left.copy(), self.full_free.copy()
        self.max_left, self.total_left = self.max_left.copy(), self.total_left.copy()
        self._owner, self._people = self._owner.copy(), dict(self._people)
        self.spare = self.spare.copy()

    def _locate(self, row: int, share: Share) -> tuple[int, int]:
        """Return where a node keeps what *share* is of: the column, the position."""
        index = self.column[share.slot]
        column = self._layouts[row].columns[index]
        devices, wanted = self.nodes[row].devices, share.device
        for i, place in enumerate(() if column is None else column.devices):
            if devices[place].id == wanted:
                return index, i
        raise KeyError(f"{self.nodes[row].name} has no {share.slot} on {wanted}")

    def _move(self, row: int, shares: Sequence[Share], sign: int) -> None:
        layout = self._layouts[row]
        cells = list(self._cells[row])
        columns = layout.columns
        touched: dict[int, None] = {}
        for share in shares:
            index = self.column[share.slot]
            column = columns[index]
            if column is not None and column.plain:
                left = cells[index][0] + sign * share.amount
                cells[index] = (left,)
                self._free[index][row] = self._largest[index][row] = left
                if column.totals[0] == MILLI:
                    self._untouched[index][row] = MILLI if left == MILLI else 0
                continue
            index, i = self._locate(row, share)
            touched[index] = None
            cell = cells[index]
            if share.slices:
                self._slice(row, cells, share, touched)
                continue
            cells[index] = (
                *cell[:i],
                cell[i] + sign * share.amount,
                *cell[i + 1 :],
            )
            if layout.sliced:
                self._close_slices(row, cells, share.device, touched)
        self._cells[row] = cells
        for index in touched:
            self._recount(row, index, cells[index])
        self.log.append(row)

    def _recount(self, row: int, index: int, cell: Cell) -> None:
        layout = self._layouts[row]
        column = layout.columns[index]
        if column is None:
            return
        free, largest, untouched = column.add_up(cell)
        self._free[index][row] = free
        self._largest[index][row] = largest
        self._untouched[index][row] = untouched
        if index == layout.only and len(cell) == self.left.shape[1]:
            if column.whole[0]:
                cell = tuple([x if x == MILLI else 0 for x in cell])
            self.left[row] = cell
            self.full_free[row] = untouched // MILLI
            self.max_left[row] = largest
            self.total_left[row] = free
        elif column.accelerators[0] >= 0 and not column.tables:
            self._fill_left(row, layout)
            left = self.left[row]
            self.full_free[row] = (left == MILLI).sum()
            self.max_left[row] = left.max()
            self.total_left[row] = left.sum()

    def _slice(
        self, row: int, cells: list[Cell], share: Share, touched: dict[int, None]
    ) -> None:
        """Take, or give back, slices: a device in slices is not given whole."""
        for column, index, i in self._columns_of(row, share.device):
            cell = cells[index]
            now = cell[i] ^ share.slices if column.tables else 0
            cells[index] = (*cell[:i], now, *cell[i + 1 :])
            touched[index] = None
        state = self._state_of(row, cells, share.device)
        if state:
            return
        for column, index, i in self._columns_of(row, share.device):
            if not column.tables:
                cell = cells[index]
                cells[index] = (*cell[:i], column.totals[i], *cell[i + 1 :])

    def _close_slices(
        self, row: int, cells: list[Cell], device: str, touched: dict[int, None]
    ) -> None:
        """Cut no slices from a device of which something is given otherwise."""
        columns = self._columns_of(row, device)
        empty = all(
            cells[index][i] == column.totals[i]
            for column, index, i in columns
            if not column.tables
        )
        for column, index, i in columns:
            table = column.tables[i] if column.tables else None
            if table is not None:
                cell = cells[index]
                cells[index] = (*cell[:i], 0 if empty else table.all, *cell[i + 1 :])
                touched[index] = None

    def _columns_of(self, row: int, device: str) -> list[tuple[Column, int, int]]:
        devices = self.nodes[row].devices
        return [
            (column, index, i)
            for index, column in enumerate(self._layouts[row].columns)
            if column is not None
            for i, place in enumerate(column.devices)
            if devices[place].id == device
        ]

    def _state_of(self, row: int, cells: Sequence[Cell], device: str) -> int:
        return next(
            cells[index][i]
            for column, index, i in self._columns_of(row, device)
            if column.tables
        )


def obstacle(node: NodeState, session: PendingSession) -> str:
    """Say why *node* can never run *session*, if so, whatever room it has."""
    if session.group not in {"", node.group}:
        return "is in another resource group"
    if node.runtime not in session.references:
        return "cannot run this image"
    if node.architecture != session.architecture:
        return f"is {node.architecture}, not {session.architecture}"
    if session.nodes and session.only_nodes and node.id not in session.nodes:
        return "is not one of the nodes it names"
    for label, value in session.labels.items():
        if node.labels.get(label) != value:
            return f"is not labelled {label}={value}"
    return ""


def _number(words: Sequence[str]) -> tuple[Vector, list[str]]:
    """Return each word as an index into the list of different ones; "" is 0."""
    known = {"": 0}
    numbers = [known.setdefault(word, len(known)) for word in words]
    return np.array(numbers, np.int64), list(known)


def _stack(columns: Sequence[Vector], count: int) -> Vector:
    return np.array(columns, np.int64).reshape(len(columns), count).T


def _read_cells(node: NodeState, layout: Layout) -> tuple[Cell, ...]:
    """Read what is left of each slot of a node."""
    return tuple(
        () if column is None else _read_cell(node, column) for column in layout.columns
    )


def _read_cell(node: NodeState, column: Column) -> Cell:
    left = []
    for i, place in enumerate(column.devices):
        device = node.devices[place]
        table = column.tables[i] if column.tables else None
        if table is not None:
            used = any(
                device.free.get(slot, 0) < total
                for slot, total in device.total.items()
                if slot not in device.profiles
            )
            left.append(table.all if used and not device.sliced else device.sliced)
        else:
            left.append(0 if device.sliced else device.free.get(column.slot, 0))
    return tuple(left)


def _capacity(
    layouts: Sequence[Layout], shape: tuple[int, int, int]
) -> tuple[list[Vector], list[Vector], list[Vector]]:
    """Return what nodes have in all, on one device at most, and in units."""
    known: dict[int, tuple[Room, ...]] = {}
    for layout in layouts:
        if id(layout) not in known:
            known[id(layout)] = tuple(
                NOTHING if c is None else _whole_room(c) for c in layout.columns
            )
    table = np.array([known[id(x)] for x in layouts], np.int64).reshape(shape)
    total, biggest, units = (
        [np.ascontiguousarray(v) for v in part] for part in table.transpose(2, 1, 0)
    )
    return total, biggest, units


def _whole_room(column: Column) -> Room:
    if column.tables:
        return column.add_up(tuple(0 for _ in column.tables))
    return Room(
        sum(column.totals),
        max(column.totals),
        sum(t for t in column.totals if t == MILLI),
    )
