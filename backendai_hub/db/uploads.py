"""Uploads: files on their way into folders, and the room that is kept for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.tenancy import Role
from backendai_hub.core.uploads import UploadRecord
from backendai_hub.core.vfolders import FolderPermission
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    MembershipRow,
    UploadRow,
    UserRow,
)

OPEN: Final = "open"
DONE: Final = "done"
GONE: Final = "gone"

_COLUMNS = tuple(getattr(UploadRow, name) for name in UploadRecord.__struct_fields__)


def _read(row: Any) -> UploadRecord:
    return msgspec.convert(dict(row), UploadRecord)


async def insert_upload(tx: Transaction, upload: UploadRecord, **more: Any) -> None:
    """Store an upload that begins."""
    values = {**msgspec.structs.asdict(upload), **more}
    await tx.execute(insert(UploadRow).values(modified_at=tx.now, **values))


async def find_upload(
    connection: AsyncConnection, upload_id: str, *, lock: bool = False
) -> UploadRecord | None:
    """Find one upload by its id."""
    query = select(*_COLUMNS).where(UploadRow.id == upload_id)
    if lock:
        query = query.with_for_update(of=UploadRow)
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _read(row)


async def count_open(connection: AsyncConnection, user_id: str) -> int:
    """Count somebody's uploads that are not over."""
    query = (
        select(func.count())
        .select_from(UploadRow)
        .where(UploadRow.user_id == user_id, UploadRow.state == OPEN)
    )
    return int((await connection.execute(query)).scalar_one())


async def count_open_in(connection: AsyncConnection, folder_id: str) -> int:
    """Count the uploads into one folder that are not over."""
    query = (
        select(func.count())
        .select_from(UploadRow)
        .where(UploadRow.folder_id == folder_id, UploadRow.state == OPEN)
    )
    return int((await connection.execute(query)).scalar_one())


async def count_open_in_scope(
    connection: AsyncConnection, user_id: str, host: str, scope: str
) -> int:
    """Count somebody's uploads that are not over and fill a scope."""
    query = (
        select(func.count())
        .select_from(UploadRow)
        .join(FolderRow, FolderRow.id == UploadRow.folder_id)
        .where(UploadRow.user_id == user_id, UploadRow.state == OPEN)
        .where(FolderRow.host == host, FolderRow.scope == scope)
    )
    return int((await connection.execute(query)).scalar_one())


async def list_open(
    connection: AsyncConnection,
    folder_id: str,
    user_id: str | None,
    *,
    after: str | None = None,
    limit: int = 1000,
) -> list[tuple[UploadRecord, str]]:
    """List uploads into a folder that are not over, the oldest first, with the name of
    who sends each: somebody's, or everybody's."""
    row = UploadRow
    query = (
        select(*_COLUMNS, func.coalesce(UserRow.name, "").label("user_name"))
        .outerjoin(UserRow, UserRow.id == row.user_id)
        .where(row.folder_id == folder_id, row.state == OPEN)
    )
    if user_id is not None:
        query = query.where(row.user_id == user_id)
    if after is not None:
        query = query.where(row.id > after)
    found = await connection.execute(query.order_by(row.id).limit(limit))
    listed = []
    for one in found.mappings():
        values = dict(one)
        listed.append((values.pop("user_name"), values))
    return [(_read(values), name) for name, values in listed]


def _is_withdrawn() -> Any:
    """Build the condition that who uploads may not write into the folder any more."""
    grant, around = FolderGrantRow, (UploadRow, FolderRow)
    grants = select(grant.user_id).where(
        grant.folder_id == UploadRow.folder_id, grant.user_id == UploadRow.user_id
    )
    read_only = grants.where(grant.permission == str(FolderPermission.READ_ONLY))
    member = select(MembershipRow.user_id).where(
        MembershipRow.user_id == UploadRow.user_id,
        MembershipRow.project_id == FolderRow.project_id,
    )
    plain = select(UserRow.id).where(
        UserRow.id == UploadRow.user_id, UserRow.role == str(Role.USER)
    )
    withdrawn = or_(
        exists(read_only.correlate(*around)),
        and_(
            FolderRow.user_id.is_not(None),
            FolderRow.user_id != UploadRow.user_id,
            ~exists(grants.correlate(*around)),
        ),
        and_(
            FolderRow.project_id.is_not(None),
            ~exists(member.correlate(*around)),
            exists(plain.correlate(*around)),
        ),
    )
    return exists(
        select(FolderRow.id)
        .where(FolderRow.id == UploadRow.folder_id, withdrawn)
        .correlate(UploadRow)
    )


async def list_expired(
    connection: AsyncConnection, now: datetime, limit: int
) -> Sequence[UploadRecord]:
    """List what has waited for too long, is long over, or may not go on."""
    query = (
        select(*_COLUMNS)
        .where(
            or_(
                UploadRow.expires_at < now,
                and_(UploadRow.state == OPEN, _is_withdrawn()),
            )
        )
        .order_by(UploadRow.expires_at)
        .limit(limit)
    )
    return [_read(row) for row in (await connection.execute(query)).mappings()]


async def list_ids(connection: AsyncConnection, folder_id: str) -> list[str]:
    """List the uploads of a folder by their ids."""
    query = select(UploadRow.id).where(UploadRow.folder_id == folder_id)
    return list(await connection.scalars(query.order_by(UploadRow.id)))


async def extend(tx: Transaction, upload_id: str, until: datetime) -> None:
    """Let an upload live on, since it goes on."""
    await tx.execute(
        update(UploadRow)
        .where(UploadRow.id == upload_id, UploadRow.state == OPEN)
        .values(expires_at=until, modified_at=tx.now)
    )


async def keep_more(
    tx: Transaction, upload_id: str, amount: int, until: datetime
) -> bool:
    """Note that so much more room is kept for an upload; tell whether it is open."""
    row = UploadRow
    done = await tx.execute(
        update(row)
        .where(row.id == upload_id, row.state == OPEN)
        .values(
            reserved_bytes=row.reserved_bytes + amount,
            expires_at=until,
            modified_at=tx.now,
        )
    )
    return bool(done.rowcount)


async def end_upload(
    tx: Transaction, upload_id: str, state: str, until: datetime
) -> UploadRecord | None:
    """End an upload that is open, and return it as it was; None: it was not open.

    It is known *until*.
    """
    found = await find_upload(tx.connection, upload_id, lock=True)
    if found is None or found.state != OPEN:
        return None
    await tx.execute(
        update(UploadRow)
        .where(UploadRow.id == upload_id)
        .values(
            state=state,
            reserved_bytes=0,
            reserved_files=0,
            expires_at=until,
            modified_at=tx.now,
        )
    )
    return found


async def forget_upload(tx: Transaction, upload_id: str) -> None:
    """Forget an upload that is over."""
    await tx.execute(
        delete(UploadRow).where(UploadRow.id == upload_id, UploadRow.state != OPEN)
    )
