"""What is said of when somebody starts is what happens if all stay as they may."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from backendai_hub.core.slots import MILLI
from backendai_hub.operations.explain_words import tell_forecast
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.explained import Explanation
from backendai_hub.scheduling.held import owner_of
from backendai_hub.scheduling.scenario import from_snapshot
from backendai_hub.scheduling.shares import Path, ShareState
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    RunningSession,
    Share,
    Snapshot,
)
from tests.unit.scheduling_snapshots import host, node, pending, running, snapshot

NOW = 1000
LONG = 10_000


def full(*ends: int, queue: list[Any], policy: GroupPolicy | None = None) -> Snapshot:
    """Return one node whose every core somebody uses until one of *ends*."""
    place = node("a", host(len(ends), used=len(ends)))
    held = [
        running(f"r{i}", place, Share("a/host", "cpu", MILLI), ends=end)
        for i, end in enumerate(ends)
    ]
    there = snapshot([place], queue, policy=policy)
    return replace(there, running=tuple(held), now=NOW)


def explain(found: Snapshot, session: str = "s") -> Explanation:
    explanation = Explainer(found).explain(session)
    assert explanation is not None
    return explanation


def start_of(found: Snapshot, session: str = "s") -> int:
    """Tell when it does start if all stay as long as they may."""
    outcome = simulate(from_snapshot(found, usual_run_time=LONG))
    [seconds] = [w.seconds for w in outcome.waits if w.session == session]
    assert seconds is not None
    return found.now + seconds


def test_those_behind_it_who_need_less_may_make_it_later_and_it_says_so():
    queue = [pending(cpu=2, since=NOW), pending("small", cpu=1, lifetime=LONG)]
    found = full(1100, 1200, queue=queue)
    told = explain(found)
    assert (told.starts, told.at_the_earliest, told.behind) == (1200, True, 1)
    assert start_of(found) == 1100 + LONG, "the small one has taken a part of the room"
    said = tell_forecast(told, "r1")
    assert said.endswith("; 1 behind it in the queue may make it later")


@pytest.mark.parametrize(
    ("ends", "behind", "why"),
    [
        ((1200, 1200), {"cpu": 1}, "all of the room comes at once"),
        ((1100, 1200), {"cpu": 2}, "who asks for no less has no room before it"),
        ((1100, 1200), {"cpu": 1, "hold": "held by root"}, "who is held starts never"),
    ],
)
def test_those_behind_it_are_not_told_of_where_they_are_in_nobodys_way(
    ends: tuple[int, int], behind: dict[str, Any], why: str
):
    queue = [pending(cpu=2, since=NOW), pending("b", lifetime=LONG, **behind)]
    found = full(*ends, queue=queue)
    told = explain(found)
    assert (told.starts, told.at_the_earliest, told.behind) == (1200, False, 0), why
    assert start_of(found) == 1200


def test_for_whom_devices_are_kept_nobody_behind_makes_it_later():
    queue = [pending(cpu=2, since=0), pending("small", cpu=1, lifetime=LONG)]
    found = full(1100, 1200, queue=queue, policy=GroupPolicy(reserve_after=100))
    told = explain(found)
    assert (told.starts, told.at_the_earliest) == (1200, False)
    assert start_of(found) == 1200


def test_where_turns_move_who_asks_for_the_same_may_be_before_it_then():
    queue = [pending(cpu=1), pending("bob's", cpu=1, user="bob", lifetime=LONG)]
    found = full(1100, 1100, queue=queue, policy=GroupPolicy(sequencer="drf"))
    assert explain(found).behind == 1
    assert explain(full(1100, 1100, queue=queue)).behind == 0


def test_what_ends_together_is_free_together_for_who_is_first():
    first = pending("first", cpu=2, since=NOW, lifetime=100)
    found = full(1100, 1100, queue=[first, pending(cpu=1)])
    assert (explain(found, "first").starts, explain(found).starts) == (1100, 1200)
    assert start_of(found) == 1200


def test_who_is_beyond_its_end_makes_nobody_start_in_the_past():
    found = full(900, 2000, queue=[pending(cpu=1)])
    told = explain(found)
    assert (told.starts, told.after, told.at_the_earliest) == (NOW, "r0", True)


def live_of(held: list[RunningSession]) -> dict[Path, dict[str, int]]:
    """Tell what each of those holds who run with one core each."""
    cores = Counter(owner_of(one) for one in held)
    return {path: {"cpu": MILLI * count} for path, count in cores.items()}


@st.composite
def busy_snapshots(draw: Any) -> Snapshot:
    """One or two full nodes, and a queue of people who say how long they run."""
    places, held = [], []
    for name in "ab"[: draw(st.integers(1, 2))]:
        ends = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
        place = node(name, host(len(ends), used=len(ends)))
        places.append(place)
        held += [
            running(
                f"{name}{i}",
                place,
                Share(f"{name}/host", "cpu", MILLI),
                user=draw(st.sampled_from(["alice", "bob"])),
                ends=NOW + 100 * end,
            )
            for i, end in enumerate(ends)
        ]
    queue = [
        pending(
            f"s{i}",
            cpu=draw(st.integers(1, 4)),
            user=draw(st.sampled_from(["alice", "bob"])),
            priority=draw(st.sampled_from([10, 10, 20])),
            since=draw(st.sampled_from([0, NOW])),
            lifetime=100 * draw(st.integers(1, 6)),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    policy = GroupPolicy(
        sequencer=draw(st.sampled_from(["fifo", "lifo", "drf", "fair-share"])),
        placement=draw(st.sampled_from(["dispersed", "concentrated"])),
        reserve_after=draw(st.sampled_from([None, 500, LONG])),
        shares=ShareState(capacity={"cpu": MILLI * len(held)}, live=live_of(held)),
    )
    there = snapshot(places, queue, policy=policy)
    return replace(there, running=tuple(held), now=NOW)


@settings(max_examples=150, deadline=None)
@given(busy_snapshots())
def test_nobody_starts_later_than_at_the_latest(found: Snapshot):
    explainer = Explainer(found)
    for name in explainer.plan.waiting:
        told = explainer.explain(name)
        assert told is not None
        if told.starts is not None and not told.at_the_earliest:
            assert start_of(found, name) <= told.starts
