"""Making folders on their hosts, and removing them: intent, disk, end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import delete

from backendai_hub.core.audit import Act, Result
from backendai_hub.core.errors import HubError, UnavailableError
from backendai_hub.core.events import EventKind
from backendai_hub.core.vfolders import FolderStatus, TaskKind, TaskState
from backendai_hub.db import folder_tasks, folders, invitations, quota_scopes, uploads
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.tables import FolderRow, UploadRow
from backendai_hub.operations.folder_access import place_of
from backendai_hub.operations.folder_work import (
    LONG,
    ProgressNotes,
    end_well,
    is_passing,
    read_folder,
    tell,
    work_on,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import (
    AbandonUpload,
    MakeFolder,
    MakeScope,
    Place,
    RemoveFolder,
)

log = logging.getLogger("backendai_hub.folders")


async def finish_creation(platform: Platform, folder_id: str) -> None:
    """Make a new folder on its host; raises why that could not be done.

    Then there is no folder: what may be left of it on the host is removed later.
    """
    async with platform.database.read() as connection:
        tasks = await folder_tasks.list_open(
            connection, folder_ids=[folder_id], kinds=[TaskKind.CREATE]
        )
    for task in tasks:
        await work_on(platform, task.id, make_folder)


async def make_folder(platform: Platform, task: TaskRecord) -> None:
    """Make a folder on its host, and let it be used."""
    folder = await read_folder(platform, task.folder_id)
    if folder.status is not FolderStatus.PERFORMING:
        async with platform.database.transaction() as tx:
            await end_well(tx, task)
        return
    try:
        await prepare_scope(platform, folder)
        await platform.storage.call(folder.host, MakeFolder(place=place_of(folder)))
    except HubError as error:
        await undo_creation(platform, task, folder, error)
        raise
    async with platform.database.transaction() as tx:
        if await folders.change_status(tx, folder, FolderStatus.READY):
            tell(
                tx,
                EventKind.FOLDER_CREATED,
                folder,
                f"folder {folder.name} has been made",
                actor=folder.creator,
                status=str(FolderStatus.READY),
            )
        await end_well(tx, task)


async def prepare_scope(platform: Platform, folder: FolderRecord) -> None:
    """Make a folder's quota scope on its host, with the limits that it has now."""
    async with platform.database.transaction() as tx:
        scope = await quota_scopes.ensure_scope(tx, folder.host, folder.scope)
    await platform.storage.call(
        folder.host,
        MakeScope(
            scope=folder.scope,
            limit_bytes=scope.most_bytes,
            limit_files=scope.most_files,
        ),
    )
    async with platform.database.transaction() as tx:
        await quota_scopes.change_scope(
            tx,
            folder.host,
            folder.scope,
            applied_bytes=scope.most_bytes,
            applied_files=scope.most_files,
            applied_at=tx.now,
        )


_HALF_MADE: Final = frozenset({FolderStatus.PERFORMING, FolderStatus.CLONING})


async def undo_creation(
    platform: Platform, task: TaskRecord, folder: FolderRecord, error: HubError
) -> None:
    """Forget a folder that could not be made; its remains are removed when they can."""
    async with platform.database.transaction() as tx:
        await give_up(platform, tx, task, folder, error.message)
        tx.audit(
            act_of(
                f"folder:{task.kind}",
                folder,
                result=Result.FAILED,
                code=error.code,
                message=error.message,
            )
        )


async def give_up(
    platform: Platform,
    tx: Transaction,
    task: TaskRecord,
    folder: FolderRecord,
    message: str,
    state: TaskState = TaskState.FAILED,
) -> None:
    """Forget a folder that is not there yet, and have its remains removed."""
    now = await folders.find_folder(tx.connection, folder.id, lock=True)
    await folder_tasks.end_task(tx, task.id, state, error=message)
    if now is not None and now.status not in _HALF_MADE:
        return  # it was made after all, and is somebody's: nothing of it is undone
    if now is not None:
        kept = quota_scopes.Room(now.reserved_bytes, now.reserved_files)
        await quota_scopes.give_back(tx, now, kept)
    await forget_folder(tx, folder.id)
    await folder_tasks.insert_task(
        tx,
        platform.new_id(),
        TaskKind.REMOVE,
        folder.id,
        arguments={"host": folder.host, "scope": folder.scope, "remains": True},
    )
    tell(
        tx,
        EventKind.FOLDER_FAILED,
        folder,
        f"folder {folder.name} could not be made: {message}",
    )


