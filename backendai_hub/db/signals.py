"""Wake-ups inside one process: hints that something has changed.

Missing one costs latency, never correctness: every waiter also looks again after a
while. To lose none, take a ticket first, then look, then wait with the ticket.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

_CALM: Final = "calm"


class Signals:
    """Named counters that can be waited for."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._hurrying = 0

    def ticket(self, name: str) -> int:
        """Return where *name* stands now."""
        return self._counts[name]

    def wake(self, name: str) -> None:
        """Wake everybody who waits for *name*."""
        self._counts[name] += 1
        for future in self._waiters.pop(name, ()):
            if not future.done():
                future.set_result(None)

    def wake_all(self) -> None:
        """Wake everybody, for the last time before the end."""
        for name in list(self._waiters):
            self.wake(name)

    async def wait(self, name: str, ticket: int, seconds: float) -> bool:
        """Wait until *name* has moved on from *ticket*; False when time is up."""
        return await self.wait_for_any({name: ticket}, seconds)

    async def wait_for_any(self, tickets: Mapping[str, int], seconds: float) -> bool:
        """Wait until one has moved on from its ticket; False when time is up."""
        if any(self._counts[name] != ticket for name, ticket in tickets.items()):
            return True
        future = asyncio.get_running_loop().create_future()
        for name in tickets:
            self._waiters[name].add(future)
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            for name in tickets:
                self._forget(name, future)
        return True

    @contextmanager
    def hurrying(self) -> Iterator[None]:
        """Ask those who can wait to let the processor to what is done inside."""
        self._hurrying += 1
        try:
            yield
        finally:
            self._hurrying -= 1
            if not self._hurrying:
                self.wake(_CALM)

    async def calm(self, seconds: float) -> None:
        """Wait until nobody is in a hurry, but no longer than that."""
        if self._hurrying:
            await self.wait(_CALM, self.ticket(_CALM), seconds)

    def _forget(self, name: str, future: asyncio.Future[None]) -> None:
        waiting = self._waiters.get(name)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiters[name]
