"""Nodes in the same state: what is found out about one of them is true of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from backendai_hub.scheduling.scoring import IntVector


class Alike:
    """Knows which nodes are in the same state, by words that describe it."""

    def __init__(self, states: Sequence[bytes]) -> None:
        """Take the states of all nodes."""
        self._number: dict[bytes, int] = {}
        numbers = [self._number.setdefault(s, len(self._number)) for s in states]
        self._numbers: IntVector = np.array(numbers, np.int64)
        self._states = list(states)
        self._counts = np.bincount(self._numbers, minlength=len(states)).tolist()
        """How many nodes are in the state of each number."""
        self._unused = [*range(len(states) - 1, len(self._number) - 1, -1)]
        self._place: IntVector = np.empty(len(states), np.int64)

    def change(self, rows: Iterable[int], states: Iterable[bytes]) -> None:
        """Note in which states these nodes are now."""
        counts = self._counts
        for row, state in zip(rows, states, strict=True):
            before, self._states[row] = self._states[row], state
            old = self._number[before]
            counts[old] -= 1
            if not counts[old]:
                del self._number[before]
                self._unused.append(old)
            number = self._number.get(state)
            if number is None:
                number = self._number[state] = self._unused.pop()
            counts[number] += 1
            self._numbers[row] = number

    def choose(self, rows: IntVector) -> tuple[IntVector, IntVector]:
        """Return one of *rows* for each state, and for each of them which that is."""
        numbers, place = self._numbers[rows], self._place
        positions = np.arange(len(rows))
        place[numbers] = positions
        chosen = np.flatnonzero(place[numbers] == positions)
        place[numbers[chosen]] = np.arange(len(chosen))
        return rows[chosen], place[numbers]
