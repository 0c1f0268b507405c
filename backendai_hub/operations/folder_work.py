"""Doing on disk what has been written down: tasks, their progress, and their ends.

A task is stored with the change that needs it. It is done at once by whoever waits for
it, or by the reconciler; after a crash the next pass does it again, so each step may
be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from backendai_hub.core.errors import NotFoundError, UnavailableError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.vfolders import TaskState
from backendai_hub.db import folder_grants, folder_tasks, folders
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import Progress

log = logging.getLogger("backendai_hub.folders")

Runner = Callable[[Platform, TaskRecord], Awaitable[None]]

PROGRESS_SECONDS: Final = 1.0
"""Progress is written down this often at most."""
LONG: Final = 120.0
"""How long a host may be silent about something that takes a while."""


async def work_on(platform: Platform, task_id: str, runner: Runner) -> None:
    """Do a task, unless it is done; raises what stopped it.

    Several that ask at once wait for the same work.
    """

    async def work() -> None:
        async with platform.database.transaction() as tx:
            task = await folder_tasks.find_task(tx.connection, task_id, lock=True)
            if task is None or not await folder_tasks.begin_task(tx, task):
                return
        await runner(platform, task)

    await platform.folder_work.join(task_id, work)


async def read_folder(platform: Platform, folder_id: str) -> FolderRecord:
    """Read the folder a task is about."""
    async with platform.database.read() as connection:
        found = await folders.find_folder(connection, folder_id)
    if found is None:
        raise NotFoundError(f"there is no folder {folder_id[:64]!r} any more")
    return found


def is_passing(error: BaseException) -> bool:
    """Tell whether trying again later may help."""
    return isinstance(error, UnavailableError)


def tell(
    tx: Transaction, kind: EventKind, folder: FolderRecord, text: str, **more: Any
) -> None:
    """Record what has happened to a folder, for its owner: a user, or all of a project.

    Who has left the project is told no more of what becomes of its folders.
    """
    tx.record(
        Event(
            kind=kind, text=text, owner_id=folder.owner_id, folder_id=folder.id, **more
        )
    )


async def tell_beginner(
    tx: Transaction,
    kind: EventKind,
    folder: FolderRecord,
    task: TaskRecord,
    text: str,
    **more: Any,
) -> None:
    """Record how a task goes on, for who has begun it as a guest.

    Who may not look into the folder any more is not told what is in it, nor how it is
    called now.
    """
    if folder.user_id is None or task.user_id in {None, folder.user_id}:
        return
    assert task.user_id is not None
    if await folder_grants.find_grant(tx.connection, folder.id, task.user_id) is None:
        text = f"{task.kind}: it has ended, since you may not do this there any more"
        kind, more = EventKind.FOLDER_FAILED, {}
    tx.record(
        Event(kind=kind, text=text, owner_id=task.user_id, folder_id=folder.id, **more)
    )


class ProgressNotes:
    """Writes down how far a task is, every now and then."""

    def __init__(
        self, platform: Platform, task: TaskRecord, folder: FolderRecord
    ) -> None:
        self._platform = platform
        self._task = task
        self._folder = folder
        self._written = asyncio.get_running_loop().time()
        self._writing: asyncio.Task[None] | None = None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Take what a host says; it is written if that was not done just now."""
        self._last = progress
        now = asyncio.get_running_loop().time()
        idle = self._writing is None or self._writing.done()
        if idle and now - self._written >= PROGRESS_SECONDS:
            self._written = now
            self._writing = asyncio.create_task(self._write(progress))

    async def _write(self, progress: Progress) -> None:
        try:
            async with self._platform.database.transaction() as tx:
                await write_progress(tx, self._task, self._folder, progress)
        except Exception:
            log.exception("progress of task %s could not be written", self._task.id)

    async def close(self) -> None:
        """Wait until the last note is written."""
        if self._writing is not None:
            await self._writing


async def write_progress(
    tx: Transaction, task: TaskRecord, folder: FolderRecord, progress: Progress
) -> None:
    """Write down how far a task is, and tell its folder's owner."""
    await folder_tasks.note_progress(
        tx,
        task.id,
        done=progress.done,
        total=progress.total,
        unit=progress.unit,
    )
    total = f" of {progress.total}" if progress.total else ""
    text = f"{task.kind} {folder.name}: {progress.done}{total} {progress.unit}"
    kind, status = EventKind.FOLDER_PROGRESS, str(folder.status)
    tell(tx, kind, folder, text, status=status)
    await tell_beginner(tx, kind, folder, task, text, status=status)


async def end_well(
    tx: Transaction, task: TaskRecord, *, done: int | None = None, unit: str = ""
) -> bool:
    """Note that a task is done."""
    more: dict[str, Any] = {}
    if done is not None:
        more = {"done": done, "total": done, "unit": unit}
    return await folder_tasks.end_task(tx, task.id, TaskState.DONE, **more)
