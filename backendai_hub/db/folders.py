"""Reading and writing virtual folders, and who may use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.mounts import MountableFolder
from backendai_hub.core.names import fold
from backendai_hub.core.sessions import TERMINAL
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import (
    MOUNTABLE,
    NAMED,
    FolderPermission,
    FolderStatus,
    HostPermissions,
    UsageMode,
    join_permissions,
)
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    DomainRow,
    FolderGrantRow,
    FolderRow,
    InvitationRow,
    KeypairPolicyRow,
    KeypairRow,
    MembershipRow,
    ProjectRow,
    SessionMountRow,
    SessionRow,
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
    trashed_at: datetime | None
    revision: int
    project_type: str | None = None
    owner_name: str = ""
    project_is_active: bool | None = None
    creator_belongs: bool = False
    """Whether who made it is in the project that it belongs to."""

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
    if name
    not in {"project_type", "owner_name", "project_is_active", "creator_belongs"}
)


def select_folders() -> Select[Any]:
    """Build the statement that reads folders with what their owners are called."""
    return (
        select(
            *_COLUMNS,
            ProjectRow.type.label("project_type"),
            ProjectRow.is_active.label("project_is_active"),
            exists()
            .where(
                MembershipRow.project_id == FolderRow.project_id,
                MembershipRow.user_id == FolderRow.creator_id,
            )
            .label("creator_belongs"),
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


# --- who may use them ------------------------------------------------------------


def is_given_to(user_id: str) -> ColumnElement[bool]:
    """Build the condition that somebody has given a folder to a user."""
    given = select(FolderGrantRow.folder_id).where(
        FolderGrantRow.user_id == user_id, FolderGrantRow.kind == "invited"
    )
    return FolderRow.id.in_(given)


def is_in_store_of(domain_id: str) -> ColumnElement[bool]:
    """Build the condition that everybody of a domain may read a folder."""
    stores = select(ProjectRow.id).where(
        ProjectRow.domain_id == domain_id,
        ProjectRow.type == str(ProjectType.MODEL_STORE),
        ProjectRow.is_active,
    )
    return and_(
        FolderRow.project_id.in_(stores),
        FolderRow.usage_mode == str(UsageMode.MODEL),
        FolderRow.status.in_(sorted(MOUNTABLE)),
    )


def is_accessible_to(user_id: str, project_ids: Collection[str]) -> ColumnElement[bool]:
    """Build the condition that a folder counts as one of a user's."""
    return or_(
        FolderRow.user_id == user_id,
        FolderRow.project_id.in_(sorted(project_ids)),
        is_given_to(user_id),
    )


async def find_grant(
    connection: AsyncConnection, folder_id: str, user_id: str
) -> FolderPermission | None:
    """Return what one person was given in a folder, if they were."""
    found = await connection.scalar(
        select(FolderGrantRow.permission).where(
            FolderGrantRow.folder_id == folder_id, FolderGrantRow.user_id == user_id
        )
    )
    return None if found is None else FolderPermission(found)


async def load_grants_of(
    connection: AsyncConnection, user_id: str, folder_ids: Collection[str]
) -> dict[str, FolderPermission]:
    """Return what one person was given in each of these folders."""
    rows = await connection.execute(
        select(FolderGrantRow.folder_id, FolderGrantRow.permission).where(
            FolderGrantRow.user_id == user_id,
            FolderGrantRow.folder_id.in_(sorted(folder_ids)),
        )
    )
    return {str(key): FolderPermission(value) for key, value in rows}


async def put_grant(
    tx: Transaction,
    folder_id: str,
    user_id: str,
    permission: FolderPermission,
    *,
    kind: str,
) -> None:
    """Give somebody something in a folder, in place of what they were given before."""
    await drop_grant(tx, folder_id, user_id)
    await tx.execute(
        insert_ignore(tx, FolderGrantRow).values(
            folder_id=folder_id,
            user_id=user_id,
            permission=str(permission),
            kind=kind,
            created_at=tx.now,
        )
    )


async def drop_grant(tx: Transaction, folder_id: str, user_id: str) -> bool:
    """Take back what somebody was given; tell whether there was anything."""
    gone = await tx.execute(
        delete(FolderGrantRow).where(
            FolderGrantRow.folder_id == folder_id, FolderGrantRow.user_id == user_id
        )
    )
    return bool(gone.rowcount)


async def move_folders(tx: Transaction, user_id: str, domain_id: str) -> None:
    """Take somebody's folders along into another domain, where nobody shares them."""
    owned = select(FolderRow.id).where(FolderRow.user_id == user_id)
    for row in (FolderGrantRow, InvitationRow):
        await tx.execute(delete(row).where(row.folder_id.in_(owned)))
    await tx.execute(delete(FolderGrantRow).where(FolderGrantRow.user_id == user_id))
    await tx.execute(delete(InvitationRow).where(InvitationRow.invitee_id == user_id))
    await tx.execute(
        update(FolderRow)
        .where(FolderRow.user_id == user_id)
        .values(domain_id=domain_id, revision=FolderRow.revision + 1)
    )


