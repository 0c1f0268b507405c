"""A pass in steps ends each of them in time, and tells what is new in it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.reconcilers import steps
from backendai_hub.reconcilers.steps import Course
from backendai_hub.scheduling.snapshot import GroupPolicy, Share
from tests.unit.scheduling_snapshots import host, node, pending, running, snapshot

OPEN = GroupPolicy(
    preemption=Preemption(enabled=True, victim_scope="resource-group"),
    reserve_after=None,
)


async def test_each_who_displaces_others_is_told_of_once_whichever_group_it_is_in(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.0)
    nodes = [node(name, host(1, used=1), group=name) for name in "xy"]
    victims = [
        running(
            f"on-{n.id}",
            n,
            Share(f"{n.id}/host", "cpu", 1000),
            user="bob",
            group=n.group,
            preemptible=True,
            started=0,
        )
        for n in nodes
    ]
    queue = [
        pending("early", cpu=1, job_priority=5, group="x"),
        pending("urgent", cpu=1, job_priority=5, group="y", priority=50),
    ]
    there = replace(
        snapshot(nodes, queue, running=victims, now=1000),
        groups={"x": OPEN, "y": OPEN},
    )
    course, told = Course(there), []
    while True:
        decided = await course.step()
        told.append([p.session for p in decided.preemptions])
        if decided.complete:
            break
    assert told[:2] == [["urgent"], ["early"]]
    assert not any(told[2:])


class Watch:
    """A clock on which some time passes whenever somebody looks at it."""

    def __init__(self, seconds: float) -> None:
        self.now, self._seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self._seconds
        return self.now


@pytest.mark.parametrize("waiting", [40, 400], ids=["here", "in-a-thread"])
@pytest.mark.parametrize("each", [0.004, 0.02, 0.3])
async def test_a_step_makes_way_after_fifty_milliseconds_and_one_more_decision(
    waiting: int, each: float
):
    watch = Watch(each)
    queue = [pending(str(i), cpu=2) for i in range(waiting)]
    course = Course(snapshot([node("n", host(1))], queue), clock=watch)
    told, took, complete = [], [], False
    while not complete:
        began = watch.now
        decided = await course.step()
        assert decided.waiting, "however slow, somebody is decided about"
        told += decided.waiting
        took.append(watch.now - began)
        complete = decided.complete
    assert told == [session.id for session in queue]
    # The first look at the clock, which says when the step began, takes time, too.
    assert max(took) <= 0.05 + 2 * each + 1e-9
    assert len(took) > 1
    assert min(took[:-1]) > 0.05, "nor is it over sooner"
