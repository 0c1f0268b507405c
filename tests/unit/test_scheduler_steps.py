"""What a pass in steps tells of each step is what is new since the one before."""

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
