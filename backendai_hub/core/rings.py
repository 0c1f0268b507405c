"""Series of measurements of bounded length: the newest take the place of the oldest."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

MISSING = math.nan


class Ring:
    """So many moments at most, each with a value for every column.

    Values are kept with seven digits, moments with all. What is missing is NaN inside,
    and None outside.
    """

    def __init__(self, columns: int, most: int) -> None:
        self._most = most
        self._next = 0
        self._times = array("d")
        self._columns = [array("f") for _ in range(columns)]

    def __len__(self) -> int:
        return len(self._times)

    def append(self, at: float, values: Sequence[float | None]) -> None:
        """Keep what was measured at *at*; the oldest goes if there is no more room."""
        row = [MISSING if value is None else value for value in values]
        if len(self._times) < self._most:
            self._times.append(at)
            for column, value in zip(self._columns, row, strict=True):
                column.append(value)
            return
        self._times[self._next] = at
        for column, value in zip(self._columns, row, strict=True):
            column[self._next] = value
        self._next = (self._next + 1) % self._most

    def read(self, since: float) -> tuple[list[float], list[list[float | None]]]:
        """Return the moments after *since*, oldest first, and their columns."""
        size = len(self._times)
        order = [(self._next + i) % size for i in range(size)]
        wanted = [i for i in order if self._times[i] > since]
        return (
            [self._times[i] for i in wanted],
            [[_known(column[i]) for i in wanted] for column in self._columns],
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
