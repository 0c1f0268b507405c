"""What was found on storage hosts and belongs to nobody, and what is known there.

Times are the database's own: what is removed because of its age is not removed because
the clock of some machine was wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import and_, delete, insert, select, tuple_, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.vfolders import FolderStatus, TaskKind, split_scope
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import OPEN, read_time
from backendai_hub.db.tables import (
    FolderRow,
    FolderTaskRow,
    ProjectRow,
    QuotaScopeRow,
    RemainRow,
    UploadRow,
    UserRow,
)

FOUND: Final = "found"
UNMANAGED: Final = "folder-"
"""With the folder's id this stands for the scope that an unmanaged folder has not."""
REMOVING: Final = "removing"


class Thing(msgspec.Struct, frozen=True, order=True):
    """Something on a host: what it is by where it lies, and its name there."""

    kind: str
    name: str


class RemainRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Something that no row knows, as it is stored."""

    host: str
    scope: str
    kind: str
    name: str
    state: str
    reason: str
    found_at: datetime


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform knows of one scope of a host."""

    folders: frozenset[str]
    """Those that have, or may have, something on the disk."""
    settled: frozenset[str]
    """Those of them that have to be there."""
    uploads: frozenset[str]
    busy: frozenset[str]
    """Folders that something is being done to."""
    tasks: frozenset[str]
    """What is being done to them."""
    has_owner: bool
    is_ours: bool
    """Whether this platform has made the scope."""
    is_unmanaged: bool = False
    """Whether it is what an unmanaged folder keeps, and no scope."""


_COLUMNS = tuple(getattr(RemainRow, name) for name in RemainRecord.__struct_fields__)
_SETTLED: Final = (
    FolderStatus.READY,
    FolderStatus.MOUNTED,
    FolderStatus.DELETE_PENDING,
)


def _is(host: str, scope: str) -> Any:
    return and_(RemainRow.host == host, RemainRow.scope == scope)


def _one(host: str, scope: str, thing: Thing) -> Any:
    row = RemainRow
    return and_(_is(host, scope), row.kind == thing.kind, row.name == thing.name)


async def load_known(connection: AsyncConnection, host: str, scope: str) -> Known:
    """Load what is known of a scope at this moment."""
    row = FolderRow
    query = select(row.id, row.status).where(_lies_in(host, scope))
    rows = await connection.execute(query)
    status = {one.id: FolderStatus(one.status) for one in rows}
    begun = await connection.scalars(
        select(UploadRow.id).where(UploadRow.folder_id.in_(_folders_of(host, scope)))
    )
    tasks = await connection.execute(
        select(FolderTaskRow.id, FolderTaskRow.folder_id).where(
            FolderTaskRow.state.in_(OPEN)
        )
    )
    open_tasks = {one.id: one.folder_id for one in tasks}
    ours = and_(QuotaScopeRow.host == host, QuotaScopeRow.scope == scope)
    return Known(
        folders=frozenset(
            one for one in status if status[one] is not FolderStatus.DELETE_COMPLETE
        ),
        settled=frozenset(
            one for one in status if status[one] in _SETTLED and not is_unmanaged(scope)
        ),
        uploads=frozenset(begun),
        busy=frozenset(open_tasks.values()),
        tasks=frozenset(open_tasks),
        has_owner=await _has_owner(connection, scope),
        is_ours=await _exists(connection, select(QuotaScopeRow.scope).where(ours)),
        is_unmanaged=is_unmanaged(scope),
    )


def _folders_of(host: str, scope: str) -> Any:
    return select(FolderRow.id).where(_lies_in(host, scope))


def _lies_in(host: str, scope: str) -> Any:
    row = FolderRow
    if is_unmanaged(scope):
        # Several folders may be the same place, by other spellings, hosts or mounts,
        # and keep their things together. Whatever the ids of one are, all have them.
        return row.unmanaged_path != ""
    return and_(row.host == host, row.scope == scope)


async def _has_owner(connection: AsyncConnection, scope: str) -> bool:
    """Tell whether the user or project of a scope, or the unmanaged folder, exists."""
    if is_unmanaged(scope):
        query = select(FolderRow.id).where(
            FolderRow.id == scope.removeprefix(UNMANAGED)
        )
        return await _exists(connection, query)
    kind, owner_id = split_scope(scope)
    owner: Any = UserRow if str(kind) == "user" else ProjectRow
    return await _exists(connection, select(owner.id).where(owner.id == owner_id))


