"""The nodes as integer arrays, kept true while a pass places sessions on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backendai_hub.core.slots import MILLI, SlotType, slot_type
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    NodeState,
    PendingSession,
    Share,
)

Vector = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ANYBODY, _NOBODY = -1, -2


class Cluster:
    """Free room per node and slot, with what one device can give at most.

    ``free[node, slot]`` is the sum over devices, ``largest[node, slot]`` the most a
    single device can give, ``untouched[node, slot]`` the sum over *units* (devices
    that count as exactly one) of which nothing is in use. A request fits a node if
    one device can give it, or if it asks for several units and enough are untouched.
    """

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        self.nodes = tuple(nodes)
        names = {s for n in nodes for d in n.devices for s in d.total}
        self.slots = tuple(sorted(names))
        self.column = {slot: i for i, slot in enumerate(self.slots)}
        self._left: list[list[dict[str, int]]] = [
            [dict(d.free) for d in n.devices] for n in nodes
        ]
        shape = (len(self.nodes), len(self.slots))
        self.total: Vector = np.zeros(shape, np.int64)
        self.biggest: Vector = np.zeros(shape, np.int64)
        self.units: Vector = np.zeros(shape, np.int64)
        self.free: Vector = np.zeros(shape, np.int64)
        self.largest: Vector = np.zeros(shape, np.int64)
        self.untouched: Vector = np.zeros(shape, np.int64)
        for row, node in enumerate(self.nodes):
            for device in node.devices:
                for slot, amount in device.total.items():
                    column = self.column[slot]
                    self.total[row, column] += amount
                    self.biggest[row, column] = max(self.biggest[row, column], amount)
                    if amount == MILLI:
                        self.units[row, column] += amount
            self._refresh(row, self.slots)
        self.open: Mask = np.array([not n.closed for n in nodes], bool)
        self.accelerated: Mask = np.array(
            [any(d.kind != "host" for d in n.devices) for n in nodes], bool
        )
        self._people: dict[str, int] = {}
        self._owner: Vector = np.full(len(self.nodes), _ANYBODY, np.int64)
        self.keeps_apart = all(n.multi_user for n in nodes)
        """Whether every node serves every user."""
        for row, node in enumerate(self.nodes):
            if node.sole_owner is not None:
                self.claim(row, node.sole_owner)
        self._eligible: dict[object, Mask] = {}

    def eligible(self, session: PendingSession) -> Mask:
        """Tell which nodes may run *session* at all, whatever room they have."""
        key = (
            frozenset(session.references.items()),
            session.architecture,
            session.group,
        )
        fixed = self._eligible.get(key)
        if fixed is None:
            able = [
                n.runtime in session.references
                and n.architecture == session.architecture
                and session.group in {"", n.group}
                for n in self.nodes
            ]
            fixed = self._eligible[key] = self.open & np.array(able, bool)
        return fixed & self.serving(session.owner_id)

    def serving(self, owner_id: str) -> Mask:
        """Tell which nodes serve *owner_id*: all but those that others have claimed."""
        person = self._people.get(owner_id, _NOBODY)
        mask: Mask = (self._owner == _ANYBODY) | (self._owner == person)
        return mask

    def claim(self, row: int, owner_id: str) -> None:
        """Note that *owner_id* uses a node, which may have to serve nobody else now."""
        if not self.nodes[row].multi_user:
            self._owner[row] = self._people.setdefault(owner_id, len(self._people))

    def _refresh(self, row: int, slots: Sequence[str]) -> None:
        """Recompute one node's aggregates for *slots* from its devices."""
        devices, left = self.nodes[row].devices, self._left[row]
        for slot in slots:
            free = largest = untouched = 0
            for device, room in zip(devices, left, strict=True):
                total = device.total.get(slot, 0)
                have = room.get(slot, 0)
                if device.whole and have < total:
                    continue
                free += have
                largest = max(largest, have)
                if have == total == MILLI:
                    untouched += have
            column = self.column[slot]
            self.free[row, column] = free
            self.largest[row, column] = largest
            self.untouched[row, column] = untouched

    def fits(self, slot: str, amount: int, *, ever: bool = False) -> Mask:
        """Tell for each node whether it can give *amount* of *slot*.

        With ``ever``, judge by what the node has in all, not by what is free.
        """
        column = self.column.get(slot)
        if column is None:
            return np.zeros(len(self.nodes), bool)
        single = (self.biggest if ever else self.largest)[:, column]
        mask: Mask = single >= amount
        if slot_type(slot) is SlotType.COUNT and amount % MILLI == 0:
            several = (self.units if ever else self.untouched)[:, column]
            mask = mask | (several >= amount)
        return mask

    def choose_devices(self, row: int, slot: str, amount: int) -> list[Share] | None:
        """Pick the devices of one node that give *amount* of *slot*.

        One device if one can: the tightest, so that big gaps stay for big requests.
        Otherwise several untouched units, on one NUMA node if it has enough.
        """
        devices, left = self.nodes[row].devices, self._left[row]
        fitting = [
            (room[slot], device.name, device.id)
            for device, room in zip(devices, left, strict=True)
            if room.get(slot, 0) >= amount
            and not (device.whole and room[slot] < device.total[slot])
        ]
        if fitting:
            return [Share(min(fitting)[2], slot, amount)]
        if slot_type(slot) is not SlotType.COUNT or amount % MILLI:
            return None
        units = [
            device
            for device, room in zip(devices, left, strict=True)
            if room.get(slot, 0) == device.total.get(slot, 0) == MILLI
        ]
        return _take_units(units, slot, amount // MILLI)

    def take(self, row: int, shares: Sequence[Share]) -> None:
        """Subtract *shares* from one node."""
        index = {d.id: i for i, d in enumerate(self.nodes[row].devices)}
        for share in shares:
            self._left[row][index[share.device]][share.slot] -= share.amount
        self._refresh(row, tuple({s.slot for s in shares}))


def _take_units(
    units: Sequence[DeviceState], slot: str, count: int
) -> list[Share] | None:
    """Take *count* of *units*, from the smallest NUMA node that has them all."""
    by_numa: dict[int, list[DeviceState]] = {}
    for device in units:
        by_numa.setdefault(-1 if device.numa is None else device.numa, []).append(
            device
        )
    groups = sorted(by_numa.values(), key=lambda g: (len(g), g[0].name))
    for candidates in (*groups, units):
        if len(candidates) >= count:
            chosen = sorted(candidates, key=lambda d: d.name)[:count]
            return [Share(device.id, slot, MILLI) for device in chosen]
    return None
