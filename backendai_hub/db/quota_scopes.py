"""How much users and projects hold on each storage host, and may hold at most.

A reservation is one conditional UPDATE, as in the ledger: of two requests at once, only
as many go through as there is room for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import and_, case, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import InsufficientStorageError
from backendai_hub.core.slots import LARGEST, format_amount
from backendai_hub.core.vfolders import Ownership, split_scope
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    FolderRow,
    ProjectPolicyRow,
    ProjectRow,
    QuotaScopeRow,
    UserPolicyRow,
    UserRow,
)

UNLIMITED = -1


class ScopeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A quota scope as it is stored, with its owner's name and their policy's limit.

    Limits are null where the scope has none of its own, and -1 where it has *no* limit.
    """

    host: str
    scope: str
    kind: str
    owner_id: str
    limit_bytes: int | None
    limit_files: int | None
    used_bytes: int
    used_files: int
    reserved_bytes: int
    reserved_files: int
    applied_bytes: int | None
    applied_files: int | None
    applied_at: datetime | None
    scanned_at: datetime | None
    owner_name: str = ""
    policy_bytes: int | None = None
    folders: int = 0

    @property
    def most_bytes(self) -> int | None:
        """The limit that counts; None: none."""
        found = self.policy_bytes if self.limit_bytes is None else self.limit_bytes
        return None if found is None or found < 0 else found

    @property
    def most_files(self) -> int | None:
        """How many files there may be; None: any number."""
        found = self.limit_files
        return None if found is None or found < 0 else found


_PLAIN = tuple(
    getattr(QuotaScopeRow, name)
    for name in ScopeRecord.__struct_fields__
    if name not in {"owner_name", "policy_bytes", "folders"}
)


def _select() -> Any:
    counted = (
        select(func.count())
        .where(FolderRow.host == QuotaScopeRow.host)
        .where(FolderRow.scope == QuotaScopeRow.scope)
        .scalar_subquery()
    )
    policy = case(
        (
            QuotaScopeRow.kind == str(Ownership.USER),
            UserPolicyRow.max_quota_scope_size,
        ),
        else_=ProjectPolicyRow.max_quota_scope_size,
    )
    return (
        select(
            *_PLAIN,
            func.coalesce(UserRow.name, ProjectRow.name, "").label("owner_name"),
            policy.label("policy_bytes"),
            counted.label("folders"),
        )
        .outerjoin(UserRow, UserRow.id == QuotaScopeRow.owner_id)
        .outerjoin(UserPolicyRow, UserPolicyRow.id == UserRow.resource_policy_id)
        .outerjoin(ProjectRow, ProjectRow.id == QuotaScopeRow.owner_id)
        .outerjoin(
            ProjectPolicyRow, ProjectPolicyRow.id == ProjectRow.resource_policy_id
        )
    )


async def ensure_scope(tx: Transaction, host: str, scope: str) -> ScopeRecord:
    """Return a quota scope, which this makes if there is none."""
    kind, owner_id = split_scope(scope)
    await tx.execute(
        insert_ignore(tx, QuotaScopeRow).values(
            host=host,
            scope=scope,
            kind=str(kind),
            owner_id=owner_id,
            created_at=tx.now,
            modified_at=tx.now,
        )
    )
    found = await find_scope(tx.connection, host, scope)
    assert found is not None
    return found


async def find_scope(
    connection: AsyncConnection, host: str, scope: str
) -> ScopeRecord | None:
    """Find one quota scope."""
    query = _select().where(_is(host, scope))
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else msgspec.convert(dict(row), ScopeRecord)


def _is(host: str, scope: str) -> Any:
    return and_(QuotaScopeRow.host == host, QuotaScopeRow.scope == scope)


async def list_scopes(
    connection: AsyncConnection,
    condition: Any,
    *,
    after: tuple[str, str] | None = None,
    limit: int = 1000,
) -> list[ScopeRecord]:
    """List quota scopes in the order of hosts and names."""
    query = _select().where(condition)
    if after is not None:
        host, scope = after
        query = query.where(
            (QuotaScopeRow.host > host)
            | ((QuotaScopeRow.host == host) & (QuotaScopeRow.scope > scope))
        )
    query = query.order_by(QuotaScopeRow.host, QuotaScopeRow.scope).limit(limit)
    rows = (await connection.execute(query)).mappings()
    return [msgspec.convert(dict(row), ScopeRecord) for row in rows]


async def list_due(
    connection: AsyncConnection, hosts: Collection[str], before: datetime, limit: int
) -> list[ScopeRecord]:
    """List scopes with folders that were not counted since, longest ago first."""
    row = QuotaScopeRow
    kept = select(FolderRow.id).where(
        FolderRow.host == row.host, FolderRow.scope == row.scope
    )
    query = (
        _select()
        .where(
            row.host.in_(sorted(hosts)),
            row.scanned_at.is_(None) | (row.scanned_at < before),
            kept.exists(),
        )
        .order_by(row.scanned_at.is_not(None), row.scanned_at, row.host, row.scope)
        .limit(limit)
    )
    rows = (await connection.execute(query)).mappings()
    return [msgspec.convert(dict(row), ScopeRecord) for row in rows]