def is_unmanaged(scope: str) -> bool:
    """Tell whether a scope is what an unmanaged folder keeps of ours."""
    return scope.startswith(UNMANAGED)


async def list_unmanaged(connection: AsyncConnection, host: str) -> dict[str, str]:
    """Return the paths of unmanaged folders, by what stands for their scopes."""
    row = FolderRow
    rows = await connection.execute(
        select(row.id, row.unmanaged_path).where(
            row.host == host,
            row.unmanaged_path != "",
            row.status != FolderStatus.DELETE_COMPLETE,
        )
    )
    return {f"{UNMANAGED}{one.id}": one.unmanaged_path for one in rows}


async def _exists(connection: AsyncConnection, query: Any) -> bool:
    return (await connection.execute(query.limit(1))).first() is not None


async def list_known_scopes(connection: AsyncConnection, host: str) -> set[str]:
    """List the scopes of a host that rows tell of."""
    query = union_all(
        select(QuotaScopeRow.scope).where(QuotaScopeRow.host == host),
        select(FolderRow.scope).where(FolderRow.host == host, FolderRow.scope != ""),
    )
    return set(await connection.scalars(query))


async def is_being_removed(connection: AsyncConnection, host: str, scope: str) -> bool:
    """Tell whether folders of a scope are still to be removed."""
    row = FolderTaskRow
    asked = await connection.scalars(
        select(row.arguments).where(
            row.state.in_(OPEN), row.kind == str(TaskKind.REMOVE)
        )
    )
    return any(one.get("host") == host and one.get("scope") == scope for one in asked)


async def note_found(
    tx: Transaction, host: str, scope: str, found: dict[Thing, str]
) -> None:
    """Keep exactly what was found, each since it was found first."""
    row = RemainRow
    rows = await tx.connection.execute(
        select(row.kind, row.name).where(_is(host, scope))
    )
    before = {Thing(one.kind, one.name) for one in rows}
    for thing in before - found.keys():
        await forget(tx, host, scope, thing)
    now = await read_time(tx.connection)
    for thing in sorted(found.keys() - before):
        await tx.execute(
            insert(row).values(
                host=host,
                scope=scope,
                kind=thing.kind,
                name=thing.name,
                reason=found[thing],
                found_at=now,
            )
        )


async def list_remains(
    connection: AsyncConnection,
    hosts: Collection[str],
    *,
    before: datetime | None = None,
    after: tuple[str, str, str, str] | None = None,
    limit: int = 1000,
) -> list[RemainRecord]:
    """List what was found on some hosts, all of it or what was found *before*."""
    row = RemainRow
    order = (row.host, row.scope, row.kind, row.name)
    query = select(*_COLUMNS).where(row.host.in_(sorted(hosts)))
    if before is not None:
        query = query.where(row.found_at <= before)
    if after is not None:
        query = query.where(tuple_(*order) > tuple_(*after))
    rows = await connection.execute(query.order_by(*order).limit(limit))
    return [msgspec.convert(dict(one), RemainRecord) for one in rows.mappings()]


async def list_scopes_with_remains(connection: AsyncConnection, host: str) -> set[str]:
    """List the scopes of a host in which something was found."""
    query = select(RemainRow.scope).where(RemainRow.host == host).distinct()
    return set(await connection.scalars(query))


async def intend_removal(tx: Transaction, remain: RemainRecord) -> bool:
    """Write down that something is about to be removed, unless it is known now."""
    thing = Thing(remain.kind, remain.name)
    done = await tx.execute(
        update(RemainRow)
        .where(
            _one(remain.host, remain.scope, thing),
            RemainRow.found_at == remain.found_at,
        )
        .values(state=REMOVING)
    )
    return bool(done.rowcount)


async def note_reason(tx: Transaction, remain: RemainRecord, reason: str) -> None:
    """Write down why something could not be removed."""
    thing = Thing(remain.kind, remain.name)
    await tx.execute(
        update(RemainRow)
        .where(_one(remain.host, remain.scope, thing))
        .values(state=FOUND, reason=reason[:2000])
    )


async def forget(tx: Transaction, host: str, scope: str, thing: Thing) -> None:
    """Forget something that is gone, or known."""
    await tx.execute(delete(RemainRow).where(_one(host, scope, thing)))
