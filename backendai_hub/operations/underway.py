"""What this process is doing at this moment, each thing once, whoever asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any


class Underway:
    """Pieces of work by name: who asks for one that is under way joins it.

    They go on when whoever began them goes away: a closed connection ends nothing.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def names(self) -> list[str]:
        """Return what is under way at this moment."""
        return list(self._tasks)

    def begin(
        self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]
    ) -> asyncio.Task[Any]:
        """Begin *work*, unless it is under way; return what can be waited for."""
        task = self._tasks.get(name)
        if task is None:
            task = asyncio.create_task(work(), name=name)
            self._tasks[name] = task
            task.add_done_callback(lambda done: self._forget(name, done))
        return task

    async def join(
        self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Begin *work* or join it, and wait for its end: its answer, or its error."""
        return await asyncio.shield(self.begin(name, work))

    def _forget(self, name: str, done: asyncio.Task[Any]) -> None:
        self._tasks.pop(name, None)
        if not done.cancelled():
            done.exception()  # who waits for it is told; nobody has to be

    async def cancel(self, name: str) -> bool:
        """Stop what is under way by this name, and wait until it has stopped."""
        task = self._tasks.get(name)
        if task is None:
            return False
        task.cancel()
        await _ended(task)
        return True

    async def wait_all(self) -> None:
        """Wait until nothing is under way any more."""
        while self._tasks:
            await asyncio.gather(*(_ended(task) for task in list(self._tasks.values())))

    async def close(self) -> None:
        """Stop everything; what matters is found again, since it is written down."""
        for task in list(self._tasks.values()):
            task.cancel()
        await self.wait_all()


async def _ended(task: Awaitable[Any]) -> None:
    with suppress(asyncio.CancelledError, Exception):
        await task
