"""When each of those who wait after a pass starts, as far as ends are declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaShortfall
from backendai_hub.scheduling.ahead import Waiting
from backendai_hub.scheduling.chains import Chains, Waits
from backendai_hub.scheduling.changes import charge_of
from backendai_hub.scheduling.explained import Explanation, Places
from backendai_hub.scheduling.forecast import (
    Ends,
    Forecast,
    find_windows,
    foretell,
    foretell_limit,
)
from backendai_hub.scheduling.limits import Limits
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.ordering import Fifo, Lifo
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    RunningSession,
    Snapshot,
)

_FIXED: Final = frozenset({Fifo.name, Lifo.name})
"""Orders in which who is behind stays behind."""


def find_shortfalls(limits: Limits, session: PendingSession) -> list[QuotaShortfall]:
    """Return every limit in the way of *session*."""
    charge = tuple(charge_of(session).items())
    found = limits.shortfalls(session.scopes, charge)
    return [shortfall for _, shortfall in found]


class Starts:
    """What is foretold after one pass; what several questions need is kept."""

    def __init__(
        self,
        snapshot: Snapshot,
        limits: Limits,
        stand: Places,
        lines: Mapping[str, Line],
    ) -> None:
        self._snapshot, self._limits = snapshot, limits
        self._stand, self._index = stand, lines
        self._queue = {session.id: session for session in snapshot.queue}
        self._waiting: dict[int, Waiting] = {}
        self._ends: dict[int, Ends] = {}
        self._chains: tuple[Mapping[str, Waits], Chains] | None = None

    def foretell(self, session: PendingSession, line: Line, place: int) -> Forecast:
        """Tell when *session* starts, at that place of a line."""
        if session.hold or line.problem:
            return Forecast(unknown=session.hold or line.problem)
        lacking = find_shortfalls(self._limits, session)
        if lacking:
            ends = self._ends_for(session, line)
            running = self._snapshot.running
            return foretell_limit(line, ends, session, lacking, running)
        if line.refuse(session):
            return Forecast(unknown="it hangs on what others leave or are guaranteed")
        waiting = self._waiting_in(line)
        ends = self._ends_for(session, line)
        found = foretell(line, ends, session, waiting.before(place))
        if found.starts is None:
            return found
        if found.starts <= self._snapshot.now:
            # Who is beyond its end has promised nothing more.
            return found._replace(starts=self._snapshot.now, exact=False)
        return self._doubt(found, session, line, place)

    def _doubt(
        self, found: Forecast, session: PendingSession, line: Line, place: int
    ) -> Forecast:
        """Say whether others of the line may make a foretold start later."""
        kept = {reservation.session for reservation in line.reservations}
        if session.id in kept:
            return found
        fixed = line.policy.sequencer in _FIXED
        if kept or not (fixed or self._stand.ahead(line, place) < 2):
            return found._replace(exact=False)
        if not found.exact or (fixed and not found.contested):
            return found
        waiting = self._waiting_in(line)
        behind = waiting.behind(session, place, fixed=fixed)
        return found._replace(exact=not behind, behind=behind)

    def once_others_end(
        self, found: Explanation, waits: Waits, others: Mapping[str, Waits]
    ) -> Explanation:
        """Tell when those have ended that it waits for, if they all say so.

        *others* are held up alike: when these start hangs on whom they wait for.
        """
        if self._chains is None or self._chains[0] is not others:
            there = {i: w for i, w in others.items() if i in self._stand.of}
            made = Chains(there, over=self._over, lifetime=self._lifetime_of)
            self._chains = others, made
        chains = self._chains[1]
        start = chains.start_of(waits)
        if isinstance(start, int):
            many = f"{start} of those it waits for"
            return replace(found, unknown=f"{many} do not say when they end")
        path = chains.path_of(start)
        runs = bool(path) and self.find_running(path[-1]) is not None
        return found.once_ended(path, start.at, runs=runs)

    def find_running(self, session_id: str) -> RunningSession | None:
        """Return what runs under this id."""
        return next((r for r in self._snapshot.running if r.id == session_id), None)

    def _waiting_in(self, line: Line) -> Waiting:
        """Return who starts in a line once there is room, found out once."""
        known = self._waiting.get(id(line))
        if known is None:
            order = map(self._queue.__getitem__, self._stand.order.get(id(line), ()))
            known = self._waiting[id(line)] = Waiting(
                (one.id if one.members else line.shape_of(one), place, one)
                for place, one in enumerate(order, 1)
                if not one.hold and self._is_allowed(one, line)
            )
        return known

    def _is_allowed(self, session: PendingSession, line: Line) -> bool:
        charge = tuple(charge_of(session).items())
        limits = self._limits
        allowed = limits.allow(limits.of(session.scopes), charge)
        return allowed and not line.refuse(session)

    def _ends_for(self, session: PendingSession, line: Line) -> Ends:
        """Return when what there is becomes free for *session*."""
        windows = find_windows(line, session, self._snapshot)
        if windows:
            return Ends(line, session, windows)
        ends = self._ends.get(id(line))
        if ends is None:
            ends = self._ends[id(line)] = Ends(line)
        return ends

    def _over(self, session_id: str) -> int | None:
        """Tell when a session is over at the latest, as far as that is declared."""
        running = self.find_running(session_id)
        if running is not None:
            return running.ends
        session, line = self._queue.get(session_id), self._index.get(session_id)
        if session is None or line is None or session_id not in self._stand.of:
            return None
        starts = self.foretell(session, line, self._stand.of[session_id]).starts
        lifetime = self._lifetime_of(session_id)
        return None if starts is None or lifetime is None else starts + lifetime

    def _lifetime_of(self, session_id: str) -> int | None:
        """Tell how long one that waits runs at most, if that is known."""
        session, line = self._queue[session_id], self._index[session_id]
        return session.lifetime or line.policy.max_lifetime
