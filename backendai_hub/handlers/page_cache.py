"""Pages of sessions as they were answered, for as long as nothing on them changes.

A page is kept under everything that decides what is on it: how far the caller sees,
and the parameters as they came. It carries the version of the sessions it was read
from (:mod:`backendai_hub.db.versions`), taken before reading; one hub service works on
a database (:mod:`backendai_hub.db.leader`), so nobody else can change what is on it. A
page that was read while something changed therefore never counts as a page from after
the change. Names of nodes are not followed; a page is at most five seconds old.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from backendai_hub.db.versions import Versions
from backendai_hub.handlers.kept import Shelf
from backendai_hub.operations.sessions import Sight

SECONDS: Final = 5.0
_MOST_PAGES: Final = 20_000
_MOST_BYTES: Final = 64 << 20
_LONGEST_QUERY: Final = 512
_OVERHEAD: Final = 1024
"""What a page takes beside its text, more or less."""


class PageKey(NamedTuple):
    """Everything that decides what is on a page."""

    sight: Sight
    query: str


class Reading(NamedTuple):
    """When, and from what, a page is being read. Made before it is read."""

    owner: str | None
    version: int
    since: float


class _Page(NamedTuple):
    owner: str | None
    version: int
    body: bytes


class PageCache:
    """Encoded pages, each with whose sessions it shows and their version."""

    def __init__(
        self,
        *,
        most: int = _MOST_PAGES,
        most_bytes: int = _MOST_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shelf: Shelf[PageKey, _Page] = Shelf(
            seconds=SECONDS, most=most, most_bytes=most_bytes, clock=clock
        )

    def find(self, key: PageKey, versions: Versions) -> bytes | None:
        """Return the page if it is what reading it now would give."""
        page = self._shelf.find(key)
        if page is None or page.version != versions.of_sessions(page.owner):
            return None
        return page.body

    def begin(self, owner: str | None, versions: Versions) -> Reading:
        """Note, before reading, what the sessions of *owner* (None: all) are now."""
        return Reading(owner, versions.of_sessions(owner), self._shelf.clock())

    def keep(self, key: PageKey, reading: Reading, body: bytes) -> None:
        """Keep a page that has been read since *reading* was made."""
        if len(key.query) > _LONGEST_QUERY:
            return
        page = _Page(reading.owner, reading.version, body)
        size = len(body) + _OVERHEAD
        self._shelf.put(key, page, since=reading.since, size=size)

    @property
    def size(self) -> tuple[int, int]:
        """How many pages are kept, and of how many bytes."""
        return self._shelf.size
