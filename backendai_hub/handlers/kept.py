"""What is kept in this process for a moment: bounded, and the oldest goes first."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Shelf(Generic[Key, Value]):
    """Keeps values for some seconds: so many at most, and of so many bytes in all."""

    def __init__(
        self,
        *,
        seconds: float,
        most: int,
        most_bytes: int = 1 << 62,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._seconds = seconds
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._values: OrderedDict[Key, tuple[float, int, Value]] = OrderedDict()

    def find(self, key: Key) -> Value | None:
        """Return what is kept under *key*, unless it is too old."""
        found = self._values.get(key)
        if found is None:
            return None
        until, _, value = found
        if until <= self.clock():
            self.drop(key)
            return None
        self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value, *, since: float, size: int = 0) -> None:
        """Keep *value*, which is as old as *since* and has *size* bytes."""
        self.drop(key)
        if size > self._most_bytes:
            return
        self._values[key] = (since + self._seconds, size, value)
        self._bytes += size
        while len(self._values) > self._most or self._bytes > self._most_bytes:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Keep it no longer."""
        found = self._values.pop(key, None)
        if found is not None:
            self._bytes -= found[1]

    @property
    def size(self) -> tuple[int, int]:
        """How many values are kept, and of how many bytes."""
        return len(self._values), self._bytes
