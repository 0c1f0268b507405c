"""When those are over that others wait for; some of them wait for others themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """What alone holds a session up: others that have to end, and a moment."""

    firsts: tuple[str, ...]
    moment: int = 0


class Start(NamedTuple):
    """When a session can start at the earliest, and on which one of those it hangs."""

    at: int
    last: str = ""
    """Who is over last of those it waits for."""
    by_moment: bool = False
    """Whether its own moment comes later still."""


class Chains:
    """Follows who waits for whom, however long the chains are.

    ``over`` tells of who runs, or waits for room alone, when it is over at the latest;
    ``lifetime`` how long one runs at most. Either is None where nobody says.
    """

    def __init__(
        self,
        waits: Mapping[str, Waits],
        *,
        over: Callable[[str], int | None],
        lifetime: Callable[[str], int | None],
    ) -> None:
        self._waits, self._over, self._lifetime = waits, over, lifetime
        self._ends: dict[str, int | None] = {}
        self._starts: dict[str, Start] = {}

    def start_of(self, waits: Waits) -> Start | int:
        """Tell when who waits so can start; or how many do not say when they end."""
        ends = {first: self._end_of(first) for first in waits.firsts}
        known = {first: end for first, end in ends.items() if end is not None}
        if len(known) < len(ends):
            return len(ends) - len(known)
        last = max(known, key=lambda first: (known[first], first), default="")
        latest = known.get(last, 0)
        return Start(max(latest, waits.moment), last, waits.moment > latest)

    def path_of(self, start: Start) -> Sequence[str]:
        """Return on whom a start hangs, whom that one waits for, and so on.

        It ends with who runs, or waits for room or for a moment.
        """
        path = []
        last = start.last
        while last:
            path.append(last)
            before = self._starts.get(last)
            last = "" if before is None or before.by_moment else before.last
        return path

    def _end_of(self, session_id: str) -> int | None:
        # A stack instead of recursion: chains may be as long as the queue.
        open_: list[str] = [session_id]
        under_way: set[str] = set()
        while open_:
            one = open_[-1]
            waits = self._waits.get(one)
            if one not in self._ends and waits is None:
                self._ends[one] = self._over(one)
            if one in self._ends or waits is None:
                open_.pop()
                continue
            missing = [first for first in waits.firsts if first not in self._ends]
            if one not in under_way and missing:
                under_way.add(one)
                open_ += missing
                continue
            # Were there a ring, those of it that are not known yet stay unknown.
            self._ends[one] = self._end_of_waiting(one, waits)
            open_.pop()
        return self._ends[session_id]

    def _end_of_waiting(self, session_id: str, waits: Waits) -> int | None:
        ends = [self._ends.get(first) for first in waits.firsts]
        lifetime = self._lifetime(session_id)
        if lifetime is None or None in ends:
            return None
        start = self.start_of(waits)
        assert isinstance(start, Start)
        self._starts[session_id] = start
        return start.at + lifetime
