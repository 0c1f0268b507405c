"""How long to wait before trying again: exponential, jittered, bounded."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count, islice

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """Delays that grow from ``first`` by ``factor`` up to ``most`` seconds.

    Each delay is drawn between half and all of its nominal length, so that callers
    who failed together do not come back together. ``attempts`` bounds how many
    delays there are; None means there is always another.
    """

    first: float = 0.1
    factor: float = 2.0
    most: float = 5.0
    attempts: int | None = None

    def delays(self, draw: Callable[[], float] = random.random) -> Iterator[float]:
        """Yield one delay for each further attempt."""
        return islice(self._nominal(draw), self.attempts)

    def _nominal(self, draw: Callable[[], float]) -> Iterator[float]:
        nominal = self.first
        for _ in count():
            yield nominal * (0.5 + draw() / 2)
            nominal = min(nominal * self.factor, self.most)
