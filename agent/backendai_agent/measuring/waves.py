"""Use that nobody makes, for nodes where nothing really runs."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Wave:
    """Goes up and down around *mean*, once in *seconds*: 0 to 1.

    By *swing*, or by as much as keeps it between these.
    """

    mean: float
    swing: float
    seconds: float

    @property
    def _height(self) -> float:
        return min(self.swing, self.mean, 1 - self.mean)

    def at(self, moment: float) -> float:
        """Return how much it is then."""
        return self.mean + self._height * math.sin(self._turn(moment))

    def sum_until(self, moment: float) -> float:
        """Return how much it came to since moment 0; it never goes back."""
        swung = self._height * self.seconds / (2 * math.pi)
        return self.mean * moment + swung * (1 - math.cos(self._turn(moment)))

    def _turn(self, moment: float) -> float:
        return 2 * math.pi * (moment % self.seconds) / self.seconds
