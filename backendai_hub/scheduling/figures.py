"""What an outcome comes to: waits, use and fairness, as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from backendai_hub.core.simulation import Displacement, Figures, Point, WaitFigures
from backendai_hub.scheduling.outcome import Displaced, Moment, Outcome, Wait

MOST_TOLD: Final = 20
"""How many of those who had to go are named."""
_MOST_POINTS = 200
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


def find_figures(outcome: Outcome, names: Mapping[str, str] = _NO_NAMES) -> Figures:
    """Reckon the figures of an outcome. What a question adds is not counted.

    *names* are what people call domains, projects and users, by id.
    """
    waits = [wait for wait in outcome.waits if not wait.added]
    return Figures(
        seconds=outcome.ends - outcome.begins,
        waits=count_waits(waits),
        wide=count_waits(wait for wait in waits if wait.wide),
        use=_use(outcome),
        fairness=jain(outcome.shares.values()),
        passes=outcome.passes,
        points=_points(outcome),
        displaced=len(outcome.displaced),
        reclaimed=sum(one.kind == "reclaim" for one in outcome.displaced),
        displacements=[
            _tell_displaced(one, outcome.begins, names)
            for one in outcome.displaced[:MOST_TOLD]
        ],
    )


def _tell_displaced(
    one: Displaced, begins: int, names: Mapping[str, str]
) -> Displacement:
    _, project, owner = (names.get(key, key) for key in one.owner)
    _, by_project, by_owner = (names.get(key, key) for key in one.by_owner)
    return Displacement(
        at=one.at - begins,
        session=one.session,
        owner=owner,
        project=project,
        by=one.by,
        by_owner=by_owner,
        by_project=by_project,
        kind=one.kind,
        mode=one.mode,
        ran=one.ran,
    )


def count_waits(waits: Iterable[Wait]) -> WaitFigures:
    """Reckon mean, 95th percentile and longest."""
    known = list(waits)
    seconds = sorted(w.seconds for w in known if w.seconds is not None)
    if not seconds:
        return WaitFigures(
            sessions=len(known), started=0, mean=None, p95=None, longest=None
        )
    return WaitFigures(
        sessions=len(known),
        started=len(seconds),
        mean=sum(seconds) / len(seconds),
        p95=seconds[math.ceil(0.95 * len(seconds)) - 1],
        longest=seconds[-1],
    )


def jain(shares: Iterable[float]) -> float | None:
    """Return Jain's index; None if nobody has had anything."""
    known = list(shares)
    squares = sum(share * share for share in known)
    if not squares:
        return None
    return sum(known) ** 2 / (len(known) * squares)


def _use(outcome: Outcome) -> dict[str, float]:
    lasted = outcome.ends - outcome.begins
    if lasted <= 0:
        return {}
    sums: dict[str, float] = {}
    for moment, seconds in _spans(outcome):
        for slot, amount in moment.used.items():
            sums[slot] = sums.get(slot, 0.0) + amount * seconds
    return {
        slot: sums.get(slot, 0.0) / (capacity * lasted)
        for slot, capacity in sorted(outcome.capacity.items())
        if capacity
    }


def _spans(outcome: Outcome) -> list[tuple[Moment, int]]:
    moments = outcome.moments
    ends = [*(m.at for m in moments[1:]), outcome.ends]
    return [(m, end - m.at) for m, end in zip(moments, ends, strict=True)]


def _points(outcome: Outcome) -> list[Point]:
    """Return a course of few enough points to draw, the last of each span."""
    moments: Sequence[Moment] = outcome.moments
    lasted = max(1, outcome.ends - outcome.begins)
    found: dict[int, Point] = {}
    for moment in moments:
        at = moment.at - outcome.begins
        most = _most_used(moment.used, outcome.capacity)
        found[at * _MOST_POINTS // lasted] = Point(at, moment.waiting, most)
    return list(found.values())


def _most_used(used: Mapping[str, int], capacity: Mapping[str, int]) -> float:
    """Return the part in use of the scarcest slot."""
    parts = [n / capacity[slot] for slot, n in used.items() if capacity.get(slot)]
    return round(max(parts, default=0.0), 4)
