"""Throwing folders away, taking them back, removing them for good, and the rest."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.folders import (
    ActivityPage,
    PurgeRequest,
    RestoreRequest,
)
from backendai_hub.core.access import Action, Principal, reach
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Verb
from backendai_hub.core.vfolders import (
    DELETABLE,
    NAMED,
    PURGABLE,
    RECOVERABLE,
    Folder,
    FolderStatus,
    TaskKind,
    check_name_of_project,
    check_stays_shared_out,
    is_automount,
    read_folder_name,
)
from backendai_hub.db import audit, folder_tasks, folders, nouns
from backendai_hub.db.audit import ActFilter
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.folder_access import (
    FOLDER,
    manages,
    owns,
    require_owner,
)
from backendai_hub.operations.folder_checks import (
    refuse_taken,
    refuse_taken_for_guests,
    refuse_used,
)
from backendai_hub.operations.folder_making import act_of, forget_folder
from backendai_hub.operations.folder_work import tell
from backendai_hub.operations.nouns import find_visible, read_noun
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE: Final = 200
_TRASHED: Final = frozenset(FolderStatus) - NAMED


async def find_seen(
    connection: AsyncConnection,
    principal: Principal,
    reference: str,
    *,
    trashed: bool = False,
    lock: bool = True,
) -> FolderRecord:
    """Find a folder the caller sees, to change it; by name, their own first.

    With ``trashed``, a name means what is in the trash before anything else.
    """
    extent = reach(principal, FOLDER.action(Verb.READ))
    sight = nouns.in_sight(FOLDER, principal, extent)
    rows = []
    if "\0" not in reference:
        rows = await nouns.find_items(connection, FOLDER, reference, sight=sight)
    if trashed:
        rows = [row for row in rows if row["status"] in _TRASHED] or rows
    item = nouns.choose_item(FOLDER, rows, reference, principal.id)
    found = None
    if item is not None:
        found = await folders.find_folder(connection, item["id"], lock=lock)
    if found is None:
        raise NotFoundError(f"there is no folder {reference[:64]!r}")
    return found


async def show(platform: Platform, principal: Principal, folder_id: str) -> Folder:
    """Return a folder as the API shows it to the caller."""
    shown: Folder = await read_noun(platform, principal, FOLDER, folder_id)
    return shown


# --- the trash -------------------------------------------------------------------


async def trash_folder(
    platform: Platform, principal: Principal, reference: str
) -> Folder:
    """Throw a folder away; it can be taken back until it is removed for good.

    Refused while live sessions have it, listing them.
    """
    async with platform.database.transaction() as tx:
        folder = await find_seen(tx.connection, principal, reference)
        await require_owner(
            tx.connection,
            principal,
            folder,
            Action.TRASH_FOLDER,
            HostPermission.DELETE,
        )
        if folder.status is FolderStatus.DELETE_PENDING:
            raise ConflictError(f"the folder {folder.name!r} is in the trash already")
        if folder.status not in DELETABLE:
            raise ConflictError(
                f"the folder {folder.name!r} is {folder.status}; only what is ready is"
                " thrown away"
            )
        await refuse_used(tx, folder)
        # By the database's clock, as is compared later: no other is to be trusted.
        thrown_at = await folder_tasks.read_time(tx.connection)
        await _move(tx, folder, FolderStatus.DELETE_PENDING, trashed_at=thrown_at)
        tx.audit(_act(Action.TRASH_FOLDER, folder, FolderStatus.DELETE_PENDING))
        tell(
            tx,
            EventKind.FOLDER_TRASHED,
            folder,
            f"folder {folder.name} was thrown into the trash",
            actor=principal.name,
            status=str(FolderStatus.DELETE_PENDING),
        )
        tx.wake("folders")
    return await show(platform, principal, folder.id)


async def restore_folder(
    platform: Platform, principal: Principal, reference: str, body: RestoreRequest
) -> Folder:
    """Take a folder out of the trash, with all that was in it."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        folder = await find_seen(tx.connection, principal, reference, trashed=True)
        await require_owner(
            tx.connection,
            principal,
            folder,
            Action.RESTORE_FOLDER,
            HostPermission.MODIFY,
        )
        if folder.status not in RECOVERABLE:
            raise ConflictError(
                f"the folder {folder.name!r} is {folder.status}, not in the trash"
            )
        name = folder.name
        if body.name is not None:
            name = read_folder_name("name", body.name)
            if folder.project_id is not None:
                check_name_of_project(name)
        check_stays_shared_out(folder.ownership_type, folder.name, name)
        if is_automount(name):
            await refuse_taken_for_guests(tx, folder, name)
        whose = folder.user_id or principal.id
        try:
            await refuse_taken(tx, whose, folder.owner_id, name, other_than=folder.id)
        except ConflictError as error:
            raise ConflictError(
                f"{error.message}: this folder takes it back by another one",
                **error.fields,
            ) from None
        await _move(tx, folder, FolderStatus.READY, trashed_at=None, **_rename(name))
        tx.audit(_act(Action.RESTORE_FOLDER, folder, FolderStatus.READY, name=name))
        tell(
            tx,
            EventKind.FOLDER_RESTORED,
            folder,
            f"folder {name} was taken out of the trash",
            actor=principal.name,
            status=str(FolderStatus.READY),
        )
    return await show(platform, principal, folder.id)


