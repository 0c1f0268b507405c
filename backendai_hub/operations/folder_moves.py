"""Moving folders into the quota scopes of their owners.

What somebody has counts in their scope. So a folder that is given away moves there,
which is a rename where the file system can, and a copy otherwise. Until it has moved
it is *performing*, and what cannot be moved stays as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import and_

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError, HubError
from backendai_hub.core.events import EventKind
from backendai_hub.core.vfolders import (
    FolderStatus,
    Ownership,
    TaskKind,
    TaskState,
    is_automount,
    scope_name,
)
from backendai_hub.db import (
    folder_grants,
    folder_tasks,
    folders,
    invitations,
    quota_scopes,
    uploads,
)
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.quota_scopes import Room
from backendai_hub.db.tables import FolderRow, InvitationRow
from backendai_hub.operations.folder_access import place_of
from backendai_hub.operations.folder_checks import refuse_taken, refuse_used
from backendai_hub.operations.folder_making import prepare_scope
from backendai_hub.operations.folder_work import (
    LONG,
    ProgressNotes,
    end_well,
    is_passing,
    read_folder,
    tell,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import MoveFolder

log = logging.getLogger("backendai_hub.folders")

TRIED_AGAIN: Final = timedelta(days=1)
"""What could not be moved home for good may have been mended after so long."""


class NewOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a folder is to be."""

    kind: str
    id: str
    name: str
    domain_id: str

    @property
    def scope(self) -> str:
        """The quota scope in which it counts then."""
        return scope_name(self.kind, self.id)

    @property
    def columns(self) -> dict[str, Any]:
        """What the folder's row says of it."""
        is_user = self.kind == Ownership.USER
        return {
            "ownership_type": self.kind,
            "owner_id": self.id,
            "user_id": self.id if is_user else None,
            "project_id": None if is_user else self.id,
            "domain_id": self.domain_id,
        }


async def check_name(tx: Transaction, folder: FolderRecord, owner: NewOwner) -> None:
    """Refuse a folder that comes unasked, or whose name its new owner has already."""
    if is_automount(folder.name):
        raise ConflictError(
            f"the folder {folder.name!r} begins with a dot: it would come into"
            " sessions of others unasked; rename it first"
        )
    await refuse_taken(tx, owner.id, owner.id, folder.name, other_than=folder.id)


async def begin_move(
    platform: Platform,
    tx: Transaction,
    folder: FolderRecord,
    owner: NewOwner,
    *,
    who: Principal | None,
) -> str:
    """Keep room where the folder is to be, and write down that it moves.

    Refused while a live session has it, or something is written into it, and if there
    is no room in the new owner's quota scope.
    """
    await refuse_used(tx, folder)
    begun = await uploads.count_open_in(tx.connection, folder.id)
    if begun:
        raise ConflictError(
            f"the folder {folder.name!r}: {begun} uploads into it are under way; wait"
            " for them, or end them"
        )
    kept = Room(folder.used_bytes, folder.used_files)
    there = msgspec.structs.replace(folder, scope=owner.scope)
    await quota_scopes.reserve_in_scope(tx, there, kept)
    if not await folders.change_status(tx, folder, FolderStatus.PERFORMING):
        raise ConflictError(
            f"the folder {folder.name!r} has just been changed by somebody; look again"
        )
    task_id = platform.new_id()
    arguments = {
        "owner": msgspec.to_builtins(owner),
        "bytes": kept.bytes,
        "files": kept.files,
    }
    await folder_tasks.insert_task(
        tx, task_id, TaskKind.MOVE, folder.id, who=who, arguments=arguments
    )
    return task_id


async def bring_home(platform: Platform, hosts: Collection[str]) -> int:
    """Begin to move what counts where its owner before kept it, if there is room now.

    Such are folders of purged users that others share: their heirs have them at once,
    though they may have no room for them yet. What failed for good is tried again the
    next day. Returns how many began to move.
    """
    row = FolderRow
    away = and_(
        row.host.in_(sorted(hosts)),
        row.unmanaged_path == "",
        row.status == str(FolderStatus.READY),
        row.scope != row.ownership_type + "-" + row.owner_id,
    )
    async with platform.database.read() as connection:
        found = await folders.list_folders(connection, away)
        failed = await folder_tasks.find_last_failures(
            connection, TaskKind.MOVE, [one.id for one in found]
        )
    until = platform.database.clock() - TRIED_AGAIN
    begun = 0
    for folder in found:
        last = failed.get(folder.id)
        if last is None or last.ended_at is None or last.ended_at < until:
            begun += await _begin_to_bring_home(platform, folder)
    return begun


async def _begin_to_bring_home(platform: Platform, folder: FolderRecord) -> bool:
    """Begin to move one of them. Whatever is wrong with it, the others are moved."""
    owner = NewOwner(
        kind=folder.ownership_type,
        id=folder.owner_id,
        name=folder.owner_name,
        domain_id=folder.domain_id,
    )
    try:
        async with platform.database.transaction() as tx:
            await begin_move(platform, tx, folder, owner, who=None)
    except HubError as error:
        log.info("folder %s stays in %s: %s", folder.id, folder.scope, error.message)
        return False
    except Exception:
        log.exception("folder %s stays in %s", folder.id, folder.scope)
        return False
    return True


