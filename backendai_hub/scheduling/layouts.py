"""How nodes are built: nodes of one make share one layout, and differ in what is left.

What is left of a node is one *cell* for each slot: a tuple with one amount for each
device that has the slot, in the order of the devices' names. Cells are never changed,
only replaced, so that copies of a cluster share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backendai_hub.core.slots import MILLI, ResourceSlots, SlotType, slot_type
from backendai_hub.scheduling.devices import (
    Slicing,
    Topology,
    measure,
    slicing,
    topology,
)
from backendai_hub.scheduling.snapshot import DeviceState, NodeState

Cell = tuple[int, ...]

HOST_SLOTS = ("cpu", "mem")


def count_devices(request: ResourceSlots) -> int:
    """Return how many whole accelerators of a kind *request* asks for at most."""
    counts = (
        amount // MILLI
        for slot, amount in request.items()
        if slot not in HOST_SLOTS and slot_type(slot) is SlotType.COUNT
    )
    return max(counts, default=0)


class Room(NamedTuple):
    """What a node has of one slot: in all, on one device, and in untouched units."""

    free: int
    largest: int
    untouched: int


NOTHING = Room(0, 0, 0)


class Column(NamedTuple):
    """One slot of a layout, with the devices that have it."""

    slot: str
    devices: tuple[int, ...]
    """Their positions among the node's devices, in the order of their names."""
    totals: Cell
    whole: tuple[bool, ...]
    units: bool
    """Whether each device counts as exactly one: then it may be given with others."""
    topology: Topology
    accelerators: tuple[int, ...]
    """Their positions among the node's accelerators."""
    plain: bool = False
    """Whether one device has it all, may share it, and is no accelerator."""
    tables: tuple[Slicing | None, ...] = ()
    """For a profile of sliced devices, how each is cut; its cell holds states."""

    def add_up(self, left: Cell) -> Room:
        """Add up what is usable of *left*."""
        if self.tables:
            most = self.instances(left) * MILLI
            return Room(most, most, 0)
        if len(left) == 1:
            amount, total = left[0], self.totals[0]
            if self.whole[0] and amount < total:
                return NOTHING
            return Room(amount, amount, MILLI if amount == total == MILLI else 0)
        if self.units:
            full = left.count(MILLI) * MILLI
            if self.whole[0]:
                return Room(full, MILLI if full else 0, full)
            return Room(sum(left), max(left, default=0), full)
        return self._count_mixed(left)

    def instances(self, states: Cell) -> int:
        """Return how many more instances of this profile fit on all devices."""
        return sum(
            table.most(state, self.slot)
            for table, state in zip(self.tables, states, strict=True)
            if table is not None
        )

    def _count_mixed(self, left: Cell) -> Room:
        free = largest = untouched = 0
        for amount, total, whole in zip(left, self.totals, self.whole, strict=True):
            if whole and amount < total:
                continue
            free += amount
            largest = max(largest, amount)
            if amount == total == MILLI:
                untouched += amount
        return Room(free, largest, untouched)

    def fitting(self, left: Cell, amount: int) -> list[int]:
        """Return the devices, as positions in the cell, that can give *amount*."""
        return [
            i
            for i, have in enumerate(left)
            if have >= amount and not (self.whole[i] and have < self.totals[i])
        ]

    def untouched(self, left: Cell) -> int:
        """Return the units of which nothing is in use, as bits."""
        mask, totals = 0, self.totals
        for i, have in enumerate(left):
            if have == MILLI == totals[i]:
                mask |= 1 << i
        return mask


class Layout(NamedTuple):
    """What nodes of one make have in common."""

    columns: tuple[Column | None, ...]
    """One for each slot of the cluster; None for what they do not have."""
    full: tuple[Cell, ...]
    """The cells of an empty node."""
    rooms: tuple[Room, ...]
    """What an empty node has."""
    accelerators: tuple[int, ...]
    """The positions of its accelerators among its devices."""
    sliced: bool
    model: tuple[tuple[str, str], ...]
    """What its accelerators are: slot and model of each kind."""
    only: int
    """The column of all its accelerators, all units, or -1 if there is no such one."""


def describe(node: NodeState) -> object:
    """Return what two nodes have in common that share a layout."""
    return tuple(
        (
            device.name,
            device.whole,
            device.numa,
            device.kind,
            device.model,
            tuple(device.total.items()),
            _links(node, device) if device.links else (),
            tuple(device.profiles.items()) if device.profiles else (),
        )
        for device in node.devices
    )


def _links(node: NodeState, device: DeviceState) -> tuple[int | None, ...]:
    return tuple(device.links.get(other.id) for other in node.devices)


def accelerator_slots(device: DeviceState) -> list[str]:
    """Return the slots of *device* that count accelerators."""
    return [
        slot
        for slot in device.total
        if slot not in HOST_SLOTS and slot_type(slot) is SlotType.COUNT
    ]


def lay_out(node: NodeState, slots: Sequence[str]) -> Layout:
    """Describe how *node* is built, for a cluster with these *slots*."""
    order = sorted(range(len(node.devices)), key=lambda i: node.devices[i].name)
    accelerators = tuple(i for i in order if accelerator_slots(node.devices[i]))
    columns = tuple(_column(node, order, slot, accelerators) for slot in slots)
    full = tuple(_full(c) for c in columns)
    sliced = any(d.profiles for d in node.devices)
    rooms = tuple(
        NOTHING if c is None else c.add_up(cell)
        for c, cell in zip(columns, full, strict=True)
    )
    kinds = {
        (slot, node.devices[i].model)
        for i in accelerators
        for slot in accelerator_slots(node.devices[i])
    }
    only = [
        i
        for i, c in enumerate(columns)
        if c is not None and c.units and c.accelerators == (*range(len(accelerators)),)
    ]
    return Layout(
        columns=columns,
        full=full,
        rooms=rooms,
        accelerators=accelerators,
        sliced=sliced,
        model=tuple(sorted(kinds)),
        only=only[0] if len(kinds) == len(only) == 1 else -1,
    )


def _column(
    node: NodeState, order: Sequence[int], slot: str, accelerators: Sequence[int]
) -> Column | None:
    holders = tuple(
        i
        for i in order
        if slot in node.devices[i].total or slot in node.devices[i].profiles
    )
    if not holders:
        return None
    devices = [node.devices[i] for i in holders]
    totals = tuple(d.total.get(slot, 0) for d in devices)
    whole = tuple(d.whole for d in devices)
    units = all(t == MILLI for t in totals) and len(set(whole)) == 1
    tables: tuple[Slicing | None, ...] = ()
    if any(slot in d.profiles for d in devices):
        units = False
        tables = tuple(
            slicing(tuple(d.profiles.items())) if d.profiles else None for d in devices
        )
    return Column(
        slot=slot,
        devices=holders,
        totals=totals,
        whole=whole,
        units=units,
        topology=topology(measure(devices)),
        accelerators=tuple(
            accelerators.index(i) if i in accelerators else -1 for i in holders
        ),
        plain=len(holders) == 1 and not whole[0] and holders[0] not in accelerators,
        tables=tables,
    )


def _full(column: Column | None) -> Cell:
    if column is None:
        return ()
    return tuple(0 for _ in column.totals) if column.tables else column.totals
