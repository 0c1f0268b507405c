"""What a simulation comes to, as numbers."""

from __future__ import annotations

import msgspec


class WaitFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How long those waited who started, in seconds; None where nobody did."""

    sessions: int
    started: int
    mean: float | None
    p95: int | None
    longest: int | None


class Point(msgspec.Struct, frozen=True):
    """One point of a plot: seconds since the beginning, who waits, and use."""

    at: int
    waiting: int
    used: float


class Displacement(msgspec.Struct, frozen=True, kw_only=True):
    """A session that would have to go for another, ``at`` seconds from the beginning.

    ``kind`` is ``priority``, or ``reclaim`` where the other gets back what it is
    guaranteed; with the mode ``reschedule`` it starts over later. ``ran`` is how many
    seconds of its work there were by then.
    """

    at: int
    session: str
    owner: str
    project: str
    by: str
    by_owner: str
    by_project: str
    kind: str
    mode: str
    ran: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome in numbers.

    ``wide`` are those who asked for at least four accelerators. ``use`` is the part of
    each slot that was in use on average. ``fairness`` is Jain's index over what
    projects have had for their weights: 1 is all the same, and one over their number
    is one of them everything. ``displaced`` counts who had to go for others,
    ``reclaimed`` those of them who had borrowed what others are guaranteed, and
    ``displacements`` names the first of them.
    """

    seconds: int
    waits: WaitFigures
    wide: WaitFigures
    use: dict[str, float]
    fairness: float | None
    passes: int
    points: list[Point]
    displaced: int = 0
    reclaimed: int = 0
    displacements: list[Displacement] = []
