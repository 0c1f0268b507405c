"""Where containers answer, forgotten at the first sign that they may not any more.

The engine gives an address to another container as soon as one has ended. What was
sent there for the first, cookies included, would reach the second, so an address
counts only if nothing was heard of its container since before it was read.
"""

from __future__ import annotations

import threading
from typing import Final

LONGEST: Final = 10_000


class Addresses:
    """The known addresses; may be used from several threads."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._heard: dict[str, int] = {}
        self._heard_of_all = 0
        self._count = 0

    def now(self) -> int:
        """Mark the moment before something is read, for :meth:`learn`."""
        with self._lock:
            return self._count

    def get(self, container_id: str) -> str:
        """Return the address of a container that runs; empty if unknown."""
        with self._lock:
            return self._known.get(container_id, "")

    def learn(self, container_id: str, address: str, *, read_at: int) -> bool:
        """Take up *address*; false if the container may have changed meanwhile."""
        with self._lock:
            heard = max(self._heard.get(container_id, 0), self._heard_of_all)
            if heard > read_at or not address:
                return False
            self._known[container_id] = address
            return True

    def forget(self, container_id: str) -> None:
        """Something happened to the container."""
        with self._lock:
            self._count += 1
            self._known.pop(container_id, None)
            self._heard.pop(container_id, None)
            self._heard[container_id] = self._count
            if len(self._heard) > self._longest:
                # What was read as long ago as this counts for nobody any more.
                self._heard_of_all = self._heard.pop(next(iter(self._heard)))

    def forget_all(self) -> None:
        """Anything may have happened to any container."""
        with self._lock:
            self._count += 1
            self._known.clear()
            self._heard.clear()
            self._heard_of_all = self._count
