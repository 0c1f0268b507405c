"""Which devices of one node give an amount of one slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from backendai_hub.core.slots import MILLI, SlotType, slot_type
from backendai_hub.scheduling.layouts import Cell, Column
from backendai_hub.scheduling.snapshot import DeviceState, Share

ChooseDevice = Callable[[Sequence[int]], int]
"""Which of a node's accelerators, by position, gives a fraction."""


class Choice(NamedTuple):
    """The devices of one node that have a slot, and what is left of each."""

    devices: Sequence[DeviceState]
    column: Column
    left: Cell

    def choose(
        self, amount: int, *, split: bool = False, prefer: ChooseDevice | None = None
    ) -> list[Share] | None:
        """Pick the devices that give *amount*, or None.

        One device if one can: the tightest, so that big gaps stay for big requests,
        unless *prefer* says which. Otherwise several untouched units, as close to each
        other as can be. With *split*, any pieces, the largest first.
        """
        column = self.column
        if column.tables:
            return self._cut(amount)
        if amount == MILLI and column.units:
            if free := column.untouched(self.left):
                return self._share(column.topology.choose(free, 1), MILLI)
        elif fitting := column.fitting(self.left, amount):
            return self._share((self._tightest(fitting, prefer),), amount)
        elif amount % MILLI == 0 and slot_type(column.slot) is SlotType.COUNT:
            free, count = column.untouched(self.left), amount // MILLI
            if free.bit_count() >= count:
                return self._share(column.topology.choose(free, count), MILLI)
        return self._pieces(amount) if split else None

    def _tightest(self, fitting: list[int], prefer: ChooseDevice | None) -> int:
        if len(fitting) == 1:
            return fitting[0]
        if prefer is not None:
            places = [self.column.accelerators[i] for i in fitting]
            if places[0] >= 0:
                return fitting[places.index(prefer(places))]
        return min(fitting, key=self.left.__getitem__)

    def _share(self, chosen: Sequence[int], amount: int) -> list[Share]:
        devices, column = self.devices, self.column
        return [
            Share(devices[column.devices[i]].id, column.slot, amount) for i in chosen
        ]

    def _pieces(self, amount: int) -> list[Share] | None:
        shares: list[Share] = []
        left = self.left
        for i in sorted(self.column.fitting(left, 1), key=lambda i: -left[i]):
            piece = min(left[i], amount)
            shares += self._share((i,), piece)
            amount -= piece
            if not amount:
                return shares
        return None

    def _cut(self, amount: int) -> list[Share] | None:
        """Cut instances from the devices that have least room left for others."""
        if amount % MILLI:
            return None
        column, now = self.column, list(self.left)
        shares = []
        for _ in range(amount // MILLI):
            fitting = [
                (-state.bit_count(), i, table.choose(state, column.slot))
                for i, (state, table) in enumerate(zip(now, column.tables, strict=True))
                if table is not None and table.most(state, column.slot)
            ]
            if not fitting:
                return None
            _, i, place = min(fitting)
            now[i] |= place
            device = self.devices[column.devices[i]]
            shares.append(Share(device.id, column.slot, MILLI, place))
        return shares
