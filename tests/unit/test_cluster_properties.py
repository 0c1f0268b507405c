"""Whatever waits and whatever there is: all containers get room, or none takes any."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
)
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    gpu,
    host,
    node,
    pending,
    snapshot,
)
from tests.unit.test_scheduling_properties import POLICIES

LAYOUTS = ("one-node", "spread", "pack")


@st.composite
def nodes(draw: Any) -> tuple[NodeState, ...]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        gpus = [gpu(f"{name}-g{i}") for i in range(draw(st.integers(0, 3)))]
        rack = draw(st.sampled_from(["a", "b"]))
        most = draw(st.none() | st.integers(1, 3))
        made.append(
            node(
                name,
                host(draw(st.integers(1, 4))),
                *gpus,
                labels={"rack": rack},
                max_containers=most,
            )
        )
    return tuple(made)


@st.composite
def queues(draw: Any) -> tuple[PendingSession, ...]:
    made: list[PendingSession] = []
    for number in range(draw(st.integers(1, 6))):
        user = draw(st.sampled_from(["alice", "bob"]))
        amounts = {
            "cpu": draw(st.integers(1, 2)),
            "gpus": draw(st.integers(0, 2)),
        }
        size = draw(st.integers(1, 4))
        name = f"s{number}"
        if size == 1:
            made.append(pending(name, user=user, **amounts))
        else:
            requests = [ask(**amounts)] * size
            layout = draw(st.sampled_from(LAYOUTS))
            made.append(cluster_of(name, *requests, layout=layout, user=user))
    return tuple(made)


def taken_by(placements: tuple[Placement, ...]) -> Counter[tuple[str, str]]:
    taken: Counter[tuple[str, str]] = Counter()
    for placement in placements:
        for part in placement.members or (placement,):
            for share in part.shares:
                taken[share.device, share.slot] += share.amount
    return taken


@given(nodes(), queues(), POLICIES)
def test_no_part_of_a_cluster_is_ever_placed(
    there: tuple[NodeState, ...],
    queue: tuple[PendingSession, ...],
    policy: GroupPolicy,
):
    made = plan(snapshot(there, queue, policy=policy))
    asked = {session.id: session for session in queue}
    placed = {placement.session for placement in made.placements}
    assert placed.isdisjoint(made.waiting)
    for placement in made.placements:
        session = asked[placement.session]
        if not session.members:
            assert not placement.members
            continue
        names = [part.member for part in placement.members]
        assert names == [member.name for member in session.members]
        for part, member in zip(placement.members, session.members, strict=True):
            got: Counter[str] = Counter()
            for share in part.shares:
                got[share.slot] += share.amount
            assert dict(got) == dict(member.request.items())
        used = {part.node for part in placement.members}
        if session.layout == "one-node":
            assert len(used) == 1
    # Nothing is given twice, and what waits holds nothing.
    free = {
        (d.id, slot): n for x in there for d in x.devices for slot, n in d.free.items()
    }
    taken = taken_by(made.placements)
    assert all(amount <= free[key] for key, amount in taken.items())
    for one in there:
        on_it = sum(
            part.node == one.id
            for placement in made.placements
            for part in (placement.members or (placement,))
        )
        assert one.max_containers is None or on_it <= one.max_containers
