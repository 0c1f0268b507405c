"""Wake-ups inside one process: hints that something has changed.

Missing one costs latency, never correctness: every waiter also looks again after a
while. To lose none, take a ticket first, then look, then wait with the ticket.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Signals:
    """Named counters that can be waited for."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

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
        if self._counts[name] != ticket:
            return True
        future = asyncio.get_running_loop().create_future()
        self._waiters[name].add(future)
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            waiting = self._waiters.get(name)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiters[name]
        return True
