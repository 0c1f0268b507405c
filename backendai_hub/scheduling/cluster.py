"""The nodes as integer arrays, kept true while a pass places sessions on them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.amounts import Amounts
from backendai_hub.scheduling.choosing import Choice, ChooseDevice
from backendai_hub.scheduling.layouts import Cell, Column
from backendai_hub.scheduling.nodes import ANYBODY, Mask, Vector
from backendai_hub.scheduling.snapshot import NodeState, Share

__all__ = ["ANYBODY", "Cluster", "Mask", "Vector"]


class Cluster(Amounts):
    """What nodes have left, device by device, as sessions take it and give it back.

    ``log`` lists the rows that have changed, in order, so that whoever keeps something
    per node knows what to renew.
    """

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        super().__init__(nodes)
        self.log: list[int] = []
        self.sums: dict[str, int] | None = None
        """What is free of each slot in all, if somebody asks for it."""

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
        other.sums = None
        other.unshare()
        return other

    def sum_up(self) -> dict[str, int]:
        """Return what is free of each slot on the nodes that are open.

        It is kept up from now on, with whatever is taken and given back.
        """
        if self.sums is None:
            self._summed: list[bool] = self.open.tolist()
            self.sums = {
                slot: int(self.free_of(index)[self.open].sum())
                for slot, index in self.column.items()
            }
        return self.sums

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
        sums = self.sums
        if sums is not None and not self._summed[row]:
            sums = None
        for share in shares:
            index = self.column[share.slot]
            column = columns[index]
            if column is not None and column.plain:
                left = cells[index][0] + sign * share.amount
                if sums is not None:
                    sums[share.slot] += sign * share.amount
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
        if self.sums is not None and self._summed[row]:
            self.sums[column.slot] += free - self._free[index].item(row)
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