async def change_scope(tx: Transaction, host: str, scope: str, **values: Any) -> None:
    """Change columns of a quota scope."""
    await tx.execute(
        update(QuotaScopeRow)
        .where(_is(host, scope))
        .values(modified_at=tx.now, **values)
    )


async def sum_files(connection: AsyncConnection, scope: ScopeRecord) -> int:
    """Add up the files of a scope's folders, each as it was counted."""
    row = FolderRow
    query = select(func.coalesce(func.sum(row.used_files), 0))
    mine = query.where(row.host == scope.host, row.scope == scope.scope)
    return int(await connection.scalar(mine) or 0)


async def drop_scope(tx: Transaction, host: str, scope: str) -> None:
    """Forget a quota scope."""
    await tx.execute(delete(QuotaScopeRow).where(_is(host, scope)))


# --- reservations ----------------------------------------------------------------


class Room(msgspec.Struct, frozen=True):
    """An amount of bytes, and a number of files and folders."""

    bytes: int = 0
    files: int = 0


async def reserve(
    tx: Transaction,
    folder: FolderRecord,
    amount: int,
    *,
    files: int = 0,
    insider: bool = True,
) -> None:
    """Keep room for what is about to be written; raises what answers 507.

    Both the scope's limits and the folder's own have to have it. An unmanaged folder
    counts nowhere. Only an *insider* is told how full the owner's scope is.
    """
    if not folder.scope:
        return
    wanted = Room(amount, files)
    await reserve_in_scope(tx, folder, wanted, insider=insider)
    await _reserve_in_folder(tx, folder.id, wanted)


async def reserve_in_scope(
    tx: Transaction, folder: FolderRecord, wanted: Room, *, insider: bool = True
) -> None:
    """Keep room in a folder's scope, whatever the folder itself may hold."""
    host, scope = folder.host, folder.scope
    found = await ensure_scope(tx, host, scope)
    row = QuotaScopeRow
    # Also without a limit there is a most: sums have to be numbers of the database.
    most_bytes = LARGEST if found.most_bytes is None else found.most_bytes
    fits = and_(*_fits(row, wanted, most_bytes=most_bytes, most_files=found.most_files))
    kept = await tx.execute(
        update(row).where(_is(host, scope), fits).values(_keep(row, wanted))
    )
    if not kept.rowcount:
        if not insider:
            raise InsufficientStorageError(
                f"there is no room for it: the {found.kind} that the folder"
                f" {folder.name!r} belongs to may not keep so much more; ask its owner",
                asked=wanted.bytes,
            )
        raise _refusal(
            f"the {found.kind} {found.owner_name or found.owner_id} may keep",
            Room(
                found.used_bytes + found.reserved_bytes,
                found.used_files + found.reserved_files,
            ),
            wanted,
            most_bytes=most_bytes,
            most_files=found.most_files,
        )


def _fits(
    row: Any, wanted: Room, *, most_bytes: int, most_files: int | None
) -> Iterator[Any]:
    """Yield what has to be true for *wanted* to fit into a scope."""
    yield row.used_bytes + row.reserved_bytes <= max(-1, most_bytes - wanted.bytes)
    # Who brings no file more is not stopped by having too many.
    if most_files is not None and wanted.files:
        yield row.used_files + row.reserved_files + wanted.files <= most_files


def _keep(row: Any, wanted: Room) -> dict[Any, Any]:
    return {
        row.reserved_bytes: row.reserved_bytes + wanted.bytes,
        row.reserved_files: row.reserved_files + wanted.files,
    }


async def _reserve_in_folder(tx: Transaction, folder_id: str, wanted: Room) -> None:
    row = FolderRow
    room = (row.max_size < 0) | (
        row.used_bytes + row.reserved_bytes + wanted.bytes <= row.max_size
    )
    if wanted.files:
        room &= row.max_files.is_(None) | (
            row.used_files + row.reserved_files + wanted.files <= row.max_files
        )
    kept = await tx.execute(
        update(row).where(row.id == folder_id, room).values(_keep(row, wanted))
    )
    if kept.rowcount:
        return
    query = select(
        row.name,
        row.max_size,
        row.max_files,
        (row.used_bytes + row.reserved_bytes).label("bytes"),
        (row.used_files + row.reserved_files).label("files"),
    ).where(row.id == folder_id)
    found = (await tx.connection.execute(query)).first()
    if found is not None:
        raise _refusal(
            f"the folder {found.name!r} may hold",
            Room(found.bytes, found.files),
            wanted,
            most_bytes=found.max_size if found.max_size >= 0 else None,
            most_files=found.max_files,
        )


