"""How many refusals are written down: enough to see what goes on, never a full disk.

Whoever may log in is known, and answers for what they do: a thousand refusals in ten
minutes, so that a bulk request is written whole. A credential that nobody knows costs
nothing to make up, so those share less: by address, and all together.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

WINDOW: Final = timedelta(minutes=10)
MOST_OF_PERSON: Final = 1000
MOST_FROM_ADDRESS: Final = 60
MOST_OF_STRANGERS: Final = 600
_MOST_KEYS: Final = 100_000

_Key = tuple[str, str]


class Verdict(Enum):
    """What is to be done with a refusal."""

    WRITE = "write"
    LAST = "last"
    """Write it, and that there may be more."""
    LEAVE = "leave"


class _Window(msgspec.Struct):
    began: datetime
    count: int = 0


class RefusalLimiter:
    """Counts refusals by who was refused and from where, in this process's memory."""

    def __init__(self, most_keys: int = _MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._windows: dict[_Key, _Window] = {}

    def judge(self, who: str, address: str, now: datetime) -> Verdict:
        """Count a refusal of *who* (empty: a stranger) and say what to do with it."""
        limits = (
            {(who, address): MOST_OF_PERSON}
            if who
            else {("", address): MOST_FROM_ADDRESS, ("", ""): MOST_OF_STRANGERS}
        )
        windows = {key: self._window(key, now) for key in limits}
        if any(windows[key].count >= most for key, most in limits.items()):
            return Verdict.LEAVE
        for window in windows.values():
            window.count += 1
        full = any(windows[key].count >= most for key, most in limits.items())
        return Verdict.LAST if full else Verdict.WRITE

    def _window(self, key: _Key, now: datetime) -> _Window:
        found = self._windows.get(key)
        if found is None or now - found.began >= WINDOW:
            if found is None and len(self._windows) >= self._most_keys:
                self._forget(now)
            found = self._windows[key] = _Window(began=now)
        return found

    def _forget(self, now: datetime) -> None:
        """Forget windows that are over; a full table of open ones starts anew."""
        live = {k: w for k, w in self._windows.items() if now - w.began < WINDOW}
        self._windows = live if len(live) < self._most_keys else {}
