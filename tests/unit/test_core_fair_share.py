"""The formulas of fair share, against what they come to on paper."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fair_share import (
    DAY,
    LEAST_WEIGHT,
    MOST_WEIGHT,
    UsageDay,
    clamp_usage,
    clamp_weight,
    decay,
    find_factor,
    find_usage,
    read_weight,
    sum_usage,
)
from backendai_hub.core.groups import FairShare

TODAY = date(2026, 3, 31)
ODD = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308)


def days_ago(age: int, **seconds: float) -> UsageDay:
    return UsageDay(TODAY - timedelta(days=age), seconds)


def test_use_counts_half_after_each_half_life():
    rules = FairShare(half_life_days=7, lookback_days=28)

    assert decay(0, rules) == 1
    assert decay(7, rules) == 0.5
    assert decay(14, rules) == 0.25
    assert decay(3, rules) == pytest.approx(2 ** (-3 / 7))


def test_use_before_the_lookback_does_not_count():
    rules = FairShare(half_life_days=7, lookback_days=28)

    assert decay(27, rules) > 0
    assert decay(28, rules) == 0


def test_use_on_days_that_are_yet_to_come_does_not_count():
    assert decay(-1, FairShare()) == 0


def test_the_days_of_a_unit_count_alike():
    weekly = FairShare(half_life_days=7, lookback_days=28, decay_unit_days=7)

    assert decay(6, weekly) == 1
    assert decay(7, weekly) == decay(13, weekly) == 0.5


def test_the_smallest_half_life_forgets_everything_but_today():
    rules = FairShare(half_life_days=5e-324, lookback_days=28)

    assert decay(0, rules) == 1
    assert decay(1, rules) == pytest.approx(0)


def test_who_held_half_the_group_all_of_today_has_used_a_56th_of_28_days():
    rules = FairShare(half_life_days=7, lookback_days=28)
    seconds = sum_usage([days_ago(0, cpu=4000.0 * DAY)], TODAY, rules)

    assert find_usage(seconds, {"cpu": 8000}, rules) == pytest.approx(0.5 / 28)


def test_the_whole_group_held_for_the_whole_lookback_is_the_mean_of_the_decay():
    rules = FairShare(half_life_days=7, lookback_days=28)
    always = [days_ago(age, cpu=8000.0 * DAY) for age in range(40)]
    seconds = sum_usage(always, TODAY, rules)

    # A geometric series: (1 - q**28) / (1 - q) / 28 with q = 2 ** (-1 / 7).
    q = 2 ** (-1 / 7)
    assert find_usage(seconds, {"cpu": 8000}, rules) == pytest.approx(
        (1 - q**28) / (1 - q) / 28
    )


def test_slots_count_by_their_weights():
    rules = FairShare(lookback_days=1, resource_weights={"cuda.device": 3})
    seconds = {"cpu": 8000.0 * DAY, "cuda.device": 0.0}
    capacity = {"cpu": 8000, "cuda.device": 4000}

    assert find_usage(seconds, capacity, rules) == 0.25
    assert find_usage({"cuda.device": 2000.0 * DAY}, capacity, rules) == 0.375


def test_a_slot_that_weighs_nothing_does_not_count():
    rules = FairShare(lookback_days=1, resource_weights={"cpu": 0})

    assert find_usage({"cpu": 8000.0 * DAY}, {"cpu": 8000, "mem": 1}, rules) == 0
    assert find_usage({"cpu": 8000.0 * DAY}, {"cpu": 8000}, rules) == 0


def test_a_slot_of_which_there_is_none_does_not_count():
    rules = FairShare(lookback_days=1)
    held = {"cpu": 4000.0 * DAY, "tpu.device": 1e12}

    assert find_usage(held, {"cpu": 8000, "tpu.device": 0}, rules) == 0.5
    assert find_usage(held, {}, rules) == 0


def test_a_newcomer_has_the_best_factor():
    assert find_factor(0, 1) == 1


def test_a_factor_halves_with_every_weight_that_is_used():
    assert find_factor(1, 1) == 0.5
    assert find_factor(1, 2) == pytest.approx(2**-0.5)
    assert find_factor(2, 1) == 0.25


def test_factors_end_at_a_thousandth():
    assert find_factor(10, 1) == find_factor(1e300, 1) == 2**-10


@pytest.mark.parametrize("odd", ODD)
def test_no_weight_breaks_the_formulas(odd):
    assert LEAST_WEIGHT <= clamp_weight(odd) <= MOST_WEIGHT
    assert 2**-10 <= find_factor(0.5, odd) <= 1


@pytest.mark.parametrize("odd", ODD)
def test_no_usage_breaks_the_formulas(odd):
    assert clamp_usage(odd) >= 0
    assert 2**-10 <= find_factor(odd, 1) <= 1
    used = sum_usage([days_ago(0, cpu=odd)], TODAY, FairShare())
    assert 0 <= find_usage(used, {"cpu": 1000}, FairShare()) < math.inf


@pytest.mark.parametrize("odd", [*ODD, LEAST_WEIGHT / 2, MOST_WEIGHT * 2])
def test_a_weight_that_makes_no_sense_is_refused_with_what_would(odd):
    with pytest.raises(InvalidRequestError, match=r"from 0\.001 to 1,000,000,"):
        read_weight("weight", odd)


def test_sensible_weights_are_taken():
    assert read_weight("weight", 2) == 2
    assert read_weight("weight", LEAST_WEIGHT) == LEAST_WEIGHT


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_more_use_never_makes_a_better_factor(used, half_life, lookback):
    rules = FairShare(half_life_days=half_life, lookback_days=lookback)
    days = [days_ago(age, cpu=amount * DAY) for age, amount in used]
    factors = [
        find_factor(
            find_usage(sum_usage(days[:count], TODAY, rules), {"cpu": 3}, rules), 1
        )
        for count in range(len(days) + 1)
    ]
    assert factors == sorted(factors, reverse=True)
