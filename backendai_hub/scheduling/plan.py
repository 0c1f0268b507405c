"""One pass: a pure function from what is to who starts where, and why others wait.

Requests are tried in the order of the queue and nobody blocks those behind: what
cannot start now is explained and passed over. Requests of the same shape that found
no room are not tried again in the same pass, since a pass only takes room away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush, heapreplace
from itertools import islice

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.garbage import uncollected
from backendai_hub.scheduling.limits import Charge, Limits, Rooms
from backendai_hub.scheduling.lines import Build, Head, Line
from backendai_hub.scheduling.skimming import skim
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    Placement,
    Plan,
    Snapshot,
)
from backendai_hub.scheduling.splitting import Begin, split_queue

Limit = int | Callable[[int], bool] | None
"""How far to go: so many sessions, or until it says stop to the number decided."""

_MOST_TOLD = 5000
"""Of so many who cannot start anyway a run tells at most."""
_MOST_KNOWN = 4096
"""Of so many requests it is kept what they count; a long queue may share none."""


def plan(snapshot: Snapshot, limit: Limit = None, *, build: Build = Cluster) -> Plan:
    """Decide one pass. Deterministic; the snapshot is not changed."""
    return Pass(snapshot, build).run(limit)


class Pass:
    """A pass that can be left and gone on with: each ``run`` tells what is new."""

    @uncollected()
    def __init__(
        self, snapshot: Snapshot, build: Build = Cluster, *, skims: bool = False
    ) -> None:
        """Begin a pass; one that *skims* tells of who cannot start in no order."""
        self._limits = Limits(snapshot.scopes)
        self._charges: dict[int, Charge] = {}
        self._rooms: dict[int, Rooms] = {}
        self._aside: Iterator[tuple[str, str]] = iter(())
        self._are_aside = 0
        if skims:
            snapshot, aside = skim(snapshot, self._refuse)
            self._aside, self._are_aside = iter(aside.items()), len(aside)
        self._snapshot = snapshot
        self._lines: list[Line] = []
        self._heads: list[tuple[Head, int]] = []
        """The next of each line: those of the highest priority first, then in turn."""
        first, self._slow = split_queue(snapshot, build)
        """Also the groups that come when no others are left, one after the other."""
        self._begin(first)

    @uncollected()
    def run(self, limit: Limit = None, *, most_placed: int | None = None) -> Plan:
        """Decide about sessions until there are no more, or *limit* says stop.

        Or until so many have been placed.
        """
        placements: list[Placement] = []
        waiting: dict[str, str] = {}
        stop = limit if callable(limit) else None
        most = limit if isinstance(limit, int) else None
        heads, lines, queue = self._heads, self._lines, self._snapshot.queue
        decided = 0
        while len(placements) != most_placed:
            if decided == most or (stop is not None and stop(decided)):
                break
            if not heads:
                # What has been decided is done before somebody waits for these.
                if not self._slow or (stop is not None and decided):
                    break
                self._begin([self._slow.pop(0)])
                continue
            (_, index), place = heads[0]
            line, session = lines[place], queue[index]
            found = self._decide(line, session)
            decided += 1
            if isinstance(found, str):
                waiting[session.id] = found
            else:
                placements.append(found)
                line.placed()
            head = line.advance()
            if head is None:
                heappop(heads)
            else:
                heapreplace(heads, (head, place))
        if self._are_aside:
            waiting.update(islice(self._aside, _MOST_TOLD))
            self._are_aside = max(0, self._are_aside - _MOST_TOLD)
        return Plan(
            placements=tuple(placements),
            waiting=waiting,
            reservations=tuple(r for line in lines for r in line.reservations),
            preemptions=tuple(p for line in lines for p in line.preemptions),
            returned={i: why for line in lines for i, why in line.returned.items()},
            decided=decided,
            complete=not (heads or self._slow or self._are_aside),
            windows=self._snapshot.windows,
            faults={line.group: line.fault.any for line in lines if line.fault.any},
        )

    def _begin(self, begins: Sequence[Begin]) -> None:
        """Begin with more groups, all at once."""
        new = [begin() for begin in begins]
        for line in new:
            line.begin(self._is_allowed)
        for place, line in enumerate(new, len(self._lines)):
            head = line.advance()
            if head is not None:
                heappush(self._heads, (head, place))
        self._lines += new

    def is_overtaken_by(self, session: PendingSession) -> bool:
        """Tell whether *session*, who has just come, may be before all undecided."""
        lines = (self._lines[place] for _, place in self._heads)
        return any(line.is_overtaken_by(session) for line in lines)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The queues of the resource groups, as the pass has left them."""
        return tuple(self._lines)

    @property
    def limits(self) -> Limits:
        """What the limits still allow."""
        return self._limits

    def _decide(self, line: Line, session: PendingSession) -> Placement | str:
        """Place *session*, or say why it waits."""
        limits, charge = self._limits, self._charge(session)
        rooms = self._rooms.get(id(session.scopes))
        if rooms is None:
            if len(self._rooms) > _MOST_KNOWN:
                self._rooms.clear()
            rooms = self._rooms[id(session.scopes)] = limits.of(session.scopes)
        reason = ""
        if not limits.allow(rooms, charge):
            reason = limits.explain(session.scopes, charge)
        if session.hold:
            line.give_back(session, session.hold)
            return f"{session.hold}; {reason}" if reason else session.hold
        if reason:
            line.withdraw(session, reason)
            return reason
        found = line.place(session)
        if not isinstance(found, str):
            limits.take(rooms, charge)
        return found

    def _refuse(self, session: PendingSession) -> str:
        """Say which limits are in the way of *session*; nothing if none is."""
        if self._is_allowed(session):
            return ""
        return self._limits.explain(session.scopes, self._charge(session))

    def _is_allowed(self, session: PendingSession) -> bool:
        """Tell whether no limit is in the way of *session* as things are."""
        rooms = self._limits.of(session.scopes)
        return self._limits.allow(rooms, self._charge(session))

    def _charge(self, session: PendingSession) -> Charge:
        amounts = session.request if session.charge is None else session.charge
        # The snapshot keeps these objects, so their identities stay their own.
        charge = self._charges.get(id(amounts))
        if charge is None:
            if len(self._charges) > _MOST_KNOWN:
                self._charges.clear()
            charge = self._charges[id(amounts)] = tuple(amounts.items())
        return charge
