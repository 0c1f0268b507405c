"""Whose virtual folders are, and what people may do with them and on their hosts."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import (
    ColumnElement,
    and_,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.mounts import MountableFolder
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import (
    MOUNTABLE,
    FolderPermission,
    HostPermissions,
    UsageMode,
    join_permissions,
)
from backendai_hub.db.folder_grants import load_grants_of
from backendai_hub.db.folders import FolderRecord, list_folders
from backendai_hub.db.tables import (
    DomainRow,
    FolderGrantRow,
    FolderRow,
    KeypairPolicyRow,
    KeypairRow,
    MembershipRow,
    ProjectRow,
    UserRow,
)


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


async def load_host_permissions(
    connection: AsyncConnection,
    *,
    user_id: str,
    keypair_id: str | None = None,
    any_keypair: bool = False,
) -> HostPermissions:
    """Return what a user may do on each host: all that anything of theirs permits.

    That is their domain, their active projects in it, and the policy of the keypair
    they come with, or of their default one; or of *any_keypair* of theirs, where it is
    not known any more with which they came.
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
    if any_keypair:
        mine = KeypairRow.is_active
    policies = (
        select(KeypairPolicyRow.allowed_vfolder_hosts)
        .join(KeypairRow, KeypairRow.resource_policy_id == KeypairPolicyRow.id)
        .where(KeypairRow.user_id == user_id, mine)
    )
    allowed = []
    for query in (domains, projects, policies):
        allowed += [hosts or {} for (hosts,) in await connection.execute(query)]
    return join_permissions(*allowed)


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
