"""Reading registries: what is asked for is begun, each in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar, Final

from backendai_hub.api.images import RescanState
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.registry_reading import Rescan
from backendai_hub.operations.rescans import run_rescan
from backendai_hub.reconcilers.base import Reconciler

MOST_AT_ONCE: Final = 4

log = logging.getLogger(__name__)


class RescansReconciler(Reconciler):
    """Begins the readings that wait, and ends those under way with the service."""

    name: ClassVar[str] = "rescans"

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self._tasks: set[asyncio.Task[None]] = set()

    async def reconcile(self) -> int:
        """Begin what waits, as far as there is room."""
        rescans: list[Rescan] = list(self.platform.rescans.values())
        waiting = [r for r in rescans if r.state is RescanState.WAITING]
        begun = waiting[: MOST_AT_ONCE - len(self._tasks)]
        for rescan in begun:
            rescan.begin(self.platform.database.clock())
            task = asyncio.create_task(run_rescan(self.platform, rescan))
            self._tasks.add(task)
            task.add_done_callback(self._end)
        return len(begun)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the end of a rescan went wrong", exc_info=task.exception())
        self.signals.wake(self.name)

    async def close(self) -> None:
        """End what is under way; what has been read so far stays."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for rescan in self.platform.rescans.values():
            if rescan.is_open:
                now = self.platform.database.clock()
                rescan.end(RescanState.INTERRUPTED, now, "the service was stopped")
