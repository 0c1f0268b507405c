"""Who waits before somebody, and behind, sorted by what they ask for.

Those who ask for the same find room, or none, together. So a forecast looks at one of
each kind, however many wait.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from backendai_hub.scheduling.snapshot import PendingSession


class Kind(NamedTuple):
    """Those who ask for the same, in order, and how many of them count."""

    places: Sequence[int]
    sessions: Sequence[PendingSession]
    number: int


class Waiting:
    """Those of one line who start once there is room, by kind and place."""

    def __init__(self, able: Iterable[tuple[object, int, PendingSession]]) -> None:
        self._kinds: dict[object, tuple[list[int], list[PendingSession]]] = {}
        for kind, place, session in able:
            places, sessions = self._kinds.setdefault(kind, ([], []))
            places.append(place)
            sessions.append(session)

    def before(self, place: int) -> Ahead:
        """Return those who stand before *place*."""
        return Ahead(
            Kind(places, sessions, number)
            for places, sessions in self._kinds.values()
            if (number := bisect_left(places, place))
        )

    def behind(self, session: PendingSession, place: int, *, fixed: bool) -> int:
        """Count those from *place* on who may find room before *session* does.

        In a *fixed* order who asks for no less finds none as long as it finds none.
        """
        count = 0
        for places, sessions in self._kinds.values():
            number = bisect_left(places, place)
            if number < len(places) and not (
                fixed and _asks_no_less(sessions[0], session)
            ):
                count += len(places) - number - (sessions[number].id == session.id)
        return count


def _asks_no_less(one: PendingSession, other: PendingSession) -> bool:
    return not one.members and all(
        one.request[slot] >= amount for slot, amount in other.request.items()
    )


class Ahead:
    """Those before somebody; who has started is left out from then on."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds = list(kinds)
        self._next = [0] * len(self._kinds)

    def __bool__(self) -> bool:
        """Tell whether there is anybody."""
        return bool(self._kinds)

    def add(self, session: PendingSession) -> None:
        """Put *session* behind all of them."""
        last = max((kind.places[kind.number - 1] for kind in self._kinds), default=0)
        self._kinds.append(Kind((last + 1,), (session,), 1))
        self._next.append(0)

    def look_through(self) -> Iterator[Candidate]:
        """Yield one after the other in order; of a kind that fails, no more."""
        kinds, following = self._kinds, self._next
        heads = [
            (kind.places[at], which)
            for which, (kind, at) in enumerate(zip(kinds, following, strict=True))
            if at < kind.number
        ]
        heapify(heads)
        while heads:
            _, which = heads[0]
            kind, at = kinds[which], following[which]
            candidate = Candidate(kind.sessions[at])
            yield candidate
            if not candidate.has_started:
                heappop(heads)
                continue
            following[which] = at = at + 1
            if at < kind.number:
                heapreplace(heads, (kind.places[at], which))
            else:
                heappop(heads)


class Candidate:
    """One who may start now; whoever looks says whether it does."""

    __slots__ = ("has_started", "session")

    def __init__(self, session: PendingSession) -> None:
        self.session, self.has_started = session, False
