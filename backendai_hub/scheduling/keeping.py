"""What is kept of a line's nodes: for windows, for the patient, for who displaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.backfill import Holding, Shadow, find_shadow
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.holds import Hold, free_part, hold_window, merge
from backendai_hub.scheduling.layouts import count_devices
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.snapshot import (
    WIDE,
    GroupPolicy,
    PendingSession,
    Reservation,
    ReservedPart,
    ReservedWindow,
    Share,
)
from backendai_hub.scheduling.trials import copy_nodes

_FOR_ANOTHER = "kept for a session that displaces another"


class Keeper:
    """The holds on one line's nodes, and what is promised to whom."""

    def __init__(self, cluster: Cluster, policy: GroupPolicy, now: int) -> None:
        self._cluster, self._policy, self._now = cluster, policy, now
        self.holds: list[Hold] = []
        self.reservations: list[Reservation] = []
        self.promised: list[tuple[int, Sequence[Share]]] = []
        """What is not free yet and is meant for somebody once it is, by row."""

    def keep_windows(self, windows: Iterable[ReservedWindow]) -> None:
        """Keep what windows keep now."""
        for window in windows:
            for hold in hold_window(self._cluster, window, self._now):
                self._put_aside(hold)

    def _put_aside(self, hold: Hold) -> None:
        if hold.shares:
            hold.put_aside(self._cluster)
            self.holds.append(hold)

    # --- who may use it ----------------------------------------------------------

    def open_to(
        self, session: PendingSession, ends: int | None, *, entitled: bool = False
    ) -> tuple[Hold, ...]:
        """Return the holds that *session*, which would end at *ends*, may use.

        What is kept for who borrows is open to who is *entitled*.
        """
        return tuple(
            h
            for h in self.holds
            if h.shares
            and ((entitled and h.borrows) or h.lets(session, now=self._now, ends=ends))
        )

    def use(
        self, holds: Sequence[Hold], attempt: Callable[[], list[Room] | None]
    ) -> list[Room] | None:
        """Try again with what is kept for others but free until they need it."""
        for hold in holds:
            hold.put_back(self._cluster)
        rooms = attempt()
        taken: dict[int, list[Share]] = {}
        for room in rooms or ():
            taken.setdefault(room.row, []).extend(room.shares)
        for hold in holds:
            if hold.row in taken:
                taken[hold.row] = hold.use(taken[hold.row])
            hold.put_aside(self._cluster)
        return rooms

    def release(self, session: PendingSession) -> bool:
        """Keep nothing any more for who has started; tell whether anything was."""
        own = [hold for hold in self.holds if hold.session == session.id]
        for hold in own:
            hold.put_back(self._cluster)
            self.holds.remove(hold)
        self.reservations = [r for r in self.reservations if r.session != session.id]
        return bool(own)

    # --- for who displaces ---------------------------------------------------------

    def keep_displaced(
        self,
        session: str,
        parts: Iterable[ReservedPart],
        returning: Sequence[tuple[int, Sequence[Share]]] = (),
        beside: Sequence[Hold] = (),
    ) -> None:
        """Keep what is free of *parts*, and is not *returning*; promise the rest.

        What is free includes the holds *beside* it, which have only the rest then.
        """
        for hold in beside:
            hold.put_back(self._cluster)
        wanted: dict[int, list[Share]] = {}
        for part in parts:
            row = self._cluster.row.get(part.node)
            if row is not None:
                wanted.setdefault(row, []).extend(part.shares)
        for row, found in wanted.items():
            shares = merge(found)
            back = [s for where, some in returning if where == row for s in some]
            free = self._cluster.clip(row, free_part(shares, back))
            self._put_aside(Hold(row, free, why=_FOR_ANOTHER, session=session))
            self.promised.append((row, free_part(shares, free)))
        for hold in beside:
            hold.shares = tuple(self._cluster.clip(hold.row, hold.shares))
            hold.put_aside(self._cluster)

    # --- for who has waited too long -------------------------------------------------

    def is_patient(self, session: PendingSession) -> bool:
        """Tell whether *session* has waited too long and nothing is reserved yet."""
        if not all(r.displacing and r.session != session.id for r in self.reservations):
            return False
        return self.has_waited(session)

    def has_waited(self, session: PendingSession) -> bool:
        """Tell whether *session* has waited long enough, by the present clock."""
        return has_waited(session, self._policy, self._now)

    def reserve(
        self,
        session: PendingSession,
        holdings: Sequence[Holding],
        *,
        stay: str = "",
        borrows: bool = False,
    ) -> str:
        """Keep devices for *session* and say when it starts, if anything can be."""
        trial = copy_nodes(self._cluster, self._policy)
        placer, shapes = trial.placer, trial.shapes
        shape = shapes.of(session)
        if session.members:
            shape = max(
                (shapes.asking(session, m.request) for m in session.members),
                key=lambda s: s.demand.milli,
            )

        def attempt(row: int) -> list[Room] | None:
            if not placer.has_room(shape, row):
                return None
            among = None
            if not session.members:
                among = np.zeros(len(self._cluster.nodes), bool)
                among[row] = True
            return trial.take(session, among)

        rooms = trial.take(session)
        shadow = (
            Shadow(tuple(rooms), self._now, ())
            if rooms is not None
            else find_shadow(
                placer,
                attempt,
                holdings,
                now=self._now,
                stay=self._cluster.row.get(stay, -1),
                among=self._cluster.big_enough(session),
            )
        )
        if shadow is None:
            return ""
        for hold in shadow.keep(session.id, now=self._now):
            hold.borrows = borrows
            # Of a device that is given otherwise until then there is nothing now.
            hold.shares = tuple(self._cluster.clip(hold.row, hold.shares))
            self._put_aside(hold)
        told = shadow.tell(placer, session.id, session.group)
        self.reservations.append(told)
        return reasons.tell_reservation(told, self._cluster)


def has_waited(session: PendingSession, policy: GroupPolicy, now: int) -> bool:
    """Tell whether *session* has waited long enough to get devices reserved."""
    wide = len(session.members) > 1 or count_devices(session.request) >= WIDE
    after = policy.patience(session.priority, wide=wide)
    return after is not None and now - session.since >= after


def may_be_kept_room(
    sessions: Iterable[PendingSession],
    reserved: Iterable[Reservation],
    policies: Mapping[str, GroupPolicy],
    now: int,
) -> bool:
    """Tell whether one of *sessions* may get devices reserved, as nobody there has."""
    kept = {reservation.group for reservation in reserved}
    return any(
        session.group not in kept
        and not session.hold
        and has_waited(session, policies.get(session.group, GroupPolicy()), now)
        for session in sessions
    )
