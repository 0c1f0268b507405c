"""The numbers of reports: always larger than any before, whatever the clock says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from backendai_agent.folders import write_durably
from backendai_agent.logs import Log

BLOCK: Final = 1000
"""How many numbers are written down as used at a time."""

LARGEST: Final = 1 << 62


class Numbering:
    """Counts on from the larger of *now* and what *path* says was used before.

    *now*, the wall clock in milliseconds, serves nodes that lost the file.
    """

    def __init__(self, path: Path, *, now: int, log: Log) -> None:
        self._path = path
        self._log = log
        self._last = max(now, _read(path))
        self._reserved = self._last

    async def next(self) -> int:
        """Return the next number; no restart will see it again."""
        if self._last >= self._reserved:
            self._reserved = self._last + BLOCK
            content = f"{self._reserved}\n".encode()
            try:
                await asyncio.to_thread(write_durably, self._path, content)
            except OSError as error:  # a report now is worth more than one later
                self._log.error("cannot write down the reports' numbers: %s", error)
        self._last += 1
        return self._last


def _read(path: Path) -> int:
    try:
        last = int(path.read_text("ascii"))
    except (OSError, ValueError):
        return 0
    return last if last <= LARGEST else 0
