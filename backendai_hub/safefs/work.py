"""Long work: how far it is, and whether it shall go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backendai_hub.safefs.entries import kept_by
from backendai_hub.safefs.errors import LimitExceededError, StoppedError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


class Tally:
    """Counts what was replaced: entries, and the bytes that are free for it."""

    def __init__(self) -> None:
        self.bytes = 0
        self.entries = 0

    def add(self, found: os.stat_result) -> None:
        """Count what was *found* where something else is now."""
        self.bytes += kept_by(found)
        self.entries += 1


class Work:
    """Counts what is done, tells it, and ends the work when that is asked for."""

    def __init__(
        self,
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        self._progress = progress
        self._cancelled = cancelled
        self._limit = limit
        self.done = 0

    def expect(self, amount: int) -> None:
        """Refuse *amount* more if that would be more than allowed."""
        if self._limit is not None and self.done + amount > self._limit:
            raise LimitExceededError(
                f"at least {self.done + amount} bytes would be written; "
                f"{self._limit} are allowed here",
                limit=self._limit,
            )

    def advance(self, amount: int) -> None:
        """Count *amount* more; raise :class:`StoppedError` if it shall end here."""
        self.expect(amount)
        self.done += amount
        if self._cancelled is not None and self._cancelled():
            raise StoppedError("the work was stopped before its end", done=self.done)
        if self._progress is not None:
            self._progress(self.done)
