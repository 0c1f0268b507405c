"""Nodes that are kept between passes are as if they had been built anew each time."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.held import take
from backendai_hub.scheduling.kept_nodes import Serving
from backendai_hub.scheduling.outcome import Outcome
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    from_snapshot,
    from_trace,
)
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    ReservedWindow,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.telling import to_records
from backendai_hub.scheduling.trace import TraceError, read_trace, write_trace
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    host,
    node,
    pending,
    running,
    shared,
)


class Rebuilt:
    """What a simulation could do instead: describe every node, and build it again."""

    def __init__(self, states: Sequence[NodeState]) -> None:
        self._known = {n.id: n for n in states}
        self._serving = Serving(states)

    @property
    def states(self) -> tuple[NodeState, ...]:
        return tuple(
            replace(n, sole_owner=self._serving.owners.get(n.id))
            for n in self._known.values()
        )

    def build(self, nodes: Sequence[NodeState]) -> Cluster:
        return Cluster(nodes)

    def take(self, name: str, shares: Sequence[Share], owner: str) -> None:
        self._serving.begin(name, owner)
        self._known[name] = take(self._known[name], shares)

    def give(self, name: str, shares: Sequence[Share], owner: str) -> None:
        self._serving.end(name, owner)
        self._known[name] = take(self._known[name], shares, sign=1)


def waits(outcome: Outcome) -> dict[str, int | None]:
    return {wait.session: wait.seconds for wait in outcome.waits}


def arrive(at: int, session: PendingSession, run_time: int) -> Arrival:
    return Arrival(at=at, session=replace(session, since=at), run_time=run_time)


NODES = (
    node("a", host(8), shared("a0"), shared("a1"), group="g"),
    node("b", host(4), shared("b0"), group="g", multi_user=False),
    node("c", host(4), group="h", max_containers=2),
)

asked = st.tuples(
    st.integers(0, 6),  # when
    st.sampled_from(["g", "h"]),
    st.integers(1, 4),  # cpu
    st.sampled_from([0, 0, 0.3, 0.5, 1, 2]),
    st.integers(1, 9),  # how long
    st.sampled_from([None, 1, 3]),  # how much longer it may
    st.sampled_from(["alice", "bob"]),
    st.booleans(),  # of two containers
)


@st.composite
def scenarios(draw: Any) -> Scenario:
    """A few sessions on three nodes, under rules of all kinds."""
    arrivals = []
    for i, (at, group, cpu, gpu, run, more, user, two) in enumerate(
        draw(st.lists(asked, max_size=12))
    ):
        changes: dict[str, Any] = {
            "group": group,
            "lifetime": None if more is None else run + more,
            "user": user,
            "priority": draw(st.sampled_from([10, 20])),
            "job_priority": draw(st.sampled_from([0, 5])),
        }
        request = ask(cpu=cpu, shares=gpu if group == "g" else 0)
        session = (
            cluster_of(f"s{i}", request, request, layout="pack", **changes)
            if two
            else pending(f"s{i}", request=request, **changes)
        )
        arrivals.append(arrive(at, session, run))
    policy = GroupPolicy(
        sequencer=draw(st.sampled_from(["fifo", "lifo", "drf", "fair-share"])),
        placement=draw(
            st.sampled_from(["concentrated", "dispersed", "roundrobin"])
            | st.just("fragmentation")
        ),
        reserve_after=draw(st.sampled_from([None, 0, 3])),
        preemption=Preemption(
            enabled=draw(st.booleans()),
            mode=draw(st.sampled_from(["terminate", "reschedule"])),
            min_runtime=0,
            victim_scope="resource-group",
        ),
    )
    windows = draw(
        st.lists(
            st.builds(
                ReservedWindow,
                name=st.just("lesson"),
                starts=st.integers(0, 6),
                ends=st.integers(6, 12),
                nodes=st.sampled_from([("a",), ("b",), ("a", "c")]),
                notice=st.integers(0, 5),
            ),
            max_size=1,
        )
    )
    return Scenario(
        begins=0,
        nodes=NODES,
        arrivals=tuple(sorted(arrivals, key=lambda a: a.at)),
        groups={"g": policy, "h": policy},
        windows=tuple(windows),
    )


@given(scenarios())
@settings(max_examples=60, deadline=None)
def test_a_simulation_is_the_same_with_nodes_kept_and_built_anew(
    scenario: Scenario,
):
    assert simulate(scenario) == simulate(scenario, keep=Rebuilt)


@given(scenarios())
@settings(max_examples=30, deadline=None)
def test_simulating_changes_nothing_of_how_things_are(scenario: Scenario):
    live = Snapshot(
        nodes=scenario.nodes,
        queue=tuple(a.session for a in scenario.arrivals),
        scopes={},
        groups=scenario.groups,
        windows=scenario.windows,
    )
    before, planned = deepcopy(live), plan(live)
    simulate(from_snapshot(live, usual_run_time=5))
    assert live == before
    assert plan(live) == planned


def test_nobody_starts_in_a_window_that_is_kept_for_others():
    scenario = Scenario(
        begins=0,
        nodes=(node("a", host(4)),),
        arrivals=(
            arrive(5, pending("in-time", cpu=1, lifetime=4), 4),
            arrive(6, pending("too-long", cpu=1, lifetime=9), 9),
        ),
        windows=(ReservedWindow(name="repair", starts=10, ends=30, nodes=("a",)),),
    )
    assert waits(simulate(scenario)) == {"in-time": 0, "too-long": 24}


def test_who_is_displaced_goes_and_who_may_start_over_waits_again():
    def happen(mode: str) -> Outcome:
        rules = Preemption(enabled=True, mode=mode, min_runtime=0)  # type: ignore[arg-type]
        return simulate(
            Scenario(
                begins=0,
                nodes=(node("a", host(4)),),
                arrivals=(
                    arrive(0, pending("meek", cpu=4), 100),
                    arrive(10, pending("bold", cpu=4, job_priority=1), 20),
                ),
                groups={"": GroupPolicy(preemption=rules)},
            )
        )

    gone, again = happen("terminate"), happen("reschedule")
    assert waits(gone) == waits(again) == {"meek": 0, "bold": 0}
    assert (len(gone.displaced), gone.ends) == (1, 30)
    assert (len(again.displaced), again.ends) == (1, 130)


def test_a_node_for_one_person_is_anybodys_after_their_last_session():
    place = node("a", host(4), multi_user=False)
    scenario = Scenario(
        begins=0,
        nodes=(place,),
        arrivals=(
            arrive(0, pending("mine", cpu=1), 10),
            arrive(1, pending("more", cpu=1), 19),
            arrive(2, pending("yours", cpu=1, user="bob"), 5),
        ),
    )
    assert waits(simulate(scenario)) == {"mine": 0, "more": 0, "yours": 18}


def test_a_group_that_is_asked_for_late_sees_what_has_started_before():
    scenario = Scenario(
        begins=0,
        nodes=(node("a", host(4), group="g"), node("b", host(1), group="h")),
        arrivals=(
            arrive(0, pending("first", cpu=3, group="g"), 10),
            arrive(1, pending("anywhere", cpu=3), 10),
        ),
    )
    assert waits(simulate(scenario)) == {"first": 0, "anywhere": 9}


def test_who_runs_at_the_beginning_gives_back_what_is_not_free_yet():
    place = node("a", host(4, used=3))
    held = running("r", place, Share("a/host", "cpu", 3000), ends=7)
    scenario = Scenario(
        begins=0,
        nodes=(place,),
        running=(held,),
        arrivals=(arrive(0, pending("s", cpu=4), 1),),
    )
    assert waits(simulate(scenario)) == {"s": 7}


def test_windows_and_closed_nodes_are_written_as_a_trace_and_read_again():
    nodes = (
        node("a", host(4), shared("a0")),
        node("b", host(8), closed="is drained"),
    )
    scenario = Scenario(
        begins=100,
        nodes=nodes,
        arrivals=(
            arrive(105, pending("short", cpu=1, lifetime=4), 4),
            arrive(105, pending("long", cpu=1, lifetime=40), 40),
            arrive(106, pending("lesson", cpu=2, lifetime=60, project="x"), 60),
        ),
        windows=(
            ReservedWindow(
                name="lesson",
                starts=110,
                ends=130,
                nodes=("a",),
                devices=("a/host",),
                open_to=((ScopeKind.PROJECT, "x"),),
            ),
        ),
    )
    expected = {"short": 0, "long": 25, "lesson": 0}
    assert waits(simulate(scenario)) == expected
    written = write_trace(list(to_records(scenario)))
    assert waits(simulate(from_trace(read_trace(written)))) == expected


def test_a_window_on_a_node_that_is_not_there_is_refused():
    with pytest.raises(TraceError, match="line 2: nodes: there is no node 'x'"):
        read_trace(
            '{"kind":"node","name":"a","slots":{"cpu":"4"}}\n'
            '{"kind":"window","name":"w","starts":0,"ends":9,"nodes":["x"]}'
        )
