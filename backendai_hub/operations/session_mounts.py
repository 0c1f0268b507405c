"""The folders of sessions: chosen at submission, kept, and told to nodes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update

from backendai_hub.api.agents import MountSpec
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.mounts import (
    Mount,
    MountContext,
    MountRequest,
    is_personal,
    resolve_mounts,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.vfolders import MOUNTABLE, folder_parts
from backendai_hub.db import folders
from backendai_hub.db.engine import Transaction
from backendai_hub.db.session_mounts import insert_mounts
from backendai_hub.db.tables import FolderRow
from backendai_hub.operations.platform import Platform

LABEL = "storage/"
"""Nodes are labelled with this and the name of each storage host they reach."""
REACHED = "yes"
_ABOUT_FOLDERS = ("vfolders", "vfolder_permissions")


async def choose_mounts(
    platform: Platform,
    principal: Principal,
    user: Actor,
    project_id: str,
    requests: Sequence[MountRequest],
) -> list[Mount]:
    """Return what a session of *user* in a project mounts; raises refusals."""
    database, keypair_id = platform.database, principal.keypair_id
    known = await database.recall(
        ("mountable", user.id, user.domain_id, frozenset(user.projects)),
        lambda connection: folders.list_mountable(
            connection,
            user_id=user.id,
            domain_id=user.domain_id,
            project_ids=user.projects,
        ),
        _ABOUT_FOLDERS,
    )
    if not known and not requests:
        return []
    permissions = await database.recall(
        ("host permissions", user.id, keypair_id),
        lambda connection: folders.load_host_permissions(
            connection, user_id=user.id, keypair_id=keypair_id
        ),
    )
    context = MountContext(
        user_id=user.id, project_id=project_id, permissions=permissions
    )
    return resolve_mounts(requests, known, context)


def labels_of(mounts: Sequence[Mount]) -> dict[str, str]:
    """Return how nodes have to be labelled to have these folders."""
    return {f"{LABEL}{mount.host}": REACHED for mount in mounts}


async def store_mounts(
    tx: Transaction, session_id: str, mounts: Sequence[Mount]
) -> None:
    """Keep a session's folders, unless one has just been thrown away."""
    if not mounts:
        return
    ids = sorted({mount.folder_id for mount in mounts})
    query = select(FolderRow.id, FolderRow.status).where(FolderRow.id.in_(ids))
    rows = await tx.execute(query.order_by(FolderRow.id).with_for_update())
    alive = {row.id for row in rows if row.status in MOUNTABLE}
    for mount in mounts:
        if mount.folder_id not in alive:
            raise ConflictError(
                f"mounts: the folder {mount.folder_name!r} has just been thrown away"
            )
    await insert_mounts(tx, session_id, mounts)
    used = update(FolderRow).where(FolderRow.id.in_(ids)).values(last_used_at=tx.now)
    await tx.execute(used)


def specify(platform: Platform, mounts: Sequence[Mount]) -> list[MountSpec]:
    """Describe mounts to a node: by ids, never by what people have written."""
    return [_specify(platform, mount) for mount in mounts]


def _specify(platform: Platform, mount: Mount) -> MountSpec:
    owner = None
    if mount.host in platform.storage.names():
        owner = platform.storage.config(mount.host).read_owner()
    parts = [] if mount.unmanaged_path else folder_parts(mount.scope, mount.folder_id)
    return MountSpec(
        host=mount.host,
        parts=list(parts),
        unmanaged=mount.unmanaged_path,
        subpath=mount.subpath.split("/") if mount.subpath else [],
        make=is_personal(mount),
        target=mount.target,
        permission=str(mount.permission),
        owner_uid=None if owner is None else owner[0],
        owner_gid=None if owner is None else owner[1],
    )
