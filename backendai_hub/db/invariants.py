"""What must be true at every commit: one module, for tests, doctor and metrics.

Each check is named after the promise it guards and yields a sentence per breach.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import MOST_SLICES
from backendai_hub.core.quotas import SESSIONS, SYSTEM_SESSIONS, ScopeKind
from backendai_hub.core.sessions import OCCUPYING, TERMINAL, SessionType
from backendai_hub.core.slots import MILLI
from backendai_hub.db.ledger import live_sums
from backendai_hub.db.tables import AllocationRow, DeviceRow, LedgerRow, SessionRow

_TENANT_COLUMNS = (
    (ScopeKind.DOMAIN, SessionRow.domain_id),
    (ScopeKind.PROJECT, SessionRow.project_id),
    (ScopeKind.USER, SessionRow.owner_id),
    (ScopeKind.KEYPAIR, SessionRow.keypair_id),
)


async def find_breaches(connection: AsyncConnection) -> list[str]:
    """List every breach of the ledger's promises; an empty list is the only good one.

    V01 no device gives more than it has; V02 a whole device is in one live
    allocation, and no slice of a device in two; V03 the ledger equals the live
    allocations, for devices and for every scope; V06 ended sessions hold nothing and
    running ones something.
    """
    breaches = [
        *await _find_overuse(connection),
        *await _find_shared_wholes(connection),
        *await _find_shared_slices(connection),
        *await _find_drift(connection),
        *await _find_wrong_holders(connection),
    ]
    return sorted(breaches)


async def _find_overuse(connection: AsyncConnection) -> list[str]:
    rows = await connection.execute(
        select(LedgerRow.kind, LedgerRow.owner_id, LedgerRow.slot).where(
            (LedgerRow.used < 0) | (LedgerRow.used > LedgerRow.cap)
        )
    )
    return [
        f"V01 {kind} {owner} {slot}: used is not within cap"
        for kind, owner, slot in rows
    ]


async def _find_shared_wholes(connection: AsyncConnection) -> list[str]:
    rows = await connection.execute(
        select(AllocationRow.device_id)
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(AllocationRow.freed_at.is_(None), DeviceRow.whole)
        .group_by(AllocationRow.device_id)
        # Instances may be many; beside anything else there is nothing.
        .having(func.count() > 1, func.min(AllocationRow.slices) == 0)
    )
    return [f"V02 device {device} is given more than once" for (device,) in rows]


async def _find_shared_slices(connection: AsyncConnection) -> list[str]:
    cut = (
        select(AllocationRow.device_id)
        .where(AllocationRow.freed_at.is_(None), AllocationRow.slices > 0)
        .distinct()
    )
    rows = await connection.execute(
        select(AllocationRow.device_id, AllocationRow.slices).where(
            AllocationRow.freed_at.is_(None), AllocationRow.device_id.in_(cut)
        )
    )
    taken: dict[str, int] = {}
    breaches = set()
    for device, slices in rows:
        # What is no instance takes all of a device that is cut.
        own = slices or (1 << MOST_SLICES) - 1
        if taken.get(device, 0) & own:
            breaches.add(f"V02 slices of device {device} are given more than once")
        taken[device] = taken.get(device, 0) | own
    return sorted(breaches)


async def _find_drift(connection: AsyncConnection) -> Iterator[str]:
    expected: dict[tuple[str, str, str], int] = {
        (str(ScopeKind.DEVICE), device, slot): total
        for (device, slot), total in (await live_sums(connection)).items()
    }
    system = SessionRow.type == str(SessionType.SYSTEM)
    for kind, column in _TENANT_COLUMNS:
        rows = await connection.execute(
            select(column, AllocationRow.slot, func.sum(AllocationRow.amount))
            .join(SessionRow, SessionRow.id == AllocationRow.session_id)
            .where(AllocationRow.freed_at.is_(None), ~system, column.is_not(None))
            .group_by(column, AllocationRow.slot)
        )
        for owner, slot, total in rows:
            expected[str(kind), str(owner), slot] = int(total)
        counts = await connection.execute(
            select(column, system, func.count())
            .where(SessionRow.status.in_([str(s) for s in OCCUPYING]))
            .where(column.is_not(None))
            .group_by(column, system)
        )
        for owner, is_system, count in counts:
            counter = SYSTEM_SESSIONS if is_system else SESSIONS
            expected[str(kind), str(owner), counter] = MILLI * int(count)
    stored = {
        (kind, owner, slot): used
        for kind, owner, slot, used in await connection.execute(
            select(LedgerRow.kind, LedgerRow.owner_id, LedgerRow.slot, LedgerRow.used)
        )
    }
    return iter(
        [
            f"V03 {' '.join(key)}: the ledger says {stored.get(key, 0)}, live"
            f" allocations are {expected.get(key, 0)}"
            for key in {*expected, *stored}
            if stored.get(key, 0) != expected.get(key, 0)
        ]
    )


async def _find_wrong_holders(connection: AsyncConnection) -> list[str]:
    held = (
        select(AllocationRow.session_id)
        .where(AllocationRow.freed_at.is_(None))
        .distinct()
    )
    ended = await connection.execute(
        select(SessionRow.id).where(
            SessionRow.status.in_([str(s) for s in TERMINAL]), SessionRow.id.in_(held)
        )
    )
    empty = await connection.execute(
        select(SessionRow.id).where(
            SessionRow.status.in_([str(s) for s in OCCUPYING]),
            SessionRow.id.not_in(held),
        )
    )
    return [
        *(f"V06 session {i} has ended and still holds slots" for (i,) in ended),
        *(f"V06 session {i} is live and holds nothing" for (i,) in empty),
    ]


async def count_ledger(connection: AsyncConnection) -> int:
    """Count the rows of the ledger."""
    return int(
        await connection.scalar(select(func.count()).select_from(LedgerRow)) or 0
    )
