"""How past use counts against whose turn it is: the formulas, and their limits.

Use is kept as resource-seconds per day. A day counts half after each half-life, and
no longer at all after the lookback. What is left is divided by what the group could
have given in that time, slot by slot; the mean over the slots, by their weights, is
the *usage* U of a scope. With the scope's weight w its *factor* is ``2 ** (-U / w)``:
1 for a newcomer, a half for who has used as much as they weigh, ever less beyond.

Weights come from people and capacities from nodes, so nothing here stumbles over
either: a slot of which there is none counts nothing, and what is no sensible number is
brought into range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.groups import FairShare

LEAST_WEIGHT: Final = 0.001
MOST_WEIGHT: Final = 1_000_000.0
DAY: Final = 86_400
"""Seconds."""
MOST_DAYS: Final = 400
"""How many days are counted at once, whatever a clock says."""

_STEEPEST: Final = 10.0
"""Factors differ between ``2 ** -10`` and 1; beyond, all are alike."""
_MOST_USAGE: Final = 1e300


class UsageDay(msgspec.Struct, frozen=True):
    """What was held on one day: smallest units of each slot, times seconds."""

    day: date
    seconds: Mapping[str, float]


def read_weight(field: str, given: float) -> float:
    """Check a weight that somebody gives; raises :class:`InvalidRequestError`."""
    if not (math.isfinite(given) and LEAST_WEIGHT <= given <= MOST_WEIGHT):
        raise InvalidRequestError(
            f"{field}: {given:g} will not do; a weight is a number from"
            f" {LEAST_WEIGHT:g} to {MOST_WEIGHT:,.0f}, such as 2 for twice as much as"
            " others"
        )
    return float(given)


def clamp_weight(weight: float) -> float:
    """Bring a weight into range, whatever it is; what is no number weighs 1."""
    if math.isnan(weight):
        return 1.0
    return min(max(weight, LEAST_WEIGHT), MOST_WEIGHT)


def clamp_usage(usage: float) -> float:
    """Bring a usage into range; what is no number is none."""
    if math.isnan(usage):
        return 0.0
    return min(max(usage, 0.0), _MOST_USAGE)


def decay(age_days: int, rules: FairShare) -> float:
    """Tell how much of a day's use still counts, *age_days* later.

    Ages are counted in whole decay units: all days of a unit count alike. Days beyond
    the lookback, and days that are yet to come (somebody's clock was wrong), do not
    count.
    """
    if not 0 <= age_days < rules.lookback_days:
        return 0.0
    whole = age_days // rules.decay_unit_days * rules.decay_unit_days
    return float(2.0 ** -min(whole / rules.half_life_days, 1000.0))


def split_days(start: datetime, end: datetime) -> list[tuple[date, float]]:
    """Split the time from *start* to *end* into days (UTC) and seconds of each.

    If *end* is before *start*, the seconds are negative: they take back what has been
    counted too much. Of more than :data:`MOST_DAYS` the last ones are told.
    """
    sign = 1.0 if start <= end else -1.0
    first, last = sorted((start.astimezone(UTC), end.astimezone(UTC)))
    first = max(first, last - timedelta(days=MOST_DAYS))
    found = []
    while first < last:
        midnight = datetime.combine(first.date(), time(), UTC) + timedelta(days=1)
        until = min(midnight, last)
        found.append((first.date(), sign * (until - first).total_seconds()))
        first = until
    return found


def sum_usage(
    days: Iterable[UsageDay], today: date, rules: FairShare
) -> dict[str, float]:
    """Add up what was used of each slot, old days counting less."""
    sums: dict[str, float] = {}
    for used in days:
        counts = decay((today - used.day).days, rules)
        if not counts:
            continue
        for slot, seconds in used.seconds.items():
            sums[slot] = sums.get(slot, 0.0) + clamp_usage(seconds) * counts
    return sums


def find_usage(
    seconds: Mapping[str, float], capacity: Mapping[str, int], rules: FairShare
) -> float:
    """Return the usage U: the mean share of the group, over slots by their weights.

    A slot without a weight of its own weighs 1; one that weighs 0 does not count.
    """
    total = weights = 0.0
    for slot, amount in capacity.items():
        weight = slot_weight(slot, rules)
        if amount <= 0 or weight <= 0:
            continue
        possible = float(amount) * rules.lookback_days * DAY
        total += weight * seconds.get(slot, 0.0) / possible
        weights += weight
    return clamp_usage(total / weights) if weights else 0.0


def slot_weight(slot: str, rules: FairShare) -> float:
    """Tell how much a slot counts beside others."""
    weight = rules.resource_weights.get(slot, 1.0)
    return min(weight, MOST_WEIGHT) if weight > 0 else 0.0


def find_factor(usage: float, weight: float) -> float:
    """Return the factor ``2 ** (-U / w)``, between ``2 ** -10`` and 1."""
    exponent = clamp_usage(usage) / clamp_weight(weight)
    return float(2.0 ** -min(exponent, _STEEPEST))
