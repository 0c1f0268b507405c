"""Reading and writing virtual folders."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import (
    Select,
    case,
    func,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import (
    MOUNTABLE,
    NAMED,
    FolderStatus,
    UsageMode,
)
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    FolderRow,
    ProjectRow,
    UserRow,
)

_HISTORY = 50
"""So many changes of a folder's status are kept with it."""


class FolderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A folder as it is stored, with its project's type and its owner's name."""

    id: str
    name: str
    host: str
    scope: str
    domain_id: str
    ownership_type: str
    owner_id: str
    user_id: str | None
    project_id: str | None
    creator: str
    creator_id: str | None
    usage_mode: str
    permission: str
    cloneable: bool
    max_size: int
    max_files: int | None
    unmanaged_path: str
    status: FolderStatus
    status_history: list[dict[str, Any]]
    used_bytes: int
    used_files: int
    reserved_bytes: int
    reserved_files: int
    trashed_at: datetime | None
    revision: int
    project_type: str | None = None
    owner_name: str = ""
    project_is_active: bool | None = None

    @property
    def is_managed(self) -> bool:
        """Whether the platform made it, and may remove it."""
        return not self.unmanaged_path

    @property
    def is_model_store(self) -> bool:
        """Whether its domain may read it."""
        return (
            self.project_type == ProjectType.MODEL_STORE
            and self.usage_mode == UsageMode.MODEL
        )

    @property
    def is_offered(self) -> bool:
        """Whether its domain may read it now, as ``is_in_store_of`` finds it."""
        return (
            self.is_model_store
            and bool(self.project_is_active)
            and self.status in MOUNTABLE
        )


_COLUMNS = tuple(
    getattr(FolderRow, name)
    for name in FolderRecord.__struct_fields__
    if name not in {"project_type", "owner_name", "project_is_active"}
)


@cache
def select_folders() -> Select[Any]:
    """Build the statement that reads folders with what their owners are called."""
    return (
        select(
            *_COLUMNS,
            ProjectRow.type.label("project_type"),
            ProjectRow.is_active.label("project_is_active"),
            func.coalesce(ProjectRow.name, UserRow.name, "").label("owner_name"),
        )
        .outerjoin(ProjectRow, ProjectRow.id == FolderRow.project_id)
        .outerjoin(UserRow, UserRow.id == FolderRow.user_id)
    )


async def find_folder(
    connection: AsyncConnection, folder_id: str, *, lock: bool = False
) -> FolderRecord | None:
    """Find one folder by its id."""
    query = select_folders().where(FolderRow.id == folder_id)
    if lock:
        query = query.with_for_update(of=FolderRow)
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else msgspec.convert(dict(row), FolderRecord)


async def list_folders(
    connection: AsyncConnection, condition: Any
) -> list[FolderRecord]:
    """List folders, in the order of ids."""
    query = select_folders().where(condition).order_by(FolderRow.id)
    rows = await connection.execute(query)
    return [msgspec.convert(dict(row), FolderRecord) for row in rows.mappings()]


async def insert_folder(tx: Transaction, values: dict[str, Any]) -> None:
    """Store a new folder."""
    status = FolderStatus(values["status"])
    await tx.execute(
        insert_ignore(tx, FolderRow).values(
            **values,
            name_key=fold(values["name"]),
            created_at=tx.now,
            modified_at=tx.now,
            status_changed_at=tx.now,
            status_history=[{"status": str(status), "at": tx.now.isoformat()}],
        )
    )


async def change_status(
    tx: Transaction,
    folder: FolderRecord,
    status: FolderStatus,
    *,
    reason: str = "",
    **more: Any,
) -> bool:
    """Move a folder on, if nobody has since it was read; tell whether it is so."""
    entry = {"status": str(status), "at": tx.now.isoformat()}
    if reason:
        entry["reason"] = reason[:500]
    changed = await tx.execute(
        update(FolderRow)
        .where(FolderRow.id == folder.id, FolderRow.revision == folder.revision)
        .values(
            status=str(status),
            status_reason=reason[:2000],
            status_changed_at=tx.now,
            status_history=[*folder.status_history, entry][-_HISTORY:],
            revision=folder.revision + 1,
            modified_at=tx.now,
            **more,
        )
    )
    return bool(changed.rowcount)


async def change_folder(tx: Transaction, folder: FolderRecord, **values: Any) -> bool:
    """Change columns of a folder, if nobody has since it was read."""
    if "name" in values:
        values["name_key"] = fold(values["name"])
    changed = await tx.execute(
        update(FolderRow)
        .where(FolderRow.id == folder.id, FolderRow.revision == folder.revision)
        .values(revision=folder.revision + 1, modified_at=tx.now, **values)
    )
    return bool(changed.rowcount)


async def note_size(
    tx: Transaction, folder: FolderRecord, size: int, files: int
) -> None:
    """Take over what was counted on disk, with what was written in the meantime."""
    row = FolderRow
    bytes_now = size + row.used_bytes - folder.used_bytes
    files_now = files + row.used_files - folder.used_files
    await tx.execute(
        update(row)
        .where(row.id == folder.id)
        .values(
            used_bytes=case((bytes_now < 0, 0), else_=bytes_now),
            used_files=case((files_now < 0, 0), else_=files_now),
            scanned_at=tx.now,
        )
    )


async def find_named(
    connection: AsyncConnection,
    name: str,
    condition: Any,
    *,
    other_than: str = "",
) -> FolderRecord | None:
    """Find a folder that keeps this name to itself, among those of *condition*."""
    query = select_folders().where(
        condition,
        FolderRow.name_key == fold(name),
        FolderRow.status.in_(sorted(NAMED)),
        FolderRow.id != other_than,
    )
    row = (await connection.execute(query.order_by(FolderRow.id))).mappings().first()
    return None if row is None else msgspec.convert(dict(row), FolderRecord)


async def count_kept(connection: AsyncConnection, owner_id: str) -> int:
    """Count the folders of a user or a project, with those in the trash."""
    gone = [FolderStatus.DELETE_ONGOING, FolderStatus.DELETE_COMPLETE]
    query = select(func.count()).where(
        FolderRow.owner_id == owner_id, FolderRow.status.not_in([str(s) for s in gone])
    )
    return int(await connection.scalar(query) or 0)
