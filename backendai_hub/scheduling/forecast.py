"""When a session starts at the latest, as far as declared lifetimes tell.

Those that run are let end when they have declared to, one after the other, on a copy
of the nodes; whoever stands before in the queue takes what becomes free first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from backendai_hub.core.quotas import SESSIONS, QuotaShortfall
from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.ahead import Ahead
from backendai_hub.scheduling.backfill import Holding
from backendai_hub.scheduling.cluster import Mask, Vector
from backendai_hub.scheduling.keeping import has_waited
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    ReservedWindow,
    RunningSession,
    Snapshot,
)
from backendai_hub.scheduling.trials import Trial

_MOST_ENDS = 64
"""How many ends are looked at one by one where everything else has fitted."""
_AT_ONCE = 2048
"""How many ends are compared at once."""
_MOST_STEPS = 200
"""How many tries the queue before it is followed for."""


class Forecast(NamedTuple):
    """When it starts, and which session has to end for that, if anybody knows."""

    starts: int | None = None
    after: RunningSession | None = None
    row: int = -1
    window: bool = False
    """Whether it is a reservation that has to end for that."""
    exact: bool = True
    """Whether nobody else can make it later; if not, it is at the earliest."""
    contested: bool = False
    """Whether a part of the room becomes free before, which others may take."""
    behind: int = 0
    """How many behind it in the queue may."""
    unknown: str = ""
    """Why nobody knows."""


class Ends:
    """The declared ends on one line's nodes, as arrays.

    For a *session* that *windows* are not open to, what they keep comes back when they
    are over.
    """

    def __init__(
        self,
        line: Line,
        session: PendingSession | None = None,
        windows: Sequence[ReservedWindow] = (),
    ) -> None:
        self._line = line
        self.undeclared = sum(1 for _, held in line.holdings if held.ends is None)
        known: list[tuple[RunningSession | None, Holding]] = [
            pair for pair in line.holdings if pair[1].ends is not None
        ]
        if session is not None and windows:
            known = [_put_off(line, session, windows, pair) for pair in known]
            known += [(None, kept) for kept in line.kept_from(session)]
        # By node, and by time on each.
        known.sort(key=lambda pair: (pair[1].row, pair[1].ends or 0))
        self.sessions = [running for running, _ in known]
        """Who holds it; None is a window."""
        self.held = [held for _, held in known]
        self.order = sorted((h.ends or 0, i) for i, h in enumerate(self.held))
        """When each of them ends, in order."""
        self._in_time: Vector = np.array([i for _, i in self.order], np.int64)
        self._rows: Vector = np.array([h.row for h in self.held], np.int64)
        self._times: Vector = np.array([h.ends or 0 for h in self.held], np.int64)
        first = np.flatnonzero(np.diff(self._rows, prepend=-1))
        self._first = np.repeat(first, np.diff(np.append(first, len(self._rows))))
        self._sums: dict[str, Vector] = {}

    def __len__(self) -> int:
        return len(self.held)

    def is_contested(self, index: int) -> bool:
        """Tell whether something comes back on its node before one of the ends."""
        return bool(self._times[self._first[index]] < self._times[index])

    def _sum(self, slot: str) -> Vector:
        """Return what has come back of *slot* on a node by each of its ends."""
        known = self._sums.get(slot)
        if known is None:
            amounts = np.array(
                [sum(s.amount for s in h.shares if s.slot == slot) for h in self.held],
                np.int64,
            )
            sums = np.cumsum(amounts)
            before = sums - amounts
            known = self._sums[slot] = sums - before[self._first]
        return known

    def _find_enough(self, session: PendingSession) -> Iterator[int]:
        """Yield the ends, in time, with which a node has enough of every slot."""
        cluster = self._line.cluster
        if any(slot not in cluster.column for slot in session.request):
            return
        eligible = cluster.eligible(session)
        asked = [
            (cluster.free_of(cluster.column[slot]), self._sum(slot), amount)
            for slot, amount in session.request.items()
        ]
        # It is seldom long until one is found.
        for begin in range(0, len(self), _AT_ONCE):
            indices = self._in_time[begin : begin + _AT_ONCE]
            rows = self._rows[indices]
            enough: Mask = eligible[rows]
            for free, back, amount in asked:
                enough &= free[rows] + back[indices] >= amount
            yield from indices[enough].tolist()

    def first_fitting(self, session: PendingSession) -> tuple[int, int] | None:
        """Return when one container first finds room, and the index of that end."""
        candidates = islice(self._find_enough(session), _MOST_ENDS)
        found = next(candidates, None)
        if found is None:
            return None
        trial = self._line.trial(session)
        done: dict[int, int] = {}
        for index in chain((found,), candidates):
            row = self.held[index].row
            for i in range(done.get(row, int(self._first[index])), index + 1):
                _give(trial, self.held[i])
            done[row] = index + 1
            if trial.placer.has_room(trial.shapes.of(session), row):
                return int(self._times[index]), index
        return None


def _put_off(
    line: Line,
    session: PendingSession,
    windows: Sequence[ReservedWindow],
    pair: tuple[RunningSession | None, Holding],
) -> tuple[RunningSession | None, Holding]:
    """Return what is held, until a window that would keep it from *session* is over."""
    running, held = pair
    lifetime = session.lifetime or line.policy.max_lifetime
    node = line.cluster.nodes[held.row].id
    # One may begin where another ends: they are looked at in the order of time.
    for window in sorted(windows, key=lambda one: one.starts):
        ends = held.ends or 0
        if node not in window.nodes or ends >= window.ends:
            continue
        if window.devices and not any(s.device in window.devices for s in held.shares):
            continue
        if lifetime is None or ends + lifetime > window.starts:
            running, held = None, held._replace(ends=window.ends)
    return running, held


def _give(trial: Trial, held: Holding) -> None:
    trial.placer.cluster.give(held.row, held.shares)
    trial.placer.cluster.spare[held.row] += 1


def foretell(line: Line, ends: Ends, session: PendingSession, ahead: Ahead) -> Forecast:
    """Tell when *session* starts at the latest if all end as they have declared."""
    if not len(ends):
        return Forecast(unknown=_undeclared(ends.undeclared))
    if not ahead and not session.members:
        return _alone(ends, session)
    followed = _follow(line, ends, session, ahead)
    if followed is not None:
        return followed
    alone = _alone(ends, session)
    return alone if alone.starts is None else alone._replace(exact=False)


def _alone(ends: Ends, session: PendingSession) -> Forecast:
    """Tell when it starts if nobody is before it; of several nodes nobody knows."""
    found = None if session.members else ends.first_fitting(session)
    if found is None:
        return Forecast(unknown=_undeclared(ends.undeclared))
    starts, index = found
    after = ends.sessions[index]
    return Forecast(
        starts,
        after,
        ends.held[index].row,
        window=after is None,
        contested=ends.is_contested(index),
    )


def _undeclared(count: int) -> str:
    if not count:
        return "even when all that run have ended, it does not fit as things are now"
    many = "1 session that runs does" if count == 1 else f"{count} that run do"
    return f"it hangs on when others end, and {many} not say when"


class _Course:
    """Lets those end who run, and who start meanwhile, on a copy of the nodes."""

    def __init__(self, trial: Trial, ends: Ends) -> None:
        self._trial, self._ends = trial, ends
        self._following = 0
        self._later: list[Holding] = []
        self._new: list[tuple[int, int]] = []
        """When those end that have started meanwhile."""

    def next(self) -> tuple[int, dict[int, int]] | None:
        """Let all end who end next; tell when, and of each row which end it was.

        Of who has started meanwhile that is -1.
        """
        order, new = self._ends.order, self._new
        heads = (*order[self._following : self._following + 1], *new[:1])
        if not heads:
            return None
        time = min(heads)[0]
        over: dict[int, int] = {}
        while self._following < len(order) and order[self._following][0] == time:
            _, index = order[self._following]
            self._following += 1
            over[self._ends.held[index].row] = index
            _give(self._trial, self._ends.held[index])
        while new and new[0][0] == time:
            held = self._later[heappop(new)[1]]
            over[held.row] = -1
            _give(self._trial, held)
        return time, over

    def begin(self, rooms: Iterable[Room], until: int) -> None:
        """Note who has started, and until when."""
        for room in rooms:
            heappush(self._new, (until, len(self._later)))
            self._later.append(Holding(room.row, room.shares, until))


def _follow(
    line: Line, ends: Ends, session: PendingSession, ahead: Ahead
) -> Forecast | None:
    """Replay the queue up to *session*; None if that takes too long."""
    trial = line.trial(session)
    course = _Course(trial, ends)
    ahead.add(session)
    exact = True
    steps = 0
    while (ended := course.next()) is not None:
        time, over = ended
        steps += len(over)
        is_kept = False
        for candidate in ahead.look_through():
            one = candidate.session
            steps += 1
            if steps > _MOST_STEPS:
                return None
            rooms, is_only = _take(trial, one, over)
            if rooms is None:
                is_kept = is_kept or has_waited(one, line.policy, time)
                continue
            if one is session:
                found = _starts(ends, session, time, over, rooms)
                # Devices are kept by then for one whom it would overtake.
                return found._replace(exact=exact and not is_kept)
            candidate.has_started = True
            # Which of several nodes it takes is for the policy of the group to say.
            exact &= is_only
            lifetime = one.lifetime or line.policy.max_lifetime
            if lifetime is not None:
                course.begin(rooms, time + lifetime)
    return Forecast(unknown=_undeclared(ends.undeclared))


def _starts(
    ends: Ends,
    session: PendingSession,
    time: int,
    over: Mapping[int, int],
    rooms: Sequence[Room],
) -> Forecast:
    """Say that *session* starts at that time, and who has ended *over* there then."""
    row = next((room.row for room in rooms if room.row in over), next(iter(over)))
    index = over[row]
    known = index >= 0
    after = ends.sessions[index] if known else None
    return Forecast(
        time,
        after,
        row,
        window=known and after is None,
        # What is on several nodes, or began meanwhile, leaves gaps.
        contested=bool(session.members) or not known or ends.is_contested(index),
    )


def _take(
    trial: Trial, session: PendingSession, over: Iterable[int]
) -> tuple[list[Room] | None, bool]:
    """Give *session* room where something has ended; tell whether on one node only."""
    count = len(trial.placer.cluster.nodes)
    if session.members:
        return trial.take(session), count == 1
    shape = trial.shapes.of(session)
    rows = [row for row in over if trial.placer.has_room(shape, row)]
    if not rows:
        return None, False
    among = np.zeros(count, bool)
    among[rows] = True
    return trial.take(session, among), len(rows) == 1


def find_windows(
    line: Line, session: PendingSession, snapshot: Snapshot
) -> list[ReservedWindow]:
    """List the windows on a line's nodes that are to come and not open to *session*."""
    return [
        window
        for window in snapshot.windows
        if window.ends > snapshot.now
        and set(window.open_to).isdisjoint(session.scopes)
        and not line.cluster.row.keys().isdisjoint(window.nodes)
    ]