async def find_room(connection: AsyncConnection, folder: FolderRecord) -> int | None:
    """Return how much still fits into a folder and its scope; None: there is no end."""
    return (await find_rooms(connection, folder))[0]


async def find_rooms(
    connection: AsyncConnection, folder: FolderRecord
) -> tuple[int | None, int | None]:
    """Return how many bytes and files still fit; None: there is no end."""
    sizes, counts = [], []
    if folder.scope:
        scope = await find_scope(connection, folder.host, folder.scope)
        if scope is not None and scope.most_bytes is not None:
            sizes.append(scope.most_bytes - scope.used_bytes - scope.reserved_bytes)
        if scope is not None and scope.most_files is not None:
            counts.append(scope.most_files - scope.used_files - scope.reserved_files)
    row = FolderRow
    query = select(
        row.max_size,
        row.used_bytes + row.reserved_bytes,
        row.max_files,
        row.used_files + row.reserved_files,
    )
    found = (await connection.execute(query.where(row.id == folder.id))).first()
    if found is not None and found[0] >= 0:
        sizes.append(found[0] - found[1])
    if found is not None and found[2] is not None:
        counts.append(found[2] - found[3])
    return _least(sizes), _least(counts)


def _least(rooms: list[int]) -> int | None:
    return max(0, min(rooms)) if rooms else None


def _refusal(
    what: str,
    held: Room,
    asked: Room,
    *,
    most_bytes: int | None,
    most_files: int | None,
) -> InsufficientStorageError:
    """Say which of the limits it is that has no room."""
    if most_bytes is not None and held.bytes + asked.bytes > most_bytes:
        return _full(what, most_bytes, held.bytes, asked.bytes)
    most = most_files or 0
    return InsufficientStorageError(
        f"{what} {most} files and folders, has {held.files}, and {asked.files} more"
        " would be too many; remove something, or ask an administrator for more",
        limit=most,
        used=held.files,
        asked=asked.files,
    )


def _full(what: str, most: int, held: int, asked: int) -> InsufficientStorageError:
    used, limit, wanted = (format_amount("mem", n) for n in (held, most, asked))
    return InsufficientStorageError(
        f"{what} {limit}, has {used}, and {wanted} more would not fit; remove"
        " something, or ask an administrator for more",
        limit=most,
        used=held,
        asked=asked,
    )


async def settle(
    tx: Transaction,
    folder: FolderRecord,
    *,
    reserved: int | Room,
    used: int,
    files: int = 0,
) -> None:
    """Turn a reservation into use: what was written, which may be less, or nothing."""
    if not folder.scope:
        return
    kept = reserved if isinstance(reserved, Room) else Room(reserved)
    for row, condition in (
        (QuotaScopeRow, _is(folder.host, folder.scope)),
        (FolderRow, FolderRow.id == folder.id),
    ):
        table: Any = row
        await tx.execute(
            update(table)
            .where(condition)
            .values(
                reserved_bytes=_at_least_zero(table.reserved_bytes - kept.bytes),
                reserved_files=_at_least_zero(table.reserved_files - kept.files),
                used_bytes=_at_least_zero(table.used_bytes + used),
                used_files=_at_least_zero(table.used_files + files),
            )
        )


async def settle_in_scope(
    tx: Transaction, folder: FolderRecord, *, kept: Room, used: Room, sign: int = 1
) -> None:
    """Count what a folder holds in its scope, or not any more; its own row stays."""
    row = QuotaScopeRow
    await tx.execute(
        update(row)
        .where(_is(folder.host, folder.scope))
        .values(
            reserved_bytes=_at_least_zero(row.reserved_bytes - kept.bytes),
            reserved_files=_at_least_zero(row.reserved_files - kept.files),
            used_bytes=_at_least_zero(row.used_bytes + sign * used.bytes),
            used_files=_at_least_zero(row.used_files + sign * used.files),
        )
    )


def _at_least_zero(amount: Any) -> Any:
    return case((amount < 0, 0), else_=amount)


async def give_back(tx: Transaction, folder: FolderRecord, amount: int | Room) -> None:
    """Give back room that was kept and is not needed."""
    await settle(tx, folder, reserved=amount, used=0)


async def note_scan(
    tx: Transaction,
    before: ScopeRecord,
    *,
    counted_bytes: int,
    counted_files: int,
) -> None:
    """Take over what was counted on disk, with what was written in the meantime."""
    row = QuotaScopeRow
    since_bytes = row.used_bytes - before.used_bytes
    since_files = row.used_files - before.used_files
    await tx.execute(
        update(row)
        .where(_is(before.host, before.scope))
        .values(
            used_bytes=_at_least_zero(counted_bytes + since_bytes),
            used_files=_at_least_zero(counted_files + since_files),
            scanned_at=tx.now,
        )
    )
