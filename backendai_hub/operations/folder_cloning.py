"""Copying whole folders, on one host or between those of one machine."""

from __future__ import annotations

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.folders import CloneAnswer, CloneRequest
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import (
    UPDATABLE,
    FolderPermission,
    FolderStatus,
    Ownership,
    TaskKind,
    UsageMode,
    check_name_of_project,
    check_permitted,
    check_stays_shared_out,
    is_shared_out,
    read_folder_name,
    scope_name,
)
from backendai_hub.db import folder_tasks, folders, quota_scopes
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.folder_access import (
    find_access,
    load_permissions,
    place_of,
    recheck_access,
    recheck_host,
)
from backendai_hub.operations.folder_checks import (
    check_active,
    check_may_make,
    check_offered,
    choose_host,
    refuse_taken,
    refuse_too_many,
)
from backendai_hub.operations.folder_making import (
    act_of,
    prepare_scope,
    undo_creation,
)
from backendai_hub.operations.folder_work import (
    LONG,
    ProgressNotes,
    end_well,
    read_folder,
    tell,
)
from backendai_hub.operations.folders import find_seen, show
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import CloneFolder, ScanUsage


async def clone_folder(
    platform: Platform, principal: Principal, reference: str, body: CloneRequest
) -> CloneAnswer:
    """Begin to copy a folder into a new one, of one's own or of a project."""
    name = read_folder_name("name", body.name)
    async with platform.database.transaction() as tx:
        await tx.alone()
        source = await find_seen(tx.connection, principal, reference)
        await _check_source(tx, principal, source)
        permissions = await load_permissions(tx.connection, principal, None)
        host = choose_host(platform, body.host or source.host, permissions)
        values = await _plan(tx, principal, source, body, name)
        values = {**values, "host": host}
        check_permitted(permissions, values["host"], HostPermission.CREATE)
        kind = Ownership(values["ownership_type"])
        check_offered(platform, kind)
        await refuse_too_many(tx, values["owner_id"], kind)
        await refuse_taken(tx, principal.id, values["owner_id"], name)
        folder_id, task_id = platform.new_id(), platform.new_id()
        status = str(FolderStatus.CLONING)
        await folders.insert_folder(
            tx, {**values, "id": folder_id, "name": name, "status": status}
        )
        target = await folders.find_folder(tx.connection, folder_id)
        if target is None:
            raise ConflictError(f"there is a folder {name!r} already")
        await quota_scopes.ensure_scope(tx, target.host, target.scope)
        await folder_tasks.insert_task(
            tx,
            task_id,
            TaskKind.CLONE,
            folder_id,
            who=principal,
            arguments={"source": source.id},
        )
        tx.audit(
            act_of(
                Action.CLONE_FOLDER,
                target,
                after={"source": source.name, "source_id": source.id},
            )
        )
        task = await folder_tasks.find_task(tx.connection, task_id)
        assert task is not None
    return CloneAnswer(
        folder=await show(platform, principal, folder_id), task=task.show()
    )


async def _check_source(
    tx: Transaction, principal: Principal, source: FolderRecord
) -> None:
    if await find_access(tx.connection, principal, source) is None:
        raise ForbiddenError(
            f"the folder {source.name!r} is {source.owner_name}'s, and you may not"
            " look into it"
        )
    if source.status not in UPDATABLE:
        raise ConflictError(
            f"the folder {source.name!r} is {source.status}; only what is ready is"
            " copied"
        )
    if is_shared_out(source.ownership_type, source.name):
        raise ForbiddenError(
            f"the folder {source.name!r} holds everybody's own part; it is not copied"
        )
    if not source.cloneable:
        raise ForbiddenError(
            f"the folder {source.name!r} is not cloneable; its owner can make it so"
        )