def foretell_limit(
    line: Line,
    ends: Ends,
    session: PendingSession,
    lacking: Sequence[QuotaShortfall],
    running: Sequence[RunningSession],
) -> Forecast:
    """Tell when limits leave enough, and whether there is room for it then.

    Others may take either before it does: it is the earliest moment.
    """
    leaving = find_leaving(session, lacking, running)
    if leaving is None or leaving.ends is None:
        return Forecast(unknown="it hangs on a limit, and on who leaves room in it")
    left = Forecast(leaving.ends, leaving, line.row_of(leaving), exact=False)
    if line.trial(session).fits(session):
        return left
    room = foretell(line, ends, session, Ahead())
    if room.starts is None:
        return room
    return left if room.starts <= leaving.ends else room._replace(exact=False)


def find_leaving(
    session: PendingSession,
    lacking: Sequence[QuotaShortfall],
    running: Sequence[RunningSession],
) -> RunningSession | None:
    """Return whose declared end leaves enough in every limit, or None if nobody's does.

    Those of its scopes are let end one after the other.
    """
    missing = {
        (short.kind, short.name, short.slot): short.used + short.asked - short.limit
        for short in lacking
    }
    known = sorted(
        (one for one in running if one.ends is not None and not one.system),
        key=lambda one: (one.ends or 0, one.id),
    )
    for one in known:
        for key in missing:
            kind, _, slot = key
            if any(k == kind and k_id in _ids(session, kind) for k, k_id in one.scopes):
                missing[key] -= MILLI if slot == SESSIONS else _held(one, slot)
        if all(amount <= 0 for amount in missing.values()):
            return one
    return None


def _ids(session: PendingSession, kind: object) -> set[str]:
    return {scope for known, scope in session.scopes if known == kind}


def _held(running: RunningSession, slot: str) -> int:
    """Return how much of a slot a session holds, on all its nodes."""
    return sum(
        share.amount
        for _, shares in running.holdings
        for share in shares
        if share.slot == slot
    )
