"""Who calls the scheduler waits for other calls to come, but not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from selectors import DefaultSelector, SelectorKey
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given

from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from tests.factories import make_platform

Passes = list[tuple[float, float]]
Told = tuple[list[float], Passes]
"""When somebody has called, and when each pass began and ended."""

LONGEST = 0.05
QUIET = 5.0
"""Shorter than it takes the scheduler to look again although nobody calls."""


class Leap(DefaultSelector):
    """Waits for nothing: its clock leaps to when something is due."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        assert timeout is not None, "nothing is due ever"
        ready = super().select(0)
        self.now += 0 if ready else max(timeout, 0)
        return ready


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop on which nothing takes time but waiting, which takes none here."""

    def __init__(self) -> None:
        self._leap = Leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return self._leap.now


def leap(story: Coroutine[Any, Any, Told]) -> Told:
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(story)


class Timed(SchedulerReconciler):
    """One whose passes take so many seconds, in turn."""

    def __init__(self, signals: Signals, lasting: Sequence[float]) -> None:
        database = Database("sqlite+aiosqlite:///never-opened")
        super().__init__(make_platform(database), signals)
        self.lasting = lasting
        self.passes: Passes = []

    async def reconcile(self) -> int:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(self.lasting[len(self.passes) % len(self.lasting)])
        self.passes.append((began, asyncio.get_running_loop().time()))
        return 0


async def call(gaps: Sequence[float], lasting: Sequence[float]) -> Told:
    """Call after each of these gaps."""
    signals = Signals()
    reconciler, clock = Timed(signals, lasting), asyncio.get_running_loop().time
    task = asyncio.create_task(reconciler.run())
    calls = []
    for gap in gaps:
        await asyncio.sleep(gap)
        calls.append(clock())
        signals.wake("scheduler")
    await asyncio.sleep(QUIET)
    task.cancel()
    return calls, reconciler.passes


def milliseconds(most: int) -> st.SearchStrategy[float]:
    return st.integers(0, most).map(lambda amount: amount / 1000)


@given(
    gaps=st.lists(milliseconds(150), min_size=1, max_size=40),
    lasting=st.lists(milliseconds(300), min_size=1, max_size=4),
)
@example(gaps=[0.001] * 1000, lasting=[0.1])
@example(gaps=[0.0] * 1000, lasting=[0.0])
def test_however_many_call_a_pass_begins_fifty_milliseconds_after_the_first_at_most(
    gaps: list[float], lasting: list[float]
):
    calls, passes = leap(call(gaps, lasting))
    for called in calls:
        busy = [ended for began, ended in passes if began < called < ended]
        free = max([called, *busy])
        begins = min(began for began, _ in passes if began >= free)
        assert begins - free <= LONGEST + 1e-9


def test_calls_that_come_all_the_time_become_one_pass_each_fifty_milliseconds():
    calls, passes = leap(call([0.001] * 1000, [0.02]))
    assert len(calls) == 1000
    assert 1.0 / (0.02 + LONGEST) <= len(passes) <= 1.0 / (0.02 + LONGEST) + 3


def test_who_calls_one_that_has_rested_waits_for_nothing():
    calls, passes = leap(call([1.0, 1.0], [0.1]))
    assert [began for began, _ in passes[1:]] == calls
