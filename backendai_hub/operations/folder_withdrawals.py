"""Ending what was begun with a permission that has been taken back since."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import HubError
from backendai_hub.core.vfolders import TaskKind
from backendai_hub.db import folder_tasks, folders
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.operations.folder_access import recheck_access
from backendai_hub.operations.folder_cloning import recheck_clone
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.uploads import sweep_uploads

log = logging.getLogger("backendai_hub.folders")

MOMENT: Final = 2.0
"""How long who takes something back waits for its end: no host that hangs decides."""
_SOMEBODYS: Final = (TaskKind.CLONE, TaskKind.COPY, TaskKind.EXTRACT)


async def end_withdrawn(platform: Platform) -> None:
    """End uploads and tasks of people who may not write there any more.

    Whoever has taken the permission back waits for it, so that nothing appears after
    they were told that it is so.
    """
    name = f"withdrawals {platform.new_id()}"
    ending = platform.folder_work.begin(name, partial(_end, platform))
    await asyncio.wait({ending}, timeout=MOMENT)


async def _end(platform: Platform) -> None:
    await stop_withdrawn(platform)
    try:
        await sweep_uploads(platform)
    except HubError as error:  # it is tried again
        log.info("an upload cannot be ended yet: %s", error.message)


async def stop_withdrawn(platform: Platform) -> int:
    """Stop the work of tasks that are not permitted any more; return how many.

    They are begun once more, and then refused for good: that undoes what is half done
    and says why.
    """
    async with platform.database.read() as connection:
        running = await folder_tasks.list_open(
            connection, kinds=_SOMEBODYS, ids=platform.folder_work.names()
        )
        withdrawn = [t for t in running if not await _is_permitted(connection, t)]
    for task in withdrawn:
        log.info("task %s stops: who began it may not do this any more", task.id)
        await platform.folder_work.cancel(task.id)
    return len(withdrawn)


async def _is_permitted(connection: AsyncConnection, task: TaskRecord) -> bool:
    about = task.arguments.get("source", task.folder_id)
    folder = await folders.find_folder(connection, about)
    if folder is None:
        return False
    try:
        if task.kind is TaskKind.CLONE:
            await recheck_clone(connection, task, folder)
        else:
            await recheck_access(connection, task.user_id, folder)
    except HubError:
        return False
    return True
