"""Who cannot start anyway costs a pass next to nothing, and changes nothing in it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling import plan as planning
from backendai_hub.scheduling import plugins
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.shares import ShareState
from backendai_hub.scheduling.snapshot import GroupPolicy, Reservation, Snapshot
from tests.unit.scheduling_snapshots import ask, gpu, host, limit, node, pending

GROUP = "research"
REQUESTS = [ask(cpu=1), ask(cpu=2), ask(cpu=1, gpus=1), ask(gpus=2)]


@st.composite
def queues(draw: Any) -> Snapshot:
    """Several owners, of whom some may not have anything, in one group's queue."""
    people = ["alice", "bob", "carol"]
    limits = [
        limit(who, cpu=draw(st.integers(0, 3)), used_cpu=draw(st.integers(0, 2)))
        for who in people
        if draw(st.booleans())
    ]
    projects = ["one", "two"]
    limits += [limit("one", kind=ScopeKind.PROJECT, cpu=draw(st.integers(0, 4)))]
    queue = [
        pending(
            f"s{number}",
            user=draw(st.sampled_from(people)),
            project=draw(st.sampled_from(projects)),
            request=draw(st.sampled_from(REQUESTS)),
            group=GROUP,
            hold=draw(st.sampled_from(["", "", "", "it is held"])),
            priority=draw(st.sampled_from([10, 10, 20])),
        )
        for number in range(draw(st.integers(1, 12)))
    ]
    policy = GroupPolicy(
        sequencer=draw(st.sampled_from(["fifo", "lifo", "drf", "fair-share"])),
        placement=draw(st.sampled_from(["fragmentation", "concentrated"])),
        reserve_after=draw(st.sampled_from([None, 0])),
        shares=ShareState(capacity={"cpu": 8000, "cuda.device": 4000}),
    )
    nodes = [
        node(f"n{i}", host(4), gpu(f"n{i}/0"), gpu(f"n{i}/1"), group=GROUP)
        for i in range(draw(st.integers(1, 2)))
    ]
    return Snapshot(
        nodes=tuple(nodes),
        queue=tuple(queue),
        scopes={(scope.kind, scope.id): scope for scope in limits},
        groups={GROUP: policy},
    )


@settings(max_examples=300, deadline=None)
@given(queues())
def test_the_others_get_the_same_places_as_if_nobody_had_been_set_aside(seen: Snapshot):
    whole, skimmed = Pass(seen).run(), Pass(seen, skims=True).run()
    assert skimmed.placements == whole.placements
    assert skimmed.reservations == whole.reservations
    assert skimmed.waiting.keys() == whole.waiting.keys()
    assert skimmed.complete


def crowd(*, sequencer: str = "fair-share", count: int = 20) -> Snapshot:
    """Many of a project that may not have anything, and one who may."""
    scopes = [limit("default", kind=ScopeKind.PROJECT, cpu=0)]
    many = [pending(f"s{i}", cpu=1, group=GROUP) for i in range(count)]
    one = pending("zoe", user="zoe", project="other", cpu=1, group=GROUP)
    return Snapshot(
        nodes=(node("n", host(4), group=GROUP),),
        queue=(*many, one),
        scopes={(scope.kind, scope.id): scope for scope in scopes},
        groups={GROUP: GroupPolicy(sequencer=sequencer)},
    )


def test_nobody_is_decided_about_who_cannot_start():
    found = Pass(crowd(), skims=True).run()
    assert found.decided == 1
    assert [placement.session for placement in found.placements] == ["zoe"]
    assert set(found.waiting.values()) == {"project default: cpu 0 of 0 in use, asks 1"}


def test_they_are_told_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(planning, "_MOST_TOLD", 8)
    begun = Pass(crowd(), skims=True)
    steps = [begun.run() for _ in range(3)]
    assert [len(step.waiting) for step in steps] == [8, 8, 4]
    assert [step.complete for step in steps] == [False, False, True]


def test_what_is_kept_for_somebody_who_may_not_start_any_more_is_given_back():
    seen = crowd()
    kept = Reservation(
        session="s3",
        group=GROUP,
        parts=(),
        starts=None,
        displacing=True,
        victims=("gone",),
    )
    found = Pass(replace(seen, reserved=(kept,)), skims=True).run()
    assert found.returned.keys() == {"s3"}


def test_orders_of_other_packages_are_given_everybody(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    class Theirs:
        name = "theirs"

        def order(self, queue: Any, shares: Any) -> Any:
            asked.append(len(queue))
            return plugins.SEQUENCERS["fifo"].order(queue, shares)

    monkeypatch.setattr(
        "backendai_hub.scheduling.lines.find_sequencer", lambda _: Theirs()
    )
    found = Pass(crowd(sequencer="theirs"), skims=True).run()
    assert asked == [21]
    assert found.decided == 21


def test_those_set_aside_still_show_what_is_asked_for():
    seen = crowd()
    gathered: list[int] = []

    def gather(_: Any, learned: Any, queue: Any) -> list[Any]:
        gathered.append(len(queue))
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backendai_hub.scheduling.lines.gather", gather)
        Pass(seen, skims=True).run()
    assert gathered == [21]


def test_an_unknown_request_is_refused_by_itself():
    seen = crowd(count=2)
    wide = replace(seen.queue[0], id="wide", request=ResourceSlots({"cpu": 9000}))
    found = Pass(replace(seen, queue=(*seen.queue, wide)), skims=True).run()
    assert found.waiting["wide"] == "project default: cpu 0 of 0 in use, asks 9"
