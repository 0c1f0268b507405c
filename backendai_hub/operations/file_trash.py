"""The trash of a folder: what is thrown away there can be put back.

It counts as used until it is removed for good.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from backendai_hub.api.files import (
    EmptyRequest,
    FileOutcome,
    FileOutcomes,
    RestoreFiles,
    TaskAnswer,
    TrashedFile,
    TrashedPage,
    TrashRequest,
)
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import HubError, InvalidRequestError
from backendai_hub.core.events import EventKind
from backendai_hub.core.times import format_time
from backendai_hub.core.vfolders import TaskKind, TaskState
from backendai_hub.db import folder_tasks, quota_scopes
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.operations.files import KINDS, change_of, note_change
from backendai_hub.operations.folder_access import OpenFolder, place_for, place_of
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_work import (
    LONG,
    ProgressNotes,
    end_well,
    read_folder,
    tell,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.ops import EmptyTrash, ListTrash, RestoreEntry, TrashEntry

MOST_AT_ONCE: Final = 1000
MOST_LISTED: Final = 1000


class TrashQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the trash."""

    limit: int = 200
    after: str = ""


Refused = Callable[[str, HubError], Awaitable[None]]
"""Is told each path that was refused, and why."""


async def trash_entries(
    platform: Platform,
    opened: OpenFolder,
    who: Principal,
    body: TrashRequest,
    refused: Refused,
) -> FileOutcomes:
    """Throw entries into the trash; each ends for itself."""
    _check_count(len(body.paths))
    throw = partial(_throw_away, platform, opened, who)
    return _sum_up(
        [await _attempt(path, partial(throw, path), refused) for path in body.paths]
    )


async def _throw_away(
    platform: Platform, opened: OpenFolder, who: Principal, path: str
) -> FileOutcome:
    entry_id = platform.new_id()
    now = await _read_time(platform)
    await platform.storage.call(
        opened.host,
        TrashEntry(
            place=opened.place, path=path, entry_id=entry_id, at=now, by=who.name
        ),
    )
    await note_change(
        platform,
        opened,
        Action.TRASH_FILE,
        f"{path} is in the trash of {opened.folder.name}",
        path=path,
        entry=entry_id,
    )
    return FileOutcome(path=path, status=200, id=entry_id)


async def _read_time(platform: Platform, *, ago: timedelta = timedelta(0)) -> str:
    """Return the time by the database's own clock, as notes in the trash have it."""
    async with platform.database.read() as connection:
        now = await folder_tasks.read_time(connection)
    return format_time(now - ago) or ""


async def list_trash(
    platform: Platform, opened: OpenFolder, query: TrashQuery
) -> TrashedPage:
    """List a part of what was thrown away, the earliest first."""
    if not 1 <= query.limit <= MOST_LISTED:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_LISTED}"
        )
    page = await platform.storage.call(
        opened.host,
        ListTrash(place=opened.place, after=query.after, limit=query.limit),
    )
    return TrashedPage(
        items=[
            TrashedFile(
                id=entry.entry_id,
                path=entry.path,
                kind=KINDS[entry.kind],
                size=entry.size,
                thrown_at=entry.thrown_at,
                thrown_by=entry.thrown_by,
            )
            for entry in page.entries
        ],
        next=page.after or None,
    )


async def restore_entries(
    platform: Platform, opened: OpenFolder, body: RestoreFiles, refused: Refused
) -> FileOutcomes:
    """Put back what was thrown away; each ends for itself."""
    _check_count(len(body.ids))
    if body.target and len(body.ids) != 1:
        raise InvalidRequestError("target: it goes with one entry only")
    put = partial(_put_back, platform, opened, body)
    return _sum_up(
        [await _attempt(one, partial(put, one), refused) for one in body.ids]
    )


async def _put_back(
    platform: Platform, opened: OpenFolder, body: RestoreFiles, entry_id: str
) -> FileOutcome:
    placed = await platform.storage.call(
        opened.host,
        RestoreEntry(
            place=opened.place,
            entry_id=entry_id,
            target=body.target,
            conflict=Conflict(body.conflict),
        ),
    )
    await note_change(
        platform,
        opened,
        Action.RESTORE_FILE,
        f"{placed.path} is back in {opened.folder.name}",
        change=change_of(placed),
        path=placed.path,
        entry=entry_id,
    )
    return FileOutcome(path=placed.path, status=200, id=entry_id)


