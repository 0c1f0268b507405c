"""What becomes of folders whose user or project is removed."""

from __future__ import annotations

from sqlalchemy import delete, or_, select, update

from backendai_hub.core.errors import HubError, InUseError
from backendai_hub.core.vfolders import FolderStatus, TaskKind
from backendai_hub.db import folder_tasks, folders, quota_scopes, uploads
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    InvitationRow,
    QuotaScopeRow,
)
from backendai_hub.operations.folder_checks import refuse_used
from backendai_hub.operations.folder_making import act_of, forget_folder
from backendai_hub.operations.platform import Platform


async def purge_folders_of_user(
    platform: Platform, tx: Transaction, user_id: str, *, heir: str
) -> None:
    """Remove a user's folders; those that others share go to *heir*, who may see to it.

    Raises :class:`InUseError` while a live session of somebody else has one of them.
    """
    owned = await folders.list_folders(tx.connection, FolderRow.user_id == user_id)
    shared = await _list_shared(tx, owned)
    for folder in owned:
        if folder.id in shared:
            await _hand_over(tx, folder, heir)
        else:
            await _remove(platform, tx, folder)
    await _forget_person(tx, user_id)
    await _forget_scopes(tx, user_id)


async def purge_folders_of_project(
    platform: Platform, tx: Transaction, project_id: str
) -> None:
    """Remove a project's folders, with what single members were given in them."""
    owned = await folders.list_folders(
        tx.connection, FolderRow.project_id == project_id
    )
    for folder in owned:
        await _remove(platform, tx, folder)
    await _forget_scopes(tx, project_id)


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


async def _hand_over(tx: Transaction, folder: FolderRecord, heir: str) -> None:
    """Make somebody else the owner; guests keep what they were given."""
    # A dot-folder would come into the heir's sessions unasked.
    name = folder.name.lstrip(".")
    if name != folder.name:
        name = f"{name[:40]} {folder.id[-12:]}"
    taken = await folders.find_named(tx.connection, name, FolderRow.owner_id == heir)
    if taken is not None:
        name = f"{name[:50]} {folder.id[-12:]}"
    await folders.drop_grant(tx, folder.id, heir)
    await folders.change_folder(tx, folder, user_id=heir, owner_id=heir, name=name)
    tx.audit(
        act_of(
            "folder:transfer",
            folder,
            before={"owner": folder.owner_name},
            after={"owner_id": heir, "name": name, "because": "its user was purged"},
        )
    )


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


async def _forget_scopes(tx: Transaction, owner_id: str) -> None:
    """Forget the owner's quota scopes in which nothing lies any more."""
    scopes = await quota_scopes.list_scopes(
        tx.connection, QuotaScopeRow.owner_id == owner_id
    )
    for scope in scopes:
        if not scope.folders:
            await quota_scopes.drop_scope(tx, scope.host, scope.scope)
