"""How long what may run elsewhere may still run here.

The service takes a node's silence for its loss after a lease and a margin. The lease
begins when the last report *was sent* that the service has taken: it knows of that
moment or of a later one. The clock is the machine's own, which no one sets and which
goes on while the machine sleeps; sessions read the same one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def tell_time() -> float:
    """Return the seconds since this machine was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leases:
    """Remembers when the service last heard of this node."""

    def __init__(self, clock: Callable[[], float] = tell_time) -> None:
        self.clock = clock
        self._heard_at: float | None = None
        self._known = asyncio.Event()
        self._written: dict[str, float] = {}

    def hear(self, sent_at: float) -> None:
        """Note that the service has taken a report that was sent at *sent_at*."""
        self._heard_at = max(sent_at, self._heard_at or 0.0)
        self._known.set()

    async def begin(self, container_id: str, seconds: float) -> float:
        """Return until when a new container may run.

        After a restart we do not know when the service last heard of us, so this waits
        for it to do so again.
        """
        await self._known.wait()
        assert self._heard_at is not None
        self._written[container_id] = self._heard_at + seconds
        return self._heard_at + seconds

    def renew(self, container_id: str, seconds: float) -> float | None:
        """Return until when a container may run, if that is worth writing down."""
        if self._heard_at is None:
            return None
        until = self._heard_at + seconds
        if until - self._written.get(container_id, 0.0) < seconds / 20:
            return None
        self._written[container_id] = until
        return until

    def forget(self, container_id: str) -> None:
        """Drop what is known of a container that is gone."""
        self._written.pop(container_id, None)
