"""When a session counts as unused, by what JupyterHub says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backendai_hub.core.idleness import (
    LONGEST_SILENCE,
    REPORT_SECONDS,
    UNSEEN,
    Activity,
    ActivityWatch,
    find_idle_end,
)

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ONE = ("alice", "one")
STEP = 30


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def watch(watching: ActivityWatch, *, begin: int, end: int, said: datetime | None):
    """Have JupyterHub say the same at every look from *begin* to *end*."""
    for second in range(begin, end + 1, STEP):
        watching.note({ONE: said}, now=at(second))
    return watching.find(ONE, now=at(end))


def end_of(seconds: int, activity: Activity) -> float | None:
    ends = find_idle_end(seconds, started_at=BEGAN, activity=activity)
    return None if ends is None else (ends - BEGAN).total_seconds()


LATE = UNSEEN.total_seconds()


def test_two_reports_fit_into_the_time_in_which_a_use_may_stay_unseen():
    assert 2 * REPORT_SECONDS * 1.1 < LATE
    assert LONGEST_SILENCE < UNSEEN


@pytest.mark.parametrize("seconds", [0, -1])
def test_without_a_timeout_nothing_ends(seconds: int):
    assert end_of(seconds, Activity(BEGAN, BEGAN)) is None


def test_a_session_ends_when_it_was_unused_for_so_long_and_a_use_would_be_known():
    assert end_of(600, Activity(at(1000), BEGAN)) == 1600 + LATE


@pytest.mark.parametrize("used_at", [None, at(-5000)])
def test_before_any_report_the_time_since_it_runs_counts(used_at: datetime | None):
    assert end_of(600, Activity(used_at, BEGAN)) == 600 + LATE


def test_who_has_only_begun_to_watch_does_not_know_yet():
    """The service or the Hub has just come back: reports may still be on their way."""
    assert end_of(600, Activity(BEGAN, at(9000))) == 9000 + LATE


def test_what_has_never_been_looked_at_is_unknown():
    watching = ActivityWatch()
    assert watching.is_blind
    assert watching.find(ONE, now=BEGAN) is None


def test_what_jupyterhub_says_first_is_taken_for_when_it_was_used():
    assert watch(ActivityWatch(), begin=0, end=60, said=at(-100)) == Activity(
        at(-100), BEGAN
    )
    assert watch(ActivityWatch(), begin=0, end=60, said=None) == Activity(None, BEGAN)


def test_a_clock_that_is_ahead_does_not_make_a_use_of_the_future():
    found = watch(ActivityWatch(), begin=0, end=60, said=at(7200))
    assert found == Activity(BEGAN, BEGAN)


@pytest.mark.parametrize("skew", [-7200, 0, 7200])
def test_something_new_that_is_said_is_a_use_whatever_the_nodes_clock_says(skew: int):
    watching = ActivityWatch()
    watch(watching, begin=0, end=3000, said=at(skew))
    assert watch(watching, begin=3030, end=3090, said=at(skew + 3010)) == Activity(
        at(3030), BEGAN
    )


def test_while_jupyterhub_does_not_answer_everything_is_unknown():
    watching = ActivityWatch()
    watch(watching, begin=0, end=60, said=BEGAN)
    watching.lose_sight()
    assert watching.is_blind
    assert watching.find(ONE, now=at(61)) is None
    assert watch(watching, begin=90, end=90, said=BEGAN) == Activity(BEGAN, BEGAN)


def test_what_was_seen_too_long_ago_is_unknown():
    watching = ActivityWatch()
    watch(watching, begin=0, end=60, said=BEGAN)
    silence = LONGEST_SILENCE.total_seconds()
    assert watching.find(ONE, now=at(60 + silence)) is not None
    assert watching.find(ONE, now=at(61 + silence)) is None


@pytest.mark.parametrize("gap", [7200, -3600], ids=["asleep", "set back"])
def test_time_in_which_nobody_looked_is_no_time_without_use(gap: int):
    """The Hub was down, the machine asleep, or a clock was set."""
    watching = ActivityWatch()
    watch(watching, begin=0, end=300, said=at(-120))
    later = 300 + gap
    found = watch(watching, begin=later, end=later, said=at(-120))
    assert found == Activity(at(gap - 120), at(later))


def test_of_a_server_that_jupyterhub_does_not_name_nothing_is_known():
    watching = ActivityWatch()
    watch(watching, begin=0, end=600, said=BEGAN)
    watching.note({("bob", "one"): BEGAN}, now=at(630))
    assert watching.find(ONE, now=at(630)) is None
    found = watch(watching, begin=660, end=690, said=BEGAN)
    assert found == Activity(BEGAN, at(660)), "and it has to be watched anew"
