"""The folders of sessions: chosen at submission, kept, and told to nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import MountSpec
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mounts import (
    Mount,
    MountContext,
    is_personal,
    resolve_mounts,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.vfolders import (
    HOST_LABEL,
    MOUNTABLE,
    FolderPermission,
    HostPermissions,
    TaskKind,
    folder_parts,
)
from backendai_hub.db import folder_rights, rights, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import list_open
from backendai_hub.db.session_mounts import insert_mounts, load_mounts
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.tables import FolderRow
from backendai_hub.operations.absent_hosts import REACHED
from backendai_hub.operations.platform import Platform

_ABOUT_FOLDERS = ("vfolders", "vfolder_permissions")


async def choose_mounts(
    platform: Platform,
    principal: Principal,
    user: Actor,
    project_id: str,
    request: SessionRequest,
) -> list[Mount]:
    """Return what a session of *user* in a project mounts; raises refusals."""
    requests, automatic = request.mounts, request.automatic_mounts
    database, keypair_id = platform.database, principal.keypair_id
    known = await database.recall(
        ("mountable", user.id, user.domain_id, frozenset(user.projects)),
        lambda connection: folder_rights.list_mountable(
            connection,
            user_id=user.id,
            domain_id=user.domain_id,
            project_ids=user.projects,
        ),
        _ABOUT_FOLDERS,
    )
    if not (requests or (known and automatic)):
        return []
    permissions = await database.recall(
        ("host permissions", user.id, keypair_id),
        lambda connection: folder_rights.load_host_permissions(
            connection, user_id=user.id, keypair_id=keypair_id
        ),
    )
    context = MountContext(
        user_id=user.id,
        project_id=project_id,
        permissions=permissions,
        automatic=automatic,
    )
    return resolve_mounts(requests, known, context)


async def find_withdrawn(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> dict[str, str]:
    """Return, in words by id, which sessions wait for folders they may not have now.

    What was permitted when a session was asked for may have been taken back since, and
    it must not begin with it.
    """
    mounts = await load_mounts(connection, [record.id for record in records])
    known: dict[tuple[str, str | None], _Rights] = {}
    found: dict[str, str] = {}
    for record in records:
        if record.id not in mounts:
            continue
        key = (record.owner_id, record.keypair_id)
        if key not in known:
            known[key] = await _read_rights(connection, *key)
        for mount in mounts[record.id]:
            if not known[key].allow(mount):
                found[record.id] = (
                    f"the folder {mount.folder_name!r} may not be mounted"
                    f" {mount.permission} by its owner any more"
                )
                break
    return found


async def find_uncertain(tx: Transaction, records: Sequence[SessionRecord]) -> set[str]:
    """Return which of these may not begin in this transaction with their folders.

    What permits the others is held until the commit, so that nothing is taken back in
    between. Where somebody is changing just that, the next pass looks again.
    """
    mounts = await load_mounts(tx.connection, [record.id for record in records])
    mounting = [record for record in records if record.id in mounts]
    if not mounting:
        return set()
    busy = set()
    for key in {(record.owner_id, record.keypair_id) for record in mounting}:
        ids = {
            mount.folder_id
            for record in mounting
            if (record.owner_id, record.keypair_id) == key
            for mount in mounts[record.id]
        }
        if not await rights.hold(tx, *key, folder_ids=ids):
            busy.add(key)
    uncertain = set(await find_withdrawn(tx.connection, mounting))
    uncertain |= {r.id for r in mounting if (r.owner_id, r.keypair_id) in busy}
    if uncertain:
        tx.wake("scheduler")
    return uncertain


class _Rights(NamedTuple):
    """What somebody may mount now."""

    folders: dict[str, FolderPermission]
    hosts: HostPermissions

    def allow(self, mount: Mount) -> bool:
        given = self.folders.get(mount.folder_id)
        return (
            given is not None
            and given.rank >= mount.permission.rank
            and HostPermission.MOUNT in self.hosts.get(mount.host, frozenset())
        )


async def _read_rights(
    connection: AsyncConnection, user_id: str, keypair_id: str | None
) -> _Rights:
    actor = await tenancy.find_actor(connection, user_id=user_id)
    if actor is None:
        return _Rights({}, {})
    known = await folder_rights.list_mountable(
        connection,
        user_id=actor.id,
        domain_id=actor.domain_id,
        project_ids=actor.projects,
    )
    return _Rights(
        {folder.id: FolderPermission(folder.permission) for folder in known},
        await folder_rights.load_host_permissions(
            connection, user_id=user_id, keypair_id=keypair_id
        ),
    )


def labels_of(mounts: Sequence[Mount]) -> dict[str, str]:
    """Return how nodes have to be labelled to have these folders."""
    return {f"{HOST_LABEL}{mount.host}": REACHED for mount in mounts}


async def store_mounts(
    tx: Transaction, session_id: str, mounts: Sequence[Mount]
) -> None:
    """Keep a session's folders, unless one has just been thrown away, or moves."""
    if not mounts:
        return
    ids = sorted({mount.folder_id for mount in mounts})
    query = select(FolderRow.id, FolderRow.status, FolderRow.scope)
    query = query.where(FolderRow.id.in_(ids)).order_by(FolderRow.id)
    rows = await tx.execute(query.with_for_update())
    alive = {row.id: row.scope for row in rows if row.status in MOUNTABLE}
    moving = await list_open(tx.connection, kinds=[TaskKind.MOVE], folder_ids=ids)
    for mount in mounts:
        if mount.folder_id not in alive:
            raise ConflictError(
                f"mounts: the folder {mount.folder_name!r} has just been thrown away"
            )
        moves = any(task.folder_id == mount.folder_id for task in moving)
        if moves or alive[mount.folder_id] != mount.scope:
            raise ConflictError(
                f"mounts: the folder {mount.folder_name!r} is being given to somebody"
                " else; ask again in a moment"
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
