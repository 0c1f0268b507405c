"""What takes a while with files: copying them, and unpacking archives.

The room it may need is kept when it begins, in the very transaction that writes the
task down, and given back, or turned into use, with the task's end. Done again after a
crash, it is done once, or its target is found to be there.
"""

from __future__ import annotations

from typing import Any

from backendai_hub.api.files import CopyRequest, ExtractRequest, TaskAnswer
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import ConflictError, HubError, InvalidRequestError
from backendai_hub.core.events import EventKind
from backendai_hub.core.vfolders import TaskKind, TaskState
from backendai_hub.db import folder_tasks, quota_scopes
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.files import find_entry, size_replaced, stat_entry
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
)
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.entries import Kind
from backendai_hub.safefs.members import Limits
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.ops import (
    CopyEntry,
    ExtractArchive,
    Placed,
    ScanUsage,
    StatEntry,
)


async def begin_copy(
    platform: Platform, opened: OpenFolder, who: Principal, body: CopyRequest
) -> TaskAnswer:
    """Begin to copy an entry; raises :class:`InsufficientStorageError` at once."""
    if body.conflict == "fail":
        await _refuse_taken(platform, opened, body.target)
    replaced = await size_replaced(platform, opened, body.target, body.conflict)
    counted = await platform.storage.call(
        opened.host, ScanUsage(place=opened.place, path=body.path), deadline=LONG
    )
    arguments = {
        "path": body.path,
        "target": body.target,
        "conflict": body.conflict,
        "reserved": counted.bytes,
        "replaced": replaced,
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
    arguments = {
        "path": body.path,
        "target": body.target,
        "conflict": body.conflict,
        "members": min(body.most_members, limits.members),
        "skip_links": body.skip_links,
        "most": most,
        "reserved": await _room_for(platform, opened.folder, most),
    }
    return await _begin(platform, opened, who, TaskKind.EXTRACT, arguments)


async def _room_for(platform: Platform, folder: FolderRecord, most: int) -> int:
    """Return how much of *most* there is room for, at least one byte."""
    async with platform.database.read() as connection:
        room = await quota_scopes.find_room(connection, folder)
    return max(1, most if room is None else min(most, room))


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
            tx, opened.folder, arguments["reserved"], insider=opened.is_insider
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
    try:
        return await platform.storage.call(
            folder.host,
            CopyEntry(
                place=place_for(folder, task.user_id),
                path=given["path"],
                target=given["target"],
                conflict=Conflict(given["conflict"]),
                most_bytes=given["reserved"],
            ),
            deadline=LONG,
            on_progress=notes,
        )
    except ConflictError:
        if task.attempts < 1 or given["conflict"] != "fail":
            raise
        # The target was free when the task began: it is what a crash cut off.
        await platform.storage.call(
            folder.host,
            StatEntry(place=place_for(folder, task.user_id), path=given["target"]),
        )
        return Placed(path=given["target"], bytes=given["reserved"])


async def _extract(
    platform: Platform, task: TaskRecord, folder: FolderRecord, notes: ProgressNotes
) -> Placed:
    given = task.arguments
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
            # An archive that is too large says so; for another there may be no room.
            most_bytes=given["reserved"] if given["reserved"] < given["most"] else None,
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
            await _fail(platform, task, folder, error)
        raise
    finally:
        await notes.close()
    await _end(platform, task, folder, placed)


async def _end(
    platform: Platform, task: TaskRecord, folder: FolderRecord, placed: Placed
) -> None:
    async with platform.database.transaction() as tx:
        if not await end_well(tx, task, done=placed.bytes, unit="bytes"):
            return  # cancelled at the last moment: the next count finds what it made
        await quota_scopes.settle(
            tx,
            folder,
            reserved=task.arguments["reserved"],
            used=placed.bytes - task.arguments.get("replaced", 0),
            files=placed.files,
        )
        done = "a copy" if task.kind is TaskKind.COPY else "unpacked"
        tell(
            tx,
            EventKind.FOLDER_CHANGED,
            folder,
            f"{placed.path} in {folder.name} is {done} of {task.arguments['path']}",
            actor=task.actor,
        )


async def _fail(
    platform: Platform, task: TaskRecord, folder: FolderRecord, error: HubError
) -> None:
    async with platform.database.transaction() as tx:
        ended = await folder_tasks.end_task(
            tx, task.id, TaskState.FAILED, error=error.message
        )
        if ended:
            await quota_scopes.give_back(tx, folder, task.arguments["reserved"])
            tell(
                tx,
                EventKind.FOLDER_FAILED,
                folder,
                f"{task.kind} in {folder.name}: {error.message}",
                actor=task.actor,
            )
