"""The moments at which somebody could start although nothing else changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime

from backendai_hub.db.sessions import SessionRecord
from backendai_hub.scheduling.snapshot import ReservedWindow


class Moments:
    """When waiting sessions may start, and when windows begin and end, in order."""

    def __init__(self, now: datetime) -> None:
        self._seen = now
        self._all: list[datetime] = []

    def note(
        self, records: Iterable[SessionRecord], windows: Iterable[ReservedWindow]
    ) -> None:
        """Know these instead of those before."""
        found = {r.starts_at for r in records if r.starts_at is not None}
        for window in windows:
            found |= {
                datetime.fromtimestamp(moment, UTC)
                for moment in (window.starts, window.ends)
            }
        self._all = sorted(found)

    def pass_by(self, now: datetime) -> bool:
        """Tell whether any has come since the last time this was asked."""
        before, self._seen = self._seen, now
        return bisect_right(self._all, before) < bisect_right(self._all, now)

    def until_next(self, now: datetime) -> float | None:
        """Return how many seconds it is until the next one; None if there is none."""
        index = bisect_right(self._all, now)
        if index == len(self._all):
            return None
        return (self._all[index] - now).total_seconds()