async def load_host_permissions(
    connection: AsyncConnection,
    *,
    user_id: str,
    keypair_id: str | None = None,
) -> HostPermissions:
    """Return what a user may do on each host: all that anything of theirs permits.

    That is their domain, their active projects in it, and the policy of the keypair
    they come with, or of their default one.
    """
    domains = (
        select(DomainRow.allowed_vfolder_hosts)
        .join(UserRow, UserRow.domain_id == DomainRow.id)
        .where(UserRow.id == user_id, DomainRow.is_active)
    )
    projects = (
        select(ProjectRow.allowed_vfolder_hosts)
        .join(MembershipRow, MembershipRow.project_id == ProjectRow.id)
        .join(UserRow, UserRow.id == MembershipRow.user_id)
        .join(DomainRow, DomainRow.id == ProjectRow.domain_id)
        .where(
            UserRow.id == user_id,
            ProjectRow.is_active,
            DomainRow.is_active,
            ProjectRow.domain_id == UserRow.domain_id,
        )
    )
    mine = KeypairRow.is_default if keypair_id is None else KeypairRow.id == keypair_id
    policies = (
        select(KeypairPolicyRow.allowed_vfolder_hosts)
        .join(KeypairRow, KeypairRow.resource_policy_id == KeypairPolicyRow.id)
        .where(KeypairRow.user_id == user_id, mine)
    )
    allowed = []
    for query in (domains, projects, policies):
        allowed += [hosts or {} for (hosts,) in await connection.execute(query)]
    return join_permissions(*allowed)


# --- names -----------------------------------------------------------------------


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


# --- for mounts ------------------------------------------------------------------


async def list_mountable(
    connection: AsyncConnection,
    *,
    user_id: str,
    domain_id: str,
    project_ids: Collection[str],
) -> list[MountableFolder]:
    """List all that a user could mount, as :mod:`core.mounts` needs to know it."""
    found = await list_folders(
        connection,
        and_(
            FolderRow.status.in_(sorted(MOUNTABLE)),
            or_(is_accessible_to(user_id, project_ids), is_in_store_of(domain_id)),
        ),
    )
    grants = await load_grants_of(connection, user_id, [f.id for f in found])
    return [_mountable(folder, grants, project_ids, user_id) for folder in found]


def _mountable(
    folder: FolderRecord,
    grants: dict[str, FolderPermission],
    project_ids: Collection[str],
    user_id: str,
) -> MountableFolder:
    theirs = folder.user_id == user_id or folder.project_id in project_ids
    # What a project's folder was to somebody who has left it counts no more.
    counts = theirs or folder.user_id is not None
    given = grants.get(folder.id) if counts else None
    stored = FolderPermission(folder.permission)
    if given is None and not theirs:
        stored = FolderPermission.READ_ONLY  # everybody's model store
    return MountableFolder(
        id=folder.id,
        name=folder.name,
        host=folder.host,
        scope=folder.scope,
        status=str(folder.status),
        usage_mode=folder.usage_mode,
        permission=str(given or stored),
        ownership_type=folder.ownership_type,
        owner_id=folder.owner_id,
        owner_name=folder.owner_name,
        unmanaged_path=folder.unmanaged_path,
        shared=given is not None and not theirs,
        model_store=folder.project_type == ProjectType.MODEL_STORE,
    )


# --- as a noun -------------------------------------------------------------------


def choose_folder(
    rows: Sequence[Mapping[str, Any]], reference: str, user_id: str
) -> Mapping[str, Any]:
    """Choose what a person means by a name: their own first, the trash last.

    Raises :class:`InvalidRequestError` where that does not tell.
    """
    rest = rows
    for keep in (
        lambda row: row["status"] in NAMED,
        lambda row: row["user_id"] == user_id,
    ):
        rest = [row for row in rest if keep(row)] or rest
    if len(rest) == 1:
        return rest[0]
    ids = ", ".join(sorted(str(row["id"]) for row in rest)[:5])
    raise InvalidRequestError(
        f"there are {len(rest)} folders named {reference[:64]!r}; say which by its id:"
        f" {ids}"
    )


def _named(row: Any, values: Sequence[Any]) -> Any:
    keys = [fold(str(value)) for value in values]
    return select(row.id).where(row.name_key.in_(keys) | row.id.in_(keys))


def _has_status(values: Sequence[Any]) -> Any:
    """Compare what is shown: what is ready is mounted while a session has it."""
    wanted = {str(value).strip().lower() for value in values}
    stored = wanted - {FolderStatus.MOUNTED, FolderStatus.READY}
    seen: list[Any] = [FolderRow.status.in_(sorted(stored))]
    mounted = exists().where(
        SessionMountRow.folder_id == FolderRow.id,
        SessionRow.id == SessionMountRow.session_id,
        SessionRow.status.not_in([str(s) for s in TERMINAL]),
    )
    ready = FolderRow.status == str(FolderStatus.READY)
    if FolderStatus.MOUNTED in wanted:
        seen.append(ready & mounted)
    if FolderStatus.READY in wanted:
        seen.append(ready & ~mounted)
    return or_(*seen)


FILTERS: Final[Mapping[str, Any]] = {
    "user": lambda values: FolderRow.user_id.in_(_named(UserRow, values)),
    "domain": lambda values: FolderRow.domain_id.in_(_named(DomainRow, values)),
    "status": _has_status,
}
"""Filters of folders that are no plain comparison."""


def statuses(wanted: Collection[FolderStatus]) -> Sequence[str]:
    """Return what a column of statuses is compared with."""
    return sorted(str(status) for status in wanted)
