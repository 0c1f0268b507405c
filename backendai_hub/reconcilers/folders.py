"""Makes disks follow what has been decided about folders, and time its course."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import ClassVar, Final

from backendai_hub.core.errors import HubError
from backendai_hub.core.vfolders import TaskKind
from backendai_hub.db import folder_tasks
from backendai_hub.db.folder_tasks import TaskRecord
from backendai_hub.db.signals import Signals
from backendai_hub.operations import file_tasks, file_trash
from backendai_hub.operations.absent_hosts import go_without
from backendai_hub.operations.folder_cloning import copy_folder
from backendai_hub.operations.folder_making import make_folder, remove_folder
from backendai_hub.operations.folder_moves import move_folder
from backendai_hub.operations.folder_upkeep import (
    apply_limits,
    count_scopes,
    empty_trash,
    forget_removed,
)
from backendai_hub.operations.folder_withdrawals import stop_withdrawn
from backendai_hub.operations.folder_work import Runner, work_on
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

log = logging.getLogger("backendai_hub.folders")

RUNNERS: Final[Mapping[TaskKind, Runner]] = {
    TaskKind.CREATE: make_folder,
    TaskKind.REMOVE: remove_folder,
    TaskKind.CLONE: copy_folder,
    TaskKind.MOVE: move_folder,
    TaskKind.COPY: file_tasks.copy_entry,
    TaskKind.EXTRACT: file_tasks.extract_archive,
    TaskKind.EMPTY_TRASH: file_trash.empty_trash,
}
"""What does each kind of task."""

AT_ONCE: Final = 4
"""Tasks under way on one host: one that hangs or is slow takes no other's turns."""
MOST_PER_PERSON: Final = 2
"""So many of them may be one person's."""
LONGEST_PAUSE: Final = 300.0
UPKEEP_SECONDS: Final = 30.0


class FoldersReconciler(Reconciler):
    """Does what is left to be done to folders on their hosts.

    A task that has just been stored is mostly done by who stored it; the rest, and
    what was interrupted, is done here. While a host does not answer its tasks wait, the
    longer the more often they were tried.
    """

    name: ClassVar[str] = "folders"
    resync_seconds: ClassVar[float] = 5.0

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self._not_before: dict[str, float] = {}
        self._upkeep_at = 0.0
        self._busy: Counter[str] = Counter()
        """How many tasks are under way on each host, and for each person."""

    async def reconcile(self) -> int:
        """Begin what is due, and every now and then look after everything else."""
        if len(self.platform.folder_work):
            await stop_withdrawn(self.platform)
        begun = await self._begin_tasks()
        begun += await go_without(self.platform)
        now = monotonic()
        if now >= self._upkeep_at:
            self._upkeep_at = now + UPKEEP_SECONDS
            # Counting what is on a slow host holds up nothing else.
            self.platform.folder_work.begin("upkeep", self._look_after)
        return begun

    async def _look_after(self) -> None:
        try:
            await self.look_after()
        except Exception:
            log.exception("looking after folders failed")

    async def look_after(self) -> int:
        """Empty the trash, apply limits, count sizes, and forget what is long over."""
        done = await empty_trash(self.platform)
        done += await apply_limits(self.platform)
        done += await count_scopes(self.platform)
        return done + await forget_removed(self.platform)

    async def _begin_tasks(self) -> int:
        async with self.platform.database.read() as connection:
            # What somebody has running counts as their first: others come before more.
            tasks = folder_tasks.in_turn(await folder_tasks.list_open(connection))
            hosts = await folder_tasks.find_hosts(connection, tasks)
        work = self.platform.folder_work
        begun = 0
        for task in tasks:
            name = f"finish {task.id}"
            waits = self._not_before.get(task.id, 0.0) > monotonic()
            if task.kind not in RUNNERS or task.id in work or name in work or waits:
                continue
            turns = {f"host {hosts.get(task.id, '')}": AT_ONCE}
            if task.user_id is not None:
                turns[f"person {task.user_id}"] = MOST_PER_PERSON
            if any(self._busy[turn] >= most for turn, most in turns.items()):
                continue
            self._busy.update(turns.keys())
            doing = work.begin(name, partial(self._finish, task))
            doing.add_done_callback(partial(self._end_turns, turns))
            begun += 1
        return begun

    def _end_turns(self, turns: Mapping[str, int], done: object) -> None:
        del done
        self._busy.subtract(turns.keys())
        self._busy += Counter()  # without those that are at nothing

    async def _finish(self, task: TaskRecord) -> None:
        try:
            await work_on(self.platform, task.id, RUNNERS[task.kind])
            self._not_before.pop(task.id, None)
        except Exception as error:
            pause = min(LONGEST_PAUSE, 2.0 ** min(task.attempts, 10))
            self._not_before[task.id] = monotonic() + pause
            if isinstance(error, HubError):
                log.warning(
                    "%s of folder %s: %s", task.kind, task.folder_id, error.message
                )
            else:
                log.exception("%s of folder %s failed", task.kind, task.folder_id)
        finally:
            self.signals.wake("folders")

    async def close(self) -> None:
        """Stop what is under way; it is found again by the next service."""
        await self.platform.folder_work.close()
