"""The ledger: what each scope and device uses, changed only by guarded updates.

Taking is ``UPDATE … SET used = used + n WHERE used + n <= limit`` in one fixed order
(domain, project, user, keypair, device), so that concurrent takers queue up on rows
and never pass a limit together. Tenants' limits are read from their policies and not
copied here; only a device's own capacity is kept beside its use. Giving back happens
once per allocation, because only the update that sets ``freed_at`` returns the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import case, func, null, select, true, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import ConflictError
from backendai_hub.core.quotas import LOCK_ORDER, QuotaScope, ScopeKind, charge
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AllocationRow, LedgerRow


class NoRoomError(ConflictError):
    """A limit or a device has less left than is asked; nothing was taken."""

    code = "no-room"
    title = "There is no room for this any more"


class Entry(NamedTuple):
    """An amount of one slot in one scope, in smallest units."""

    kind: ScopeKind
    owner_id: str
    slot: str
    amount: int


def insert_ignore(tx: Transaction, table: Any) -> Any:
    """Return an INSERT for *table* that leaves existing rows alone."""
    dialect = tx.connection.dialect.name
    build = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return build(table).on_conflict_do_nothing()


def _sorted(entries: Iterable[Entry]) -> list[Entry]:
    sums: dict[tuple[ScopeKind, str, str], int] = {}
    for entry in entries:
        key = (entry.kind, entry.owner_id, entry.slot)
        sums[key] = sums.get(key, 0) + entry.amount
    order = {kind: i for i, kind in enumerate(LOCK_ORDER)}
    keys = sorted(sums, key=lambda k: (order[k[0]], k[1], k[2]))
    return [Entry(*key, sums[key]) for key in keys]


def _is(entry: Entry) -> Any:
    return (
        (LedgerRow.kind == str(entry.kind))
        & (LedgerRow.owner_id == entry.owner_id)
        & (LedgerRow.slot == entry.slot)
    )


async def take(
    tx: Transaction,
    entries: Iterable[Entry],
    limits: Mapping[tuple[ScopeKind, str], QuotaScope] = MappingProxyType({}),
) -> None:
    """Take every entry or raise :class:`NoRoomError` (the caller rolls back).

    What a tenant may take is in *limits*, read in this transaction from the policies
    that say it; a tenant that is not there is unlimited. What a device may give is in
    its own row, and one without a row has nothing.
    """
    for entry in _sorted(entries):
        device = entry.kind is ScopeKind.DEVICE
        guard = LedgerRow.used + entry.amount <= LedgerRow.quota if device else true()
        scope = limits.get((entry.kind, entry.owner_id))
        limit = None if scope is None else scope.limit_of(entry.slot)
        if limit is not None:
            guard = LedgerRow.used + entry.amount <= limit
        guarded = (
            update(LedgerRow)
            .where(_is(entry), guard)
            .values(used=LedgerRow.used + entry.amount)
        )
        if (await tx.execute(guarded)).rowcount:
            continue
        if not device:
            row = insert_ignore(tx, LedgerRow).values(
                kind=str(entry.kind), owner_id=entry.owner_id, slot=entry.slot, used=0
            )
            await tx.execute(row)
            if (await tx.execute(guarded)).rowcount:
                continue
        raise NoRoomError(
            f"{entry.kind} {entry.owner_id} has no room for {entry.slot}",
            slot=entry.slot,
        )


async def give_back(tx: Transaction, entries: Iterable[Entry]) -> None:
    """Give every entry back; a cap that was above its quota sinks with the use."""
    for entry in _sorted(entries):
        left = LedgerRow.used - entry.amount
        cap = case(
            (LedgerRow.quota.is_(None), null()),
            (left > LedgerRow.quota, left),
            else_=LedgerRow.quota,
        )
        await tx.execute(update(LedgerRow).where(_is(entry)).values(used=left, cap=cap))


async def set_quota(
    tx: Transaction, kind: ScopeKind, owner_id: str, slot: str, quota: int | None
) -> None:
    """Set a limit; what is in use above it stays until it ends by itself."""
    await tx.execute(
        insert_ignore(tx, LedgerRow).values(
            kind=str(kind), owner_id=owner_id, slot=slot, used=0, quota=quota, cap=quota
        )
    )
    cap = case((LedgerRow.used > quota, LedgerRow.used), else_=quota)
    await tx.execute(
        update(LedgerRow)
        .where(_is(Entry(kind, owner_id, slot, 0)))
        .values(quota=quota, cap=null() if quota is None else cap)
    )


async def free_allocations(
    tx: Transaction,
    session_id: str,
    scopes: Sequence[tuple[ScopeKind, str]],
    *,
    system: bool = False,
) -> int:
    """Free what *session_id* still holds, exactly once; return how many shares.

    *scopes* are given back what :func:`backendai_hub.core.quotas.charge` took.
    """
    freed = await tx.execute(
        update(AllocationRow)
        .where(AllocationRow.session_id == session_id, AllocationRow.freed_at.is_(None))
        .values(freed_at=tx.now)
        .returning(AllocationRow.device_id, AllocationRow.slot, AllocationRow.amount),
        owner=dict(scopes).get(ScopeKind.USER),
    )
    rows = freed.all()
    if not rows:
        return 0
    held: dict[str, int] = {}
    for row in rows:
        held[row.slot] = held.get(row.slot, 0) + row.amount
    entries = [Entry(ScopeKind.DEVICE, r.device_id, r.slot, r.amount) for r in rows]
    entries += [
        Entry(kind, owner, slot, amount)
        for slot, amount in charge(ResourceSlots(held), system=system).items()
        for kind, owner in scopes
    ]
    await give_back(tx, entries)
    return len(rows)


async def live_sums(connection: AsyncConnection) -> dict[tuple[str, str], int]:
    """Sum the live allocations per (device, slot): the oracle for the ledger."""
    rows = await connection.execute(
        select(
            AllocationRow.device_id, AllocationRow.slot, func.sum(AllocationRow.amount)
        )
        .where(AllocationRow.freed_at.is_(None))
        .group_by(AllocationRow.device_id, AllocationRow.slot)
    )
    return {(device, slot): int(total) for device, slot, total in rows}
