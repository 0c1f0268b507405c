"""What takes a while with files: copying them, and unpacking archives.

The room it may need is kept when it begins, in the very transaction that writes the
task down, and given back, or turned into use, with the task's end. Done again after a
crash, it is done once: the storage host knows what it has made for a task, until the
task has ended.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from backendai_hub.api.files import CopyRequest, ExtractRequest, TaskAnswer
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import ConflictError, HubError, InvalidRequestError
from backendai_hub.core.events import EventKind
from backendai_hub.core.vfolders import TaskKind, TaskState
from backendai_hub.db import folder_tasks, quota_scopes
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.files import (
    NOTHING,
    Change,
    change_of,
    find_entry,
    stat_entry,
)
from backendai_hub.operations.folder_access import (
    OpenFolder,
    place_for,
    recheck_access,
)
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_work import (
    LONG,
    ProgressNotes,
    end_well,
    is_passing,
    read_folder,
    tell,
    tell_beginner,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.entries import Kind
from backendai_hub.safefs.members import Limits
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.ops import (
    CopyEntry,
    ExtractArchive,
    ForgetTask,
    Placed,
    ScanUsage,
)


async def begin_copy(
    platform: Platform, opened: OpenFolder, who: Principal, body: CopyRequest
) -> TaskAnswer:
    """Begin to copy an entry; raises :class:`InsufficientStorageError` at once."""
    if body.conflict == "fail":
        await _refuse_taken(platform, opened, body.target)
    counted = await platform.storage.call(
        opened.host, ScanUsage(place=opened.place, path=body.path), deadline=LONG
    )
    arguments = {
        "path": body.path,
        "target": body.target,
        "conflict": body.conflict,
        "reserved": counted.bytes,
        "reserved_files": counted.files,
    }
    return await _begin(platform, opened, who, TaskKind.COPY, arguments)


async def _refuse_taken(platform: Platform, opened: OpenFolder, target: str) -> None:
    if await find_entry(platform, opened, target) is not None:
        raise ConflictError(
            f"{target!r} exists already; choose another name, or 'replace' or 'rename'"
            " as 'conflict'"
        )


async def begin_extracting(
    platform: Platform, opened: OpenFolder, who: Principal, body: ExtractRequest
) -> TaskAnswer:
    """Begin to unpack an archive, for which room is kept as far as there is any.

    How much it becomes is known when it is unpacked: so much as its size allows by
    the limits of archives is kept for it until then.
    """
    entry = await stat_entry(platform, opened, body.path)
    if entry.kind is not Kind.FILE:
        raise InvalidRequestError(f"path: {body.path!r} is a {entry.kind}")
    limits = Limits()
    most = entry.size * limits.ratio + limits.ratio_from
    if body.most_bytes is not None:
        most = min(most, body.most_bytes)
    if body.most_members < 1 or most < 0:
        raise InvalidRequestError("most_members and most_bytes: they are not negative")
    most_members = min(body.most_members, limits.members)
    room = await _room_for(
        platform, opened.folder, quota_scopes.Room(most, most_members)
    )
    arguments = {
        "path": body.path,
        "target": body.target,
        "conflict": body.conflict,
        "members": room.files or most_members,
        "skip_links": body.skip_links,
        "most": most,
        "reserved": room.bytes,
        "reserved_files": room.files,
    }
    return await _begin(platform, opened, who, TaskKind.EXTRACT, arguments)


async def _room_for(
    platform: Platform, folder: FolderRecord, most: quota_scopes.Room
) -> quota_scopes.Room:
    """Return how much of *most* there is room for, at least one of each.

    Nothing is kept of files where their number has no limit.
    """
    async with platform.database.read() as connection:
        size, count = await quota_scopes.find_rooms(connection, folder)
    return quota_scopes.Room(
        max(1, most.bytes if size is None else min(most.bytes, size)),
        0 if count is None else max(1, min(most.files, count)),
    )


def room_of(task: TaskRecord) -> quota_scopes.Room:
    """Return the room that is kept for a task."""
    given = task.arguments
    return quota_scopes.Room(given["reserved"], given.get("reserved_files", 0))


async def _begin(
    platform: Platform,
    opened: OpenFolder,
    who: Principal,
    kind: TaskKind,
    arguments: dict[str, Any],
) -> TaskAnswer:
    task_id = platform.new_id()
    action = Action.COPY_FILE if kind is TaskKind.COPY else Action.EXTRACT_FILE
    async with platform.database.transaction() as tx:
        await quota_scopes.reserve(
            tx,
            opened.folder,
            arguments["reserved"],
            files=arguments["reserved_files"],
            insider=opened.is_insider,
        )
        await folder_tasks.insert_task(
            tx, task_id, kind, opened.folder.id, who=who, arguments=arguments
        )
        said = {name: arguments[name] for name in ("path", "target", "conflict")}
        tx.audit(act_of(action, opened.folder, after=said))
        task = await folder_tasks.find_task(tx.connection, task_id)
        assert task is not None
    return TaskAnswer(task=task.show())


async def copy_entry(platform: Platform, task: TaskRecord) -> None:
    """Copy an entry; what an attempt before a crash has copied is not copied again."""
    await _work(platform, task, _copy)


async def extract_archive(platform: Platform, task: TaskRecord) -> None:
    """Unpack an archive."""
    await _work(platform, task, _extract)


async def _copy(
    platform: Platform, task: TaskRecord, folder: FolderRecord, notes: ProgressNotes
) -> Placed:
    given = task.arguments
    return await platform.storage.call(
        folder.host,
        CopyEntry(
            place=place_for(folder, task.user_id),
            path=given["path"],
            target=given["target"],
            conflict=Conflict(given["conflict"]),
            most_bytes=given["reserved"],
            task_id=task.id,
        ),
        deadline=LONG,
        on_progress=notes,
    )


async def _extract(
    platform: Platform, task: TaskRecord, folder: FolderRecord, notes: ProgressNotes
) -> Placed:
    given = task.arguments
    # An archive that is too large says so; for another there may be no room.
    most = given["reserved"] if given["reserved"] < given["most"] else None
    return await platform.storage.call(
        folder.host,
        ExtractArchive(
            place=place_for(folder, task.user_id),
            path=given["path"],
            target=given["target"],
            conflict=Conflict(given["conflict"]),
            limits=Limits(
                members=given["members"],
                bytes=given["most"],
                skip_links=given["skip_links"],
            ),
            most_bytes=most,
            task_id=task.id,
        ),
        deadline=LONG,
        on_progress=notes,
    )


async def _work(platform: Platform, task: TaskRecord, verb: Any) -> None:
    folder = await read_folder(platform, task.folder_id)
    notes = ProgressNotes(platform, task, folder)
    try:
        async with platform.database.read() as connection:
            await recheck_access(connection, task.user_id, folder)
        placed: Placed = await verb(platform, task, folder, notes)
    except HubError as error:
        if not is_passing(error):
            await _fail(platform, task, folder, error.message)
            await _forget(platform, task, folder)
        raise
    finally:
        await notes.close()
    if placed.refused:
        came = f"{placed.refused}; of all entries {placed.files} have come before"
        await _fail(platform, task, folder, came, change_of(placed))
    else:
        await _end(platform, task, folder, placed)
    await _forget(platform, task, folder)


async def _forget(platform: Platform, task: TaskRecord, folder: FolderRecord) -> None:
    """Let the host forget the task. What stays is found, and removed after a while."""
    operation = ForgetTask(place=place_for(folder, task.user_id), task_id=task.id)
    with suppress(HubError):
        await platform.storage.call(folder.host, operation)


async def _end(
    platform: Platform, task: TaskRecord, folder: FolderRecord, placed: Placed
) -> None:
    change = change_of(placed)
    async with platform.database.transaction() as tx:
        if not await end_well(tx, task, done=placed.bytes, unit="bytes"):
            return  # cancelled at the last moment: the next count finds what it made
        await quota_scopes.settle(
            tx,
            folder,
            reserved=room_of(task),
            used=change.used,
            files=change.files,
        )
        text = (
            f"{placed.path} in {folder.name} is"
            f" {'a copy' if task.kind is TaskKind.COPY else 'unpacked'} of"
            f" {task.arguments['path']}"
        )
        kind = EventKind.FOLDER_CHANGED
        tell(tx, kind, folder, text, actor=task.actor)
        await tell_beginner(tx, kind, folder, task, text, actor=task.actor)


async def _fail(
    platform: Platform,
    task: TaskRecord,
    folder: FolderRecord,
    error: str,
    came: Change = NOTHING,
) -> None:
    """End a task that was refused, and count what came before it was."""
    async with platform.database.transaction() as tx:
        ended = await folder_tasks.end_task(tx, task.id, TaskState.FAILED, error=error)
        if ended:
            await quota_scopes.settle(
                tx, folder, reserved=room_of(task), used=came.used, files=came.files
            )
            text = f"{task.kind} in {folder.name}: {error}"
            kind = EventKind.FOLDER_FAILED
            tell(tx, kind, folder, text, actor=task.actor)
            await tell_beginner(tx, kind, folder, task, text, actor=task.actor)