async def move_folder(platform: Platform, task: TaskRecord) -> None:
    """Move a folder into its new owner's scope; if that cannot be, all stays."""
    folder = await read_folder(platform, task.folder_id)
    owner = msgspec.convert(task.arguments["owner"], NewOwner)
    if folder.status is not FolderStatus.PERFORMING:
        async with platform.database.transaction() as tx:
            await end_well(tx, task)
        return
    there = msgspec.structs.replace(folder, scope=owner.scope)
    notes = ProgressNotes(platform, task, folder)
    try:
        await prepare_scope(platform, there)
        await platform.storage.call(
            folder.host,
            MoveFolder(source=place_of(folder), target=place_of(there)),
            deadline=LONG,
            on_progress=notes,
        )
        await _complete(platform, task, there, owner)
    except HubError as error:
        if not is_passing(error):
            await _undo(platform, task, folder, owner, error)
        raise
    finally:
        await notes.close()


async def _complete(
    platform: Platform, task: TaskRecord, there: FolderRecord, owner: NewOwner
) -> None:
    async with platform.database.transaction() as tx:
        await tx.alone()
        now = await folders.find_folder(tx.connection, there.id, lock=True)
        if now is None or now.status is not FolderStatus.PERFORMING:
            return
        if now.owner_id != owner.id:
            # Somebody may have made another of this name meanwhile.
            await check_name(tx, now, owner)
        await folders.change_status(tx, now, FolderStatus.READY, scope=owner.scope)
        moved = await folders.find_folder(tx.connection, there.id)
        assert moved is not None
        if now.owner_id != owner.id:
            await change_owner(tx, moved, owner, actor=task.actor)
        size = Room(now.used_bytes, now.used_files)
        kept = Room(task.arguments["bytes"], task.arguments["files"])
        await quota_scopes.settle_in_scope(tx, now, kept=Room(), used=size, sign=-1)
        await quota_scopes.settle_in_scope(tx, there, kept=kept, used=size)
        await end_well(tx, task)


async def change_owner(
    tx: Transaction, folder: FolderRecord, owner: NewOwner, *, actor: str
) -> None:
    """Make somebody the owner; guests of another user in the same domain stay."""
    if owner.kind != Ownership.USER or owner.domain_id != folder.domain_id:
        await invitations.forget_folder(tx, folder.id)
    await folder_grants.drop_grant(tx, folder.id, owner.id)
    await invitations.cancel_all(tx, InvitationRow.folder_id == folder.id)
    await folders.change_folder(tx, folder, **owner.columns)
    text = f"folder {folder.name} belongs to the {owner.kind} {owner.name} now"
    for whose in (folder, msgspec.structs.replace(folder, owner_id=owner.id)):
        tell(tx, EventKind.FOLDER_TRANSFERRED, whose, text, actor=actor)


async def _undo(
    platform: Platform,
    task: TaskRecord,
    folder: FolderRecord,
    owner: NewOwner,
    error: HubError,
) -> None:
    """Bring back what has moved, and let the folder be what it was."""
    there = msgspec.structs.replace(folder, scope=owner.scope)
    try:
        await platform.storage.call(
            folder.host,
            MoveFolder(source=place_of(there), target=place_of(folder)),
            deadline=LONG,
        )
    except HubError as trouble:
        if is_passing(trouble):
            raise
        log.warning("folder %s cannot be moved back: %s", folder.id, trouble.message)
    kept = Room(task.arguments["bytes"], task.arguments["files"])
    async with platform.database.transaction() as tx:
        is_news = task.user_id is not None or not await _has_failed_so(tx, task, error)
        if not await folder_tasks.end_task(
            tx, task.id, TaskState.FAILED, error=error.message
        ):
            return
        await quota_scopes.settle_in_scope(tx, there, kept=kept, used=Room())
        now = await folders.find_folder(tx.connection, folder.id, lock=True)
        if now is not None and now.status is FolderStatus.PERFORMING:
            await folders.change_status(
                tx, now, FolderStatus.READY, reason=error.message
            )
        if is_news:
            text = (
                f"folder {folder.name} could not be given to {owner.name}:"
                f" {error.message}"
            )
            tell(tx, EventKind.FOLDER_FAILED, folder, text, actor=task.actor)


async def _has_failed_so(tx: Transaction, task: TaskRecord, error: HubError) -> bool:
    """Tell whether the platform has tried the same before, with the same end."""
    failed = await folder_tasks.find_last_failures(
        tx.connection, task.kind, [task.folder_id]
    )
    last = failed.get(task.folder_id)
    return (
        last is not None
        and last.arguments["owner"]["id"] == task.arguments["owner"]["id"]
        and last.error == error.message[:2000]
    )