async def purge_folder(
    platform: Platform, principal: Principal, reference: str, body: PurgeRequest
) -> Folder | None:
    """Remove a folder for good, in the background; None: nothing of it is left.

    Its name has to be typed. Administrators may do it by ``force`` to what is not in
    the trash, or is in use.
    """
    async with platform.database.transaction() as tx:
        folder = await find_seen(tx.connection, principal, reference, trashed=True)
        await require_owner(
            tx.connection,
            principal,
            folder,
            Action.PURGE_FOLDER,
            HostPermission.DELETE,
        )
        check_typed(folder, body.name)
        if folder.status is FolderStatus.DELETE_COMPLETE:
            await forget_folder(tx, folder.id)
            tx.audit(act_of(Action.PURGE_FOLDER, folder, after={"forgotten": True}))
            return None
        forced = body.force and manages(principal, folder, Action.PURGE_FOLDER)
        if body.force and not forced:
            raise ForbiddenError("force: only administrators force this")
        await begin_removal(platform, tx, folder, principal, forced=forced)
    return await show(platform, principal, folder.id)


def check_typed(folder: FolderRecord, typed: str) -> None:
    """Refuse to remove for good what is not named in so many letters."""
    if typed != folder.name:
        raise InvalidRequestError(
            f"name: to remove the folder for good, type its name, {folder.name!r}"
        )


async def begin_removal(
    platform: Platform,
    tx: Transaction,
    folder: FolderRecord,
    principal: Principal | None,
    *,
    forced: bool = False,
) -> None:
    """Store that a folder is to be removed; raises what keeps it."""
    if folder.status is FolderStatus.DELETE_ONGOING:
        raise ConflictError(f"the folder {folder.name!r} is being removed already")
    if not forced:
        if folder.status not in PURGABLE:
            raise ConflictError(
                f"the folder {folder.name!r} is {folder.status}; throw it into the"
                " trash first"
            )
        await refuse_used(tx, folder)
    await _move(tx, folder, FolderStatus.DELETE_ONGOING)
    await folder_tasks.insert_task(
        tx, platform.new_id(), TaskKind.REMOVE, folder.id, who=principal
    )
    act = _act(Action.PURGE_FOLDER, folder, FolderStatus.DELETE_ONGOING)
    tx.audit(act if principal else act_of(act.action, folder, actor="system"))


async def _move(
    tx: Transaction, folder: FolderRecord, status: FolderStatus, **more: Any
) -> None:
    if not await folders.change_status(tx, folder, status, **more):
        raise ConflictError(
            f"the folder {folder.name!r} has just been changed by somebody; look again"
        )


def _rename(name: str) -> dict[str, str]:
    return {"name": name, "name_key": fold(name)}


def _act(action: str, folder: FolderRecord, status: FolderStatus, **more: Any) -> Any:
    return act_of(
        action,
        folder,
        before={"status": str(folder.status)},
        after={"status": str(status), "revision": folder.revision + 1, **more},
    )


# --- what was done to it ---------------------------------------------------------


async def read_activity(
    platform: Platform, principal: Principal, reference: str, query: Any
) -> ActivityPage:
    """List what was done to one folder, the newest first, for those who keep it.

    That are its owner, members of its project, and administrators.
    """
    limit, after = query.limit, query.after
    if not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {limit} is not between 1 and {MOST_PER_PAGE}"
        )
    if after is not None and not (after.isascii() and after.isdigit()):
        raise MalformedRequestError("after: not a cursor of this list")
    async with platform.database.read() as connection:
        item = await find_visible(connection, principal, FOLDER, reference)
        folder = await folders.find_folder(connection, item["id"])
        assert folder is not None
        keeps = (
            manages(principal, folder, FOLDER.action(Verb.READ))
            or owns(principal, folder)
            or folder.project_id in principal.holds
        )
        if not keeps:
            raise ForbiddenError(
                f"what was done to the folder {folder.name!r} is shown to its owner"
            )
        wanted = ActFilter(
            object=folder.id, after=None if after is None else int(after)
        )
        found = await audit.list_acts(connection, wanted, limit + 1)
    page = [_without_address(entry, principal) for entry in found[:limit]]
    more = len(found) > limit
    return ActivityPage(items=page, next=str(page[-1].seq) if more else None)


def _without_address(entry: Any, principal: Principal) -> Any:
    """Say what others did, not where they sat."""
    if entry.actor_id == principal.id:
        return entry
    return msgspec.structs.replace(entry, address="")
