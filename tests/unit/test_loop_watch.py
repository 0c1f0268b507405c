"""The service tells how long its event loop is busy at a stretch."""

from __future__ import annotations

import asyncio
import time

import pytest

from backendai_hub.core.loop_watch import BOUNDS, WINDOW_SECONDS, LoopWatch
from backendai_hub.handlers.metrics import make_loop, make_watch

TURN = "backendai_hub_loop_turn_seconds"
LONGEST = "backendai_hub_loop_longest_turn_seconds"
WORK = "backendai_hub_loop_longest_work_seconds"


class Clock:
    """A time that passes when it is told to, in some of which somebody computes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.worked = 5.0
        self.watch = LoopWatch(lambda: self.now, lambda: self.worked)

    def turn(self, took: float, worked: float = 0.0) -> None:
        self.watch.begin()
        self.now += took
        self.worked += worked
        self.watch.end()

    def listen(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def read(watch: LoopWatch) -> dict[str, float]:
    lines = (line for line in watch.text().splitlines() if line[0] != "#")
    return {name: float(value) for name, value in (line.split() for line in lines)}


def test_turns_are_counted_by_how_long_they_took(clock):
    for took in (0.0, 0.0005, 0.02, 0.04, 3.0):
        clock.turn(took)
        clock.listen(10)
    said = read(clock.watch)
    assert said[f'{TURN}_bucket{{le="0.001"}}'] == 2
    assert said[f'{TURN}_bucket{{le="0.025"}}'] == 3
    assert said[f'{TURN}_bucket{{le="0.05"}}'] == 4
    assert said[f'{TURN}_bucket{{le="2.5"}}'] == 4
    assert said[f'{TURN}_bucket{{le="+Inf"}}'] == said[f"{TURN}_count"] == 5
    assert said[f"{TURN}_sum"] == pytest.approx(3.0605)


def test_a_turn_of_just_a_bound_is_within_it():
    now = [0.0]
    watch = LoopWatch(lambda: now[0], lambda: 0.0)
    watch.begin()
    now[0] = BOUNDS[3]
    watch.end()
    said = read(watch)
    assert said[f'{TURN}_bucket{{le="{BOUNDS[3]:g}"}}'] == 1
    assert said[f'{TURN}_bucket{{le="{BOUNDS[2]:g}"}}'] == 0


def test_the_longest_of_a_minute_is_told_and_then_forgotten(clock):
    assert read(clock.watch)[LONGEST] == 0
    clock.turn(0.08)
    clock.turn(0.03)
    clock.listen(20)
    clock.turn(0.05)
    assert read(clock.watch)[LONGEST] == pytest.approx(0.08)
    clock.listen(WINDOW_SECONDS - 19)
    assert read(clock.watch)[LONGEST] == pytest.approx(0.05)
    clock.turn(0.004)
    assert read(clock.watch)[LONGEST] == pytest.approx(0.05)
    clock.listen(WINDOW_SECONDS + 1)
    assert read(clock.watch)[LONGEST] == 0


def test_what_the_loop_computed_is_told_apart_from_what_it_waited_for(clock):
    clock.turn(0.09, worked=0.002)
    clock.turn(0.01, worked=0.007)
    said = read(clock.watch)
    assert said[LONGEST] == pytest.approx(0.09)
    assert said[WORK] == pytest.approx(0.007)


def test_before_the_first_turn_there_is_nothing_to_end(clock):
    clock.watch.end()
    clock.turn(0.1)
    clock.watch.end()
    assert read(clock.watch)[f"{TURN}_count"] == 1


def test_a_loop_is_watched_while_it_works_and_not_while_it_listens():
    watch = make_watch()
    began = time.monotonic()
    with asyncio.Runner(loop_factory=lambda: make_loop(watch)) as runner:
        runner.run(be_busy_and_listen())
    said = read(watch)
    assert said[LONGEST] >= said[WORK] >= 0.02
    assert said[f"{TURN}_count"] >= 2
    assert said[f"{TURN}_sum"] < time.monotonic() - began


async def be_busy_and_listen() -> None:
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass
    await asyncio.sleep(0.01)
