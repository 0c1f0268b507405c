"""What is left of a node's devices, cell by cell, and what nodes have in all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.layouts import NOTHING, Cell, Column, Layout, Room
from backendai_hub.scheduling.nodes import Vector
from backendai_hub.scheduling.snapshot import NodeState


def read_cells(node: NodeState, layout: Layout) -> tuple[Cell, ...]:
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


def capacity(
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
