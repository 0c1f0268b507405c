"""What was read a moment ago and cannot have changed since.

Asking for a session needs a dozen small things that hardly ever change: who may use
which nodes, what a policy says, what an environment needs. They are kept under the
versions of what they were read from (:mod:`.versions`), taken before the reading, and
for a few seconds at the longest, so that what is changed by hand shows up as well.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from backendai_hub.db.versions import Versions

Thing = TypeVar("Thing")

LONGEST: Final = 10.0
_MOST: Final = 10_000


class _Entry(NamedTuple):
    version: tuple[int, int]
    until: float
    value: Any


class Kept:
    """Values by key, each with what has to be the same for it to be true."""

    def __init__(
        self, versions: Versions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._versions = versions
        self._clock = clock
        self._entries: dict[Hashable, _Entry] = {}

    async def recall(
        self,
        key: Hashable,
        read: Callable[[], Awaitable[Thing]],
        tables: Collection[str] = (),
    ) -> Thing:
        """Return what *read* has found, or finds now.

        It is asked again once tenancy or any of *tables* has changed. It has to begin
        its own look at the database: what is under way may be older than the version.
        """
        version = (self._versions.tenancy, self._versions.of_tables(tables))
        now = self._clock()
        entry = self._entries.get(key)
        if entry is not None and entry.version == version and now < entry.until:
            found: Thing = entry.value
            return found
        found = await read()
        if len(self._entries) >= _MOST:
            self._entries.clear()
        self._entries[key] = _Entry(version, now + LONGEST, found)
        return found
