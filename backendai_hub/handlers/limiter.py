"""How many requests each credential may make: a fixed window, as Backend.AI's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

WINDOW_SECONDS: Final = 900
_MOST_KEYS: Final = 100_000


class RateState(msgspec.Struct, frozen=True):
    """Where a credential stands in its window; times in seconds."""

    limit: int
    remaining: int
    window: int
    retry_after: int
    exceeded: bool


def rate_headers(state: RateState) -> list[tuple[str, str]]:
    """Write out where a credential stands, as Backend.AI does."""
    return [
        ("X-RateLimit-Limit", str(state.limit)),
        ("X-RateLimit-Remaining", str(state.remaining)),
        ("X-RateLimit-Window", str(state.window)),
    ]


class RateLimiter:
    """Counts requests per key, in this process: there is one service per database."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, window: int = WINDOW_SECONDS
    ) -> None:
        self._clock = clock
        self._window = window
        self._counts: dict[str, tuple[float, int]] = {}

    def count(self, key: str, limit: int) -> RateState:
        """Count one request of *key*, of which *limit* are allowed in a window."""
        now = self._clock()
        began, made = self._counts.get(key, (now, 0))
        if now - began >= self._window:
            began, made = now, 0
        made += 1
        if key not in self._counts and len(self._counts) >= _MOST_KEYS:
            self._forget(now)
        self._counts[key] = (began, made)
        return RateState(
            limit=limit,
            remaining=max(0, limit - made),
            window=self._window,
            retry_after=max(1, int(began + self._window - now)),
            exceeded=made > limit,
        )

    def is_spent(self, key: str, limit: int) -> bool:
        """Tell whether the next request of *key* is one too many; counts none."""
        now = self._clock()
        began, made = self._counts.get(key, (now, 0))
        return made >= limit and now - began < self._window

    def _forget(self, now: float) -> None:
        """Forget whose window is over; a full table of live ones starts anew."""
        live = {k: v for k, v in self._counts.items() if now - v[0] < self._window}
        self._counts = live if len(live) < _MOST_KEYS else {}
