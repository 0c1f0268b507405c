"""Keeps the platform's processes running, and says how they are."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from backendai_hub.core.errors import HubError
from backendai_hub.launcher.child import Child, Command
from backendai_hub.launcher.events import Event, EventKind, Tell
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.logs import read_tail, rotate_logs, shorten_log

Check = Callable[[], Awaitable[bool]]
"""Tells whether a process answers."""

_POLL = 0.05
_TOO_MANY_CRASHES = 3
_LOG_WATCH = 60.0


class StartError(HubError):
    """A process did not come up; ``detail`` are the last lines it printed."""

    code = "start"
    title = "The platform did not start"

    def __init__(self, process: str, why: str, detail: str) -> None:
        super().__init__(f"{process} {why}", process=process, detail=detail)
        self.process = process
        self.detail = detail


class Supervisor:
    """Runs the given commands until :meth:`stop`."""

    def __init__(
        self, commands: Sequence[Command], *, folder: DataFolder, tell: Tell
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._children = {
            command.name: Child(command, folder=folder, tell=tell)
            for command in commands
        }
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, *, running: set[str]) -> None:
        """Start every process at once; those in *running* are adopted."""
        for name, child in self._children.items():
            if name not in running:
                rotate_logs(self._folder, name)
            self._tasks.append(asyncio.create_task(child.keep(), name=name))
        self._tasks.append(asyncio.create_task(self._watch_logs(), name="logs"))

    async def wait_ready(self, checks: Mapping[str, Check], timeout: float) -> None:
        """Return when every check holds; raises :class:`StartError` if one cannot."""
        begun = time.monotonic()
        deadline = begun + timeout
        waits = [
            asyncio.create_task(self._wait_one(name, check, begun, deadline))
            for name, check in checks.items()
        ]
        try:
            await asyncio.gather(*waits)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def stop(self, grace: float, *, release_adopted: bool = False) -> None:
        """Stop every process; sessions are not processes of ours and go on."""
        await asyncio.gather(
            *(
                child.stop(grace, release_adopted=release_adopted)
                for child in self._children.values()
            )
        )
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_broken(self) -> None:
        """Wait until keeping a process running failed for a reason of our own."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def _wait_one(
        self, name: str, check: Check, begun: float, deadline: float
    ) -> None:
        child = self._children[name]
        while not await check():
            if child.crashes >= _TOO_MANY_CRASHES:
                why = f"ended {child.crashes} times before it was ready"
                raise StartError(name, why, child.last_words)
            if time.monotonic() > deadline:
                why = f"did not answer within {deadline - begun:g} seconds"
                raise StartError(name, why, read_tail(self._folder.log(name)))
            await asyncio.sleep(_POLL)
        took = f"ready after {time.monotonic() - begun:.1f} s"
        self._tell(Event(kind=EventKind.READY, process=name, text=took))

    async def _watch_logs(self) -> None:
        while True:
            await asyncio.sleep(_LOG_WATCH)
            for name in self._children:
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(shorten_log, self._folder.log(name))
