"""What becomes of folders whose user or project is removed.

Their quota scopes stay until nothing of them lies on the hosts any more: the rows are
what is left to be done (:mod:`.storage_care`).
"""

from __future__ import annotations

import logging

from sqlalchemy import delete, or_, select, update

from backendai_hub.core.errors import HubError, InUseError
from backendai_hub.core.vfolders import FolderStatus, TaskKind
from backendai_hub.db import folder_grants, folder_tasks, folders, uploads
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    InvitationRow,
)
from backendai_hub.operations.folder_checks import refuse_used
from backendai_hub.operations.folder_making import act_of, forget_folder
from backendai_hub.operations.folder_moves import NewOwner, begin_move
from backendai_hub.operations.platform import Platform

log = logging.getLogger("backendai_hub.folders")


async def purge_folders_of_user(
    platform: Platform, tx: Transaction, user_id: str, *, heir: NewOwner
) -> None:
    """Remove a user's folders; those that others share go to *heir*, who may see to it.

    Raises :class:`InUseError` while a live session of somebody else has one of them
    that is to be removed.
    """
    owned = await folders.list_folders(tx.connection, FolderRow.user_id == user_id)
    shared = await _list_shared(tx, owned)
    for folder in owned:
        if folder.id in shared:
            await _hand_over(platform, tx, folder, heir)
        else:
            await _remove(platform, tx, folder)
    await _forget_person(tx, user_id)


async def purge_every_folder_of_user(
    platform: Platform, tx: Transaction, user_id: str
) -> None:
    """Remove all of a user's folders; nobody else has them any more."""
    owned = await folders.list_folders(tx.connection, FolderRow.user_id == user_id)
    for folder in owned:
        await _remove(platform, tx, folder)


async def purge_folders_of_project(
    platform: Platform, tx: Transaction, project_id: str
) -> None:
    """Remove a project's folders, with what single members were given in them."""
    owned = await folders.list_folders(
        tx.connection, FolderRow.project_id == project_id
    )
    for folder in owned:
        await _remove(platform, tx, folder)


async def _list_shared(tx: Transaction, owned: list[FolderRecord]) -> set[str]:
    """Return the folders that somebody else has accepted and may still use."""
    rows = await tx.execute(
        select(FolderGrantRow.folder_id).where(
            FolderGrantRow.folder_id.in_([folder.id for folder in owned]),
            FolderGrantRow.kind == "invited",
        )
    )
    alive = {FolderStatus.READY, FolderStatus.PERFORMING, FolderStatus.CLONING}
    given = {row.folder_id for row in rows}
    return {f.id for f in owned if f.id in given and f.status in alive}


async def _hand_over(
    platform: Platform, tx: Transaction, folder: FolderRecord, heir: NewOwner
) -> None:
    """Make somebody else the owner; guests keep what they were given."""
    # A dot-folder would come into the heir's sessions unasked.
    name = folder.name.lstrip(".")
    if name != folder.name:
        name = f"{name[:40]} {folder.id[-12:]}"
    taken = await folders.find_named(tx.connection, name, FolderRow.owner_id == heir.id)
    if taken is not None:
        name = f"{name[:50]} {folder.id[-12:]}"
    await folder_grants.drop_grant(tx, folder.id, heir.id)
    await folders.change_folder(
        tx, folder, user_id=heir.id, owner_id=heir.id, name=name
    )
    tx.audit(
        act_of(
            "folder:transfer",
            folder,
            before={"owner": folder.owner_name},
            after={"owner_id": heir.id, "name": name, "because": "its user was purged"},
        )
    )
    now = await folders.find_folder(tx.connection, folder.id, lock=True)
    if now is None or not now.is_managed or now.status is not FolderStatus.READY:
        return
    try:
        await begin_move(platform, tx, now, heir, who=None)
    except HubError as error:  # it counts where it lies, as long as it lies there
        log.info("folder %s stays in its quota scope: %s", folder.id, error.message)


async def _remove(platform: Platform, tx: Transaction, folder: FolderRecord) -> None:
    """Forget a folder, and have its place on the host removed."""
    if folder.status not in {FolderStatus.DELETE_ONGOING, FolderStatus.DELETE_COMPLETE}:
        try:
            await refuse_used(tx, folder)
        except HubError as error:
            raise InUseError(error.message, **error.fields) from None
    begun = await uploads.list_ids(tx.connection, folder.id)
    await forget_folder(tx, folder.id)
    if folder.is_managed and folder.status is not FolderStatus.DELETE_COMPLETE:
        await folder_tasks.insert_task(
            tx,
            platform.new_id(),
            TaskKind.REMOVE,
            folder.id,
            arguments={
                "host": folder.host,
                "scope": folder.scope,
                "remains": True,
                "uploads": begun,
            },
        )
    tx.audit(act_of("folder:purge", folder, after={"because": "its owner was purged"}))


async def _forget_person(tx: Transaction, user_id: str) -> None:
    """Take somebody out of what others share with them."""
    await tx.execute(delete(FolderGrantRow).where(FolderGrantRow.user_id == user_id))
    row = InvitationRow
    mine = or_(row.invitee_id == user_id, row.inviter_id == user_id)
    await tx.execute(delete(row).where(mine))
    await tx.execute(
        update(FolderRow).where(FolderRow.creator_id == user_id).values(creator_id=None)
    )