async def _plan(
    tx: Transaction,
    principal: Principal,
    source: FolderRecord,
    body: CloneRequest,
    name: str,
) -> dict[str, Any]:
    """Return the columns of the copy, but for its name, id, host and status."""
    usage = body.usage_mode or source.usage_mode
    if usage not in set(UsageMode):
        raise InvalidRequestError(
            f"usage_mode: {usage[:32]!r} is not one of {', '.join(UsageMode)}"
        )
    kind, owner_id, domain_id = Ownership.USER, principal.id, principal.domain_id
    permission = body.permission or FolderPermission.READ_WRITE
    if body.project is not None:
        noun = noun_of("project")
        project = await find_visible(tx.connection, principal, noun, body.project)
        check_name_of_project(name)
        check_stays_shared_out(Ownership.PROJECT, "", name)
        check_active(project)
        if project["type"] == ProjectType.MODEL_STORE:
            if usage != UsageMode.MODEL:
                raise InvalidRequestError(
                    "usage_mode: a model store holds folders of the usage mode 'model'"
                    " only"
                )
            permission = FolderPermission.READ_ONLY
        check_may_make(principal, project, usage)
        kind, owner_id = Ownership.PROJECT, project["id"]
        domain_id = project["domain_id"]
    return {
        "scope": scope_name(kind, owner_id),
        "domain_id": domain_id,
        "ownership_type": str(kind),
        "owner_id": owner_id,
        "user_id": owner_id if kind is Ownership.USER else None,
        "project_id": owner_id if kind is Ownership.PROJECT else None,
        "creator": principal.name,
        "creator_id": principal.id,
        "usage_mode": str(usage),
        "permission": str(permission),
        "cloneable": body.cloneable,
    }


async def copy_folder(platform: Platform, task: TaskRecord) -> None:
    """Copy what the source holds; if that cannot be, there is no copy at all."""
    target = await read_folder(platform, task.folder_id)
    notes = ProgressNotes(platform, task, target)
    try:
        await _copy(platform, task, target, notes)
    except HubError as error:
        await notes.close()
        await undo_creation(platform, task, target, error)
        raise
    finally:
        await notes.close()


async def recheck_clone(
    connection: AsyncConnection, task: TaskRecord, source: FolderRecord
) -> None:
    """Refuse a copy that was permitted when it was asked for, and is not any more."""
    await recheck_access(connection, task.user_id, source, write=False)
    if not source.cloneable:
        raise ForbiddenError(f"the folder {source.name!r} is not cloneable any more")
    target = await folders.find_folder(connection, task.folder_id)
    if target is not None and task.user_id is not None:
        await recheck_host(connection, task.user_id, target.host, HostPermission.CREATE)


async def _copy(
    platform: Platform, task: TaskRecord, target: FolderRecord, notes: ProgressNotes
) -> None:
    source = await read_folder(platform, task.arguments["source"])
    async with platform.database.read() as connection:
        await recheck_clone(connection, task, source)
    await prepare_scope(platform, target)
    counted = await platform.storage.call(
        source.host,
        ScanUsage(place=place_of(source)),
        deadline=LONG,
    )
    await _reserve(platform, target, counted.bytes, counted.files)
    done = await platform.storage.call(
        target.host,
        CloneFolder(
            source=place_of(source),
            target=place_of(target),
            source_host="" if source.host == target.host else source.host,
            # What comes into the source meanwhile has no room that was kept for it.
            most_bytes=counted.bytes,
        ),
        deadline=LONG,
        on_progress=notes,
    )
    async with platform.database.transaction() as tx:
        now = await folders.find_folder(tx.connection, target.id, lock=True)
        if now is None or now.status is not FolderStatus.CLONING:
            return
        await quota_scopes.settle(
            tx,
            now,
            reserved=quota_scopes.Room(now.reserved_bytes, now.reserved_files),
            used=done.bytes or counted.bytes,
            files=counted.files,
        )
        now = await folders.find_folder(tx.connection, target.id)
        assert now is not None
        await folders.change_status(tx, now, FolderStatus.READY)
        await end_well(tx, task, done=done.count, unit="entries")
        tell(
            tx,
            EventKind.FOLDER_CLONED,
            now,
            f"folder {now.name} is a copy of {source.name} now",
            actor=task.actor,
            status=str(FolderStatus.READY),
        )


async def _reserve(
    platform: Platform, target: FolderRecord, amount: int, files: int
) -> None:
    """Keep room for the copy, unless an attempt before a crash has done so."""
    async with platform.database.transaction() as tx:
        now = await folders.find_folder(tx.connection, target.id, lock=True)
        if now is not None:
            await quota_scopes.reserve(
                tx,
                now,
                amount - now.reserved_bytes,
                files=files - now.reserved_files,
            )
