"""Giving folders to others, as superadmins do."""

from __future__ import annotations

import asyncio
from typing import Final

from backendai_hub.api.folders import TransferRequest
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import (
    ConflictError,
    InsufficientStorageError,
    InvalidRequestError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import Folder, Ownership, UsageMode
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.folder_checks import check_offered, check_updatable
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_moves import (
    NewOwner,
    begin_move,
    change_owner,
    check_name,
    move_folder,
)
from backendai_hub.operations.folder_work import work_on
from backendai_hub.operations.folders import find_seen, show
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform

PATIENCE: Final = 10.0
"""How long whoever gives a folder away waits for it to have moved."""


async def transfer_folder(
    platform: Platform, principal: Principal, reference: str, body: TransferRequest
) -> Folder:
    """Give a folder to another user, or to a project; its data moves along.

    Refused while a live session has it, or something is written into it, and if there
    is no room in the new owner's quota scope.
    """
    if (body.user is None) == (body.project is None):
        raise InvalidRequestError("name either a user or a project as the new owner")
    async with platform.database.transaction() as tx:
        await tx.alone()
        folder = await find_seen(tx.connection, principal, reference)
        check_updatable(folder)
        owner = await _find_owner(tx, principal, body, folder)
        if owner.kind != folder.ownership_type:
            check_offered(platform, Ownership(owner.kind))
        await check_name(tx, folder, owner)
        tx.audit(
            act_of(
                Action.TRANSFER_FOLDER,
                folder,
                before={"owner": folder.owner_name},
                after={"owner": owner.name, "revision": folder.revision + 1},
            )
        )
        task_id = None
        if folder.is_managed:
            try:
                task_id = await begin_move(platform, tx, folder, owner, who=principal)
            except InsufficientStorageError as error:
                raise InsufficientStorageError(
                    f"{error.message}; raise the limit of {owner.name}, or share the"
                    " folder and let them copy what they need",
                    **error.fields,
                ) from None
        else:
            await change_owner(tx, folder, owner, actor=principal.name)
    if task_id is not None:
        await _wait_a_while(platform, task_id)
    return await show(platform, principal, folder.id)


async def _find_owner(
    tx: Transaction, principal: Principal, body: TransferRequest, folder: FolderRecord
) -> NewOwner:
    kind = Ownership.USER if body.project is None else Ownership.PROJECT
    reference = body.user if body.project is None else body.project
    assert reference is not None
    noun = noun_of("user" if kind is Ownership.USER else "project")
    found = await find_visible(tx.connection, principal, noun, reference)
    if found["id"] == folder.owner_id:
        raise ConflictError(
            f"the folder {folder.name!r} belongs to {found['name']} already"
        )
    if kind is Ownership.PROJECT and (
        found["type"] == ProjectType.MODEL_STORE
        and folder.usage_mode != UsageMode.MODEL
    ):
        raise InvalidRequestError(
            "project: a model store holds folders of the usage mode 'model' only"
        )
    return NewOwner(
        kind=str(kind),
        id=found["id"],
        name=found["name"],
        domain_id=found["domain_id"],
    )


async def _wait_a_while(platform: Platform, task_id: str) -> None:
    """Wait for a folder to have moved, and raise why it has not; not for ever."""
    moving = asyncio.create_task(work_on(platform, task_id, move_folder))
    done, _ = await asyncio.wait({moving}, timeout=PATIENCE)
    if done:
        await moving
    else:
        moving.add_done_callback(lambda task: task.cancelled() or task.exception())
