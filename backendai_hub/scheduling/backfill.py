"""When and where could who has waited too long start at the latest?

Sessions that run are let end one after the other, as late as they have declared, on a
copy of the cluster, until there is room: that is the *shadow time*, and the devices
chosen then are reserved. If nobody knows when enough of them end, the node is drained
that needs the fewest to end.

Who is there beyond its declared end has promised nothing more: it is counted on to go
soon, at a time that nobody knows, and after a while not at all, so that the devices
beside it do not stay idle for as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from backendai_hub.scheduling.cluster import Mask
from backendai_hub.scheduling.holds import Hold, free_part
from backendai_hub.scheduling.placing import Placer, Room
from backendai_hub.scheduling.snapshot import Reservation, ReservedPart, Share

_MOST_DRAINED = 64
"""How many nodes are compared for draining, of those that would have room then."""
_GRACE = 300
"""How many seconds who is beyond its end is counted on to go."""

Attempt = Callable[[int], list[Room] | None]
"""Tries to place the request once there is more room on that node."""


class Holding(NamedTuple):
    """What somebody holds on one node, and until when at the latest."""

    row: int
    shares: tuple[Share, ...]
    ends: int | None


class Shadow(NamedTuple):
    """Where a request can start, when at the latest, and who has to end before."""

    rooms: tuple[Room, ...]
    starts: int | None
    ended: tuple[Holding, ...]

    def keep(self, session: str, *, now: int) -> list[Hold]:
        """Return what is free of it now, and must be again by then."""
        holds = []
        for room in self.rooms:
            back = [s for h in self.ended if h.row == room.row for s in h.shares]
            hold = Hold(
                room.row,
                free_part(room.shares, back),
                why="kept for a session that has waited longer",
                needed=self.starts,
                session=session,
            )
            hold.patient = now
            holds.append(hold)
        return holds

    def tell(self, placer: Placer, session: str, group: str) -> Reservation:
        """Return the reservation as it is told and stored."""
        nodes = placer.cluster.nodes
        return Reservation(
            session=session,
            group=group,
            starts=self.starts,
            parts=tuple(
                ReservedPart(node=nodes[r.row].id, shares=r.shares) for r in self.rooms
            ),
        )


def find_shadow(
    placer: Placer,
    attempt: Attempt,
    holdings: Iterable[Holding],
    *,
    now: int,
    stay: int = -1,
    among: Mask | None = None,
) -> Shadow | None:
    """Return where the request can start at the latest, or None if it never can.

    ``placer`` is one on a copy of the cluster, which is changed. ``stay`` is the row
    that is being drained already, if so. ``among`` are the nodes that could take a
    part of it if they were empty: what ends elsewhere is of no use to it.
    """
    ended: list[Holding] = []
    holdings = [held for held in holdings if among is None or among[held.row]]
    known = [
        (h.ends, h.row, h) for h in holdings if h.ends is not None and h.ends > now
    ]
    for ends, row, held in sorted(known, key=lambda k: k[:2]):
        placer.cluster.give(row, held.shares)
        placer.cluster.spare[row] += 1
        ended.append(held)
        if rooms := attempt(row):
            return Shadow(tuple(rooms), ends, tuple(ended))
    unknown: dict[int, list[Holding]] = {}
    overdue = [
        h for h in holdings if h.ends is not None and now - _GRACE <= h.ends <= now
    ]
    for held in (*overdue, *(h for h in holdings if h.ends is None)):
        unknown.setdefault(held.row, []).append(held)
    return _drain(placer, attempt, unknown, ended, stay)


def _drain(
    placer: Placer,
    attempt: Attempt,
    unknown: dict[int, list[Holding]],
    ended: list[Holding],
    stay: int,
) -> Shadow | None:
    """Choose the node where the fewest sessions of unknown length are in the way."""
    rows = sorted(unknown, key=lambda row: (row != stay, len(unknown[row]), row))
    best: tuple[int, int] | None = None
    compared = 0
    for row in rows:
        if compared == _MOST_DRAINED or (best is not None and best[0] <= 1):
            break
        rooms, count = _drain_row(placer, attempt, row, unknown[row])
        for room in reversed(rooms):
            placer.undo(room)
        for held in unknown[row][:count]:
            placer.cluster.take(row, held.shares)
            placer.cluster.spare[row] -= 1
        compared += bool(rooms)
        if rooms and (best is None or count < best[0]):
            best = (count, row)
            if row == stay:
                break
    chosen = [best[1]] if best is not None else rows
    for row in chosen:
        rooms, count = _drain_row(placer, attempt, row, unknown[row])
        ended += unknown[row][:count]
        if rooms:
            return Shadow(tuple(rooms), None, tuple(ended))
    return None


def _drain_row(
    placer: Placer, attempt: Attempt, row: int, holdings: Sequence[Holding]
) -> tuple[list[Room], int]:
    """Let sessions of one node end until there is room; tell how many."""
    for count, held in enumerate(holdings, start=1):
        placer.cluster.give(row, held.shares)
        placer.cluster.spare[row] += 1
        if rooms := attempt(row):
            return rooms, count
    return [], len(holdings)
