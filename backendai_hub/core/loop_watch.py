"""How long an event loop is busy at a stretch, in which nobody else gets an answer.

A *turn* is what the loop does from when it hears of something until it listens again.
Whatever was ready meanwhile has waited for so long at most. What of it the loop has
not computed it waited for: for a processor that others had, or where it must not wait.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from itertools import accumulate
from typing import Final

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Turns are counted by whether they took so many seconds at most."""
WINDOW_SECONDS: Final = 60
"""What was longest is told of so much time."""
_NAME: Final = "backendai_hub_loop"


class LoopWatch:
    """The turns of one loop: how many took how long, and what was longest lately."""

    def __init__(
        self, clock: Callable[[], float], work_clock: Callable[[], float]
    ) -> None:
        self._clock = clock
        self._work_clock = work_clock
        self._began: tuple[float, float] | None = None
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._turns = _Longest()
        self._works = _Longest()

    def begin(self) -> None:
        """Note that a turn begins."""
        self._began = self._clock(), self._work_clock()

    def end(self) -> None:
        """Note that the loop listens again."""
        if self._began is None:
            return
        now = self._clock()
        began, work_began = self._began
        self._began = None
        took = now - began
        self._sum += took
        self._counts[bisect_left(BOUNDS, took)] += 1
        if took > BOUNDS[0]:  # what is shorter is the longest of nothing
            self._turns.add(int(now), took)
            self._works.add(int(now), self._work_clock() - work_began)

    def text(self) -> str:
        """Tell all of it in Prometheus' text format."""
        name = f"{_NAME}_turn_seconds"
        counts = list(accumulate(self._counts))
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        now = int(self._clock())
        lines = [
            f"# HELP {name} How long the event loop was busy at a stretch.",
            f"# TYPE {name} histogram",
            *(
                f'{name}_bucket{{le="{bound}"}} {count}'
                for bound, count in zip(bounds, counts, strict=True)
            ),
            f"{name}_sum {self._sum:.6f}",
            f"{name}_count {counts[-1]}",
            *_gauge(
                "longest_turn", "Its longest turn of a minute.", self._turns.of(now)
            ),
            *_gauge(
                "longest_work",
                "The most that it computed in one turn of a minute.",
                self._works.of(now),
            ),
        ]
        return "\n".join(lines) + "\n"


def _gauge(name: str, help_text: str, value: float) -> list[str]:
    whole = f"{_NAME}_{name}_seconds"
    return [
        f"# HELP {whole} {help_text}",
        f"# TYPE {whole} gauge",
        f"{whole} {value:.6f}",
    ]


class _Longest:
    """The longest of each second of the last minute."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, float]] = deque()

    def add(self, second: int, took: float) -> None:
        if self._kept and self._kept[-1][0] == second:
            took = max(took, self._kept.pop()[1])
        self._kept.append((second, took))
        while self._kept[0][0] < second - WINDOW_SECONDS:
            self._kept.popleft()

    def of(self, second: int) -> float:
        since = second - WINDOW_SECONDS
        return max((took for at, took in self._kept if at >= since), default=0.0)
