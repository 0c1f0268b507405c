"""The ledger: what each scope and device uses, changed only by guarded updates.

Rows are locked in one fixed order (domain, project, user, keypair, device), so that
concurrent takers queue up on them, and taken from by ``UPDATE … SET used = used + n
WHERE used + n <= limit``, so that they never pass a limit together. Tenants' limits
are read from their policies and not copied here; only a device's own capacity is kept
beside its use. Giving back happens once per allocation, because only the update that
sets ``freed_at`` returns the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    bindparam,
    case,
    collate,
    func,
    null,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import ConflictError
from backendai_hub.core.quotas import LOCK_ORDER, ScopeKind, charge
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


Key = tuple[ScopeKind, str, str]
"""Which row: the scope's kind, its id, and the slot."""


_MOST: Final = (1 << 63) - 1


class Row(NamedTuple):
    """What a locked row says: what is used, and what a device may give."""

    used: int
    quota: int | None


async def lock_rows(tx: Transaction, entries: Iterable[Entry]) -> dict[Key, Row]:
    """Lock the rows of all *entries* and read them; nobody else takes meanwhile.

    They are locked in the order in which :func:`give_back` goes through them. Tenants
    get the rows they lack; a device without a row has nothing.
    """
    wanted = [(e.kind, e.owner_id, e.slot) for e in _sorted(entries)]
    found = await _read_locked(tx, wanted)
    missing = [k for k in wanted if k not in found and k[0] is not ScopeKind.DEVICE]
    if missing:
        await tx.execute(
            insert_ignore(tx, LedgerRow),
            [
                {"kind": str(kind), "owner_id": owner, "slot": slot, "used": 0}
                for kind, owner, slot in missing
            ],
            ids=(),
        )
        found = await _read_locked(tx, wanted)
    return found


_ROWS: Final = select(
    LedgerRow.kind, LedgerRow.owner_id, LedgerRow.slot, LedgerRow.used, LedgerRow.quota
).where(
    LedgerRow.kind.in_(bindparam("kinds", expanding=True)),
    LedgerRow.owner_id.in_(bindparam("owners", expanding=True)),
    LedgerRow.slot.in_(bindparam("slots", expanding=True)),
)
_ROWS_LOCKED: Final = _ROWS.order_by(
    case(
        {str(kind): number for number, kind in enumerate(LOCK_ORDER)},
        value=LedgerRow.kind,
    ),
    collate(LedgerRow.owner_id, "C"),
    collate(LedgerRow.slot, "C"),
).with_for_update()


async def _read_locked(tx: Transaction, wanted: Sequence[Key]) -> dict[Key, Row]:
    locks = tx.connection.dialect.name == "postgresql"
    rows = await tx.connection.execute(
        _ROWS_LOCKED if locks else _ROWS,
        {
            "kinds": list({str(kind) for kind, _, _ in wanted}),
            "owners": list({owner for _, owner, _ in wanted}),
            "slots": list({slot for _, _, slot in wanted}),
        },
    )
    return {
        (ScopeKind(kind), owner, slot): Row(used, quota)
        for kind, owner, slot, used, quota in rows
    }


_BEYOND: Final = LedgerRow.used + bindparam("take", type_=BigInteger())
_GUARDED: Final = (
    update(LedgerRow)
    .where(
        LedgerRow.kind == bindparam("in_kind"),
        LedgerRow.owner_id == bindparam("in_owner"),
        LedgerRow.slot == bindparam("in_slot"),
        bindparam("most", type_=BigInteger()) >= _BEYOND,
    )
    .values(used=_BEYOND)
)


async def take_all(
    tx: Transaction, sums: Mapping[Key, int], limits: Mapping[Key, int | None]
) -> None:
    """Take these sums from rows that are locked; none may go beyond its limit.

    Raises :class:`NoRoomError` (the caller rolls back) if one would.
    """
    if not sums:
        return
    taken = await tx.execute(
        _GUARDED,
        [
            {
                "in_kind": str(kind),
                "in_owner": owner,
                "in_slot": slot,
                "take": amount,
                "most": _MOST if (limit := limits.get((kind, owner, slot))) is None
                else limit,
            }
            for (kind, owner, slot), amount in sums.items()
        ],
        ids={owner for kind, owner, _ in sums if kind is ScopeKind.DEVICE},
    )  # fmt: skip
    if taken.rowcount != len(sums):
        raise NoRoomError("what was locked had less room than it said")


def _devices(kind: ScopeKind, owner_id: str) -> Sequence[str]:
    """Return which device that is, if it is one."""
    return [owner_id] if kind is ScopeKind.DEVICE else ()


async def give_back(tx: Transaction, entries: Iterable[Entry]) -> None:
    """Give every entry back; a cap that was above its quota sinks with the use."""
    for entry in _sorted(entries):
        left = LedgerRow.used - entry.amount
        cap = case(
            (LedgerRow.quota.is_(None), null()),
            (left > LedgerRow.quota, left),
            else_=LedgerRow.quota,
        )
        await tx.execute(
            update(LedgerRow).where(_is(entry)).values(used=left, cap=cap),
            ids=_devices(entry.kind, entry.owner_id),
        )


async def set_quota(
    tx: Transaction, kind: ScopeKind, owner_id: str, slot: str, quota: int | None
) -> None:
    """Set a limit; what is in use above it stays until it ends by itself."""
    if kind is ScopeKind.DEVICE:
        tx.changes.tables.add("devices")  # they look different by it
    await tx.execute(
        insert_ignore(tx, LedgerRow).values(
            kind=str(kind), owner_id=owner_id, slot=slot, used=0, quota=quota, cap=quota
        ),
        ids=_devices(kind, owner_id),
    )
    cap = case((LedgerRow.used > quota, LedgerRow.used), else_=quota)
    await tx.execute(
        update(LedgerRow)
        .where(_is(Entry(kind, owner_id, slot, 0)))
        .values(quota=quota, cap=null() if quota is None else cap),
        ids=_devices(kind, owner_id),
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