def _check_count(count: int) -> None:
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidRequestError(
            f"there are {count}; name between 1 and {MOST_AT_ONCE} at once"
        )


async def _attempt(
    name: str, verb: Callable[[], Awaitable[FileOutcome]], refused: Refused
) -> FileOutcome:
    try:
        return await verb()
    except HubError as error:
        await refused(name, error)
        return FileOutcome(
            path=name, status=error.status, error=error.message, code=error.code
        )


def _sum_up(results: list[FileOutcome]) -> FileOutcomes:
    failed = sum(1 for result in results if result.error is not None)
    return FileOutcomes(succeeded=len(results) - failed, failed=failed, results=results)


# --- for good ----------------------------------------------------------------------


async def begin_emptying(
    platform: Platform, opened: OpenFolder, who: Principal, body: EmptyRequest
) -> TaskAnswer:
    """Begin to remove for good what was thrown away, or some of it."""
    if body.ids is not None:
        _check_count(len(body.ids))
    task_id = platform.new_id()
    async with platform.database.transaction() as tx:
        await folder_tasks.insert_task(
            tx,
            task_id,
            TaskKind.EMPTY_TRASH,
            opened.folder.id,
            who=who,
            arguments={"ids": body.ids},
        )
        chosen = "everything" if body.ids is None else len(body.ids)
        tx.audit(
            act_of(Action.EMPTY_FILE_TRASH, opened.folder, after={"entries": chosen})
        )
        task = await folder_tasks.find_task(tx.connection, task_id)
        assert task is not None
    return TaskAnswer(task=task.show())


async def empty_trash(platform: Platform, task: TaskRecord) -> None:
    """Remove what was thrown away; what is gone counts no more."""
    folder = await read_folder(platform, task.folder_id)
    notes = ProgressNotes(platform, task, folder)
    try:
        done = await platform.storage.call(
            folder.host,
            EmptyTrash(
                place=place_for(folder, task.user_id),
                entry_ids=task.arguments.get("ids"),
            ),
            deadline=LONG,
            on_progress=notes,
        )
    except HubError as error:
        if error.status < 500:
            async with platform.database.transaction() as tx:
                await folder_tasks.end_task(
                    tx, task.id, TaskState.FAILED, error=error.message
                )
        raise
    finally:
        await notes.close()
    async with platform.database.transaction() as tx:
        if not await end_well(tx, task, done=done.count, unit="entries"):
            return
        await quota_scopes.settle(
            tx, folder, reserved=0, used=-done.bytes, files=-done.files
        )
        tell(
            tx,
            EventKind.FOLDER_CHANGED,
            folder,
            f"{done.count} entries of the trash of {folder.name} were removed for good",
            actor=task.actor,
        )


async def empty_old_trash(platform: Platform, folder_id: str) -> int:
    """Remove for good what was thrown away in a folder long enough ago.

    Nothing is written down before: what is removed half-way is found again.
    """
    days = platform.settings.file_trash_days
    if not days:
        return 0
    folder = await read_folder(platform, folder_id)
    done = await platform.storage.call(
        folder.host,
        EmptyTrash(
            place=place_of(folder),
            before=await _read_time(platform, ago=timedelta(days=days)),
            with_parts=True,
        ),
        deadline=LONG,
    )
    if not done.count:
        return 0
    async with platform.database.transaction() as tx:
        await quota_scopes.settle(
            tx, folder, reserved=0, used=-done.bytes, files=-done.files
        )
        tx.audit(
            act_of(
                Action.EMPTY_FILE_TRASH,
                folder,
                actor="system",
                after={"because": f"thrown away more than {days} days ago"},
            )
        )
        said = (
            f"{done.count} entries of the trash of {folder.name} were removed for good"
        )
        tell(tx, EventKind.FOLDER_CHANGED, folder, said, actor="system")
    return done.count