async def forget_folder(tx: Transaction, folder_id: str) -> None:
    """Remove a folder's row with everything that refers to it."""
    await invitations.forget_folder(tx, folder_id)
    await tx.execute(delete(UploadRow).where(UploadRow.folder_id == folder_id))
    await tx.execute(delete(FolderRow).where(FolderRow.id == folder_id))


async def remove_folder(platform: Platform, task: TaskRecord) -> None:
    """Remove a folder from its host for good, and then what is known of it.

    While the host does not answer, it stays to be done.
    """
    if task.arguments.get("remains"):
        await _remove_remains(platform, task)
        return
    folder = await read_folder(platform, task.folder_id)
    count = 0
    if folder.is_managed:
        notes = ProgressNotes(platform, task, folder)
        try:
            done = await platform.storage.call(
                folder.host,
                RemoveFolder(place=place_of(folder)),
                deadline=LONG,
                on_progress=notes,
            )
            count = done.count
        except HubError as error:
            if is_passing(error):
                raise
            await _fail_removal(platform, task, folder, error)
            raise
        finally:
            await notes.close()
    # Not before the folder is gone: whoever begins an upload looks for it afterwards.
    async with platform.database.read() as connection:
        begun = await uploads.list_ids(connection, folder.id)
    await _abandon_uploads(platform, folder.host, place_of(folder), begun)
    async with platform.database.transaction() as tx:
        now = await folders.find_folder(tx.connection, folder.id, lock=True)
        if now is not None and now.status is FolderStatus.DELETE_ONGOING:
            await _complete_removal(tx, now)
        await end_well(tx, task, done=count, unit="entries")


async def _abandon_uploads(
    platform: Platform, host: str, place: Place, upload_ids: Iterable[str]
) -> None:
    """Remove what has arrived of uploads: it lies beside the folder, not in it."""
    for upload_id in upload_ids:
        try:
            await platform.storage.call(
                host, AbandonUpload(place=place, upload_id=upload_id)
            )
        except HubError as error:
            if is_passing(error):
                raise
            log.warning("upload %s is left on %s: %s", upload_id, host, error.message)


async def _complete_removal(tx: Transaction, folder: FolderRecord) -> None:
    await quota_scopes.settle(
        tx,
        folder,
        reserved=quota_scopes.Room(folder.reserved_bytes, folder.reserved_files),
        used=-folder.used_bytes,
        files=-folder.used_files,
    )
    await invitations.forget_folder(tx, folder.id)
    await tx.execute(delete(UploadRow).where(UploadRow.folder_id == folder.id))
    await folders.change_status(
        tx, folder, FolderStatus.DELETE_COMPLETE, unmanaged_path=folder.unmanaged_path
    )
    tell(
        tx,
        EventKind.FOLDER_REMOVED,
        folder,
        f"folder {folder.name} has been removed for good",
        status=str(FolderStatus.DELETE_COMPLETE),
    )
    tx.audit(act_of("folder:remove", folder, actor="system"))


async def _fail_removal(
    platform: Platform, task: TaskRecord, folder: FolderRecord, error: HubError
) -> None:
    async with platform.database.transaction() as tx:
        await folders.change_status(
            tx, folder, FolderStatus.DELETE_ERROR, reason=error.message
        )
        await folder_tasks.end_task(tx, task.id, TaskState.FAILED, error=error.message)
        tell(
            tx,
            EventKind.FOLDER_FAILED,
            folder,
            f"folder {folder.name} could not be removed: {error.message}",
            status=str(FolderStatus.DELETE_ERROR),
        )


async def _remove_remains(platform: Platform, task: TaskRecord) -> None:
    """Remove what an attempt to make a folder may have left."""
    place = Place(scope=task.arguments["scope"], folder_id=task.folder_id)
    host, begun = task.arguments["host"], task.arguments.get("uploads", [])
    try:
        await platform.storage.call(host, RemoveFolder(place=place), deadline=LONG)
        await _abandon_uploads(platform, host, place, begun)
    except UnavailableError:
        raise
    except HubError as error:
        async with platform.database.transaction() as tx:
            await folder_tasks.end_task(
                tx, task.id, TaskState.FAILED, error=error.message
            )
        return
    async with platform.database.transaction() as tx:
        await end_well(tx, task)


def act_of(action: str, folder: FolderRecord, **more: Any) -> Act:
    """Describe what somebody has done to a folder."""
    return Act(
        action=action,
        object_kind="folder",
        object_id=folder.id,
        object_name=folder.name,
        domain_id=folder.domain_id,
        owner_id=folder.user_id,
        **more,
    )
