"""Turns on a storage host: nobody, and no single folder, takes them all.

Who has as many requests under way as one may have waits a moment for their own to end,
and is told to come back later if they do not. What the platform does for itself is
bounded where it is begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

from backendai_hub.core.errors import TooManyRequestsError
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.ops import AppendUpload, ListEntries, Operation, ScanUsage

RETRY_SECONDS: Final = 5
_SCANS: Final = (ListEntries, ScanUsage)
_Key = tuple[str, str]


class Turns:
    """The requests that are under way on one host, by who asks and in which folder."""

    def __init__(self, host: str, config: HostConfig) -> None:
        self._host = host
        self._config = config
        self._lines: dict[_Key, _Line] = {}

    async def take(self, operation: Operation[Any]) -> Callable[[], None]:
        """Wait for a turn, and return what ends it."""
        with ExitStack() as taken:
            try:
                async with asyncio.timeout(self._config.turn_seconds):
                    for key, most in self._bounds(operation):
                        await self._enter(key, most)
                        taken.callback(self._leave, key)
            except TimeoutError:
                raise TooManyRequestsError(
                    f"storage host {self._host}: you have, or this folder has, as many"
                    " requests under way as there may be at once; end some, or try"
                    " again in a moment",
                    retry_after=RETRY_SECONDS,
                ) from None
            return taken.pop_all().close
        raise AssertionError("left without an answer")

    def _bounds(self, operation: Operation[Any]) -> Iterator[tuple[_Key, int]]:
        place = getattr(operation, "place", None)
        if place is None or not place.asker:
            return
        config = self._config
        if isinstance(operation, _SCANS):
            yield ("scan", place.asker), config.most_scans_per_user
        if isinstance(operation, AppendUpload):
            yield ("upload", place.asker), config.most_uploads_per_user
        else:
            yield ("user", place.asker), config.most_per_user
        yield ("folder", place.folder_id), config.most_per_folder

    async def _enter(self, key: _Key, most: int) -> None:
        line = self._lines.setdefault(key, _Line(most))
        line.people += 1
        try:
            await line.turns.acquire()
        except BaseException:
            self._forget(key, line)
            raise

    def _leave(self, key: _Key) -> None:
        line = self._lines[key]
        line.turns.release()
        self._forget(key, line)

    def _forget(self, key: _Key, line: _Line) -> None:
        line.people -= 1
        if not line.people:
            del self._lines[key]


class _Line:
    """Who is served or waits, for one of the bounds."""

    def __init__(self, most: int) -> None:
        self.turns = asyncio.Semaphore(most)
        self.people = 0
