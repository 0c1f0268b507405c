"""Storing what a placement has taken, and reading which slices have been."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AllocationRow, DeviceRow
from backendai_hub.scheduling.snapshot import Share


class CutDevice(msgspec.Struct, frozen=True):
    """A device that may be cut: where instances fit, and what is in use of it."""

    profiles: Mapping[str, Sequence[int]]
    taken: int = 0
    """Slices in use, as bits."""
    uncut: bool = False
    """Whether anything of it is in use that is no instance."""

    def gives(self, share: Share) -> bool:
        """Tell whether *share* is there and overlaps with nothing in use."""
        if not share.slices:
            return not self.taken
        fits = share.slices in self.profiles.get(share.slot, ())
        return fits and not self.uncut and not self.taken & share.slices

    def less(self, share: Share) -> CutDevice:
        """Return what it is once *share* has been taken."""
        return CutDevice(
            self.profiles, self.taken | share.slices, self.uncut or not share.slices
        )


_CUT: Final = select(DeviceRow.id, DeviceRow.profiles).where(
    DeviceRow.id.in_(bindparam("ids", expanding=True)), DeviceRow.slices > 0
)


async def load_cut_devices(
    connection: AsyncConnection, devices: Collection[str]
) -> dict[str, CutDevice]:
    """Read those of *devices* that may be cut into instances."""
    rows = await connection.execute(_CUT, {"ids": list(devices)})
    found = {device: CutDevice(profiles) for device, profiles in rows}
    if not found:
        return {}
    taken = await connection.execute(
        select(AllocationRow.device_id, AllocationRow.slices).where(
            AllocationRow.device_id.in_(found), AllocationRow.freed_at.is_(None)
        )
    )
    for device, slices in taken:
        found[device] = found[device].less(Share(device, "", 0, slices))
    return found


async def insert_allocations(
    tx: Transaction, rows: Sequence[dict[str, Any]], owners: Collection[str]
) -> None:
    """Store live allocations of these users; the ledger is taken from beside it."""
    await tx.execute(insert(AllocationRow), list(rows), owner=owners)
