"""Whatever a pass is given, it ends, and says something of everybody."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from backendai_hub.scheduling import fragmentation
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.mix import MOST, weigh
from backendai_hub.scheduling.ordering import ShareState
from backendai_hub.scheduling.plan import Pass, plan
from backendai_hub.scheduling.snapshot import Ask, GroupPolicy, NodeState, Plan, Share
from backendai_hub.scheduling.usual import LOOKED_AT, MOST_PLAIN, Usual, gather
from tests.unit.scheduling_snapshots import (
    PLACEMENTS,
    ask,
    gpu,
    host,
    node,
    pending,
    running,
    shared,
    snapshot,
)

ODD = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308)


def decide(nodes: list[NodeState], queue: list[Any], **changes: Any) -> Plan:
    decided = plan(snapshot(nodes, queue, **changes))
    told = {p.session for p in decided.placements} | decided.waiting.keys()
    assert told == {session.id for session in queue}
    assert decided.complete
    return decided


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("sequencer", ["drf", "fair-share"])
def test_weights_and_histories_that_are_no_numbers_leave_an_order(
    odd: float, sequencer: str
):
    path = ("", "default", "alice")
    shares = ShareState(
        capacity={"cpu": 4000},
        weights={path: odd, path[:1]: odd},
        history={path: odd},
        default_weight=odd,
    )
    decided = decide(
        [node("a", host(4))],
        [pending("a", cpu=3), pending("b", cpu=3, user="bob")],
        policy=GroupPolicy(sequencer=sequencer, shares=shares),
    )
    assert len(decided.placements) == 1


@pytest.mark.parametrize("odd", ODD)
def test_odd_frequencies_of_what_is_usual_still_place(odd: float):
    typical = ((Ask(ask(cpu=1, shares=1)), odd), (Ask(ask(cpu=2, shares=0.5)), 1.0))
    decided = decide(
        [node("a", host(4), shared("g"))],
        [pending("a", cpu=1, shares=1)],
        policy=GroupPolicy(placement="fragmentation", typical=typical),
    )
    assert len(decided.placements) == 1


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_nodes_with_nothing_at_all_are_passed_over(placement: str):
    bare = node("bare")
    empty = node("empty", host(0, mem=0))
    policy = GroupPolicy(placement=placement)
    assert decide([bare, empty], [pending("s", cpu=1)], policy=policy).waiting
    with_one = [bare, empty, node("a", host(1))]
    [placed] = decide(with_one, [pending("s", cpu=1)], policy=policy).placements
    assert placed.node == "a"


def test_a_capacity_of_zero_divides_nothing():
    shares = ShareState(capacity={"cpu": 0, "mem": 0})
    for sequencer in ("drf", "fair-share"):
        policy = GroupPolicy(sequencer=sequencer, shares=shares)
        queue = [pending("a", cpu=1), pending("b", cpu=1, user="bob")]
        assert len(decide([node("n", host(4))], queue, policy=policy).placements) == 2


@pytest.mark.parametrize(
    "wish",
    [
        {"nodes": ("a",), "avoid": ("a",)},
        {"nodes": ("nowhere",)},
        {"labels": {"model": "x"}, "nodes": ("a",)},
        {"architecture": "z80"},
        {"references": {}},
        {"gpus": 1.5},
    ],
)
def test_wishes_that_contradict_each_other_wait_with_a_reason_or_start(
    wish: dict[str, Any],
):
    decided = decide([node("a", host(4), gpu("g"))], [pending("s", cpu=1, **wish)])
    assert decided.placements or decided.waiting["s"]


@pytest.mark.parametrize("jump", [-(10**9), -1, 0, 10**9])
def test_a_clock_that_jumps_delays_nobody_who_has_room(jump: int):
    place = node("a", host(4, used=2), gpu("g"))
    held = running("r", place, Share("a/host", "cpu", 2000), started=500, ends=600)
    wide = pending("wide", cpu=4, since=1000, lifetime=10)
    small = pending("small", cpu=1, since=1000, lifetime=10)
    decided = decide([place], [wide, small], running=(held,), now=1000 + jump)
    assert [p.session for p in decided.placements] == ["small"]
    again = decide(
        [place],
        [wide, small],
        running=(held,),
        reserved=decided.reservations,
        now=1000,
    )
    assert [p.session for p in again.placements] == ["small"]


def test_what_a_clock_that_was_ahead_has_reserved_is_not_kept_when_it_is_back():
    ahead = 1000 + 10**9
    place = node("a", host(4, used=2))
    held = running("r", place, Share("a/host", "cpu", 2000), started=500)
    wide = pending("wide", cpu=4, since=1000, lifetime=10)
    small = pending("small", cpu=1, since=1000)
    before = decide([place], [wide, small], running=(held,), now=ahead)
    assert [r.session for r in before.reservations] == ["wide"]
    after = decide(
        [place], [wide, small], running=(held,), reserved=before.reservations, now=1000
    )
    assert after.reservations == ()
    assert [p.session for p in after.placements] == ["small"]


def test_a_hundred_thousand_who_wait_are_looked_at_in_parts():
    request, references = ask(cpu=8), {"docker": "lab:1"}
    first = pending("0", request=request, references=references)
    queue = [replace(first, id=str(i)) for i in range(100_000)]
    one = Pass(snapshot([node("a", host(4))], queue))
    part = one.run(1000)
    assert (part.decided, part.complete) == (1000, False)
    rest = one.run()
    assert (rest.decided, rest.complete) == (99_000, True)
    assert len(rest.waiting) == 99_000
    reasons = [*part.waiting.values(), *rest.waiting.values()]
    assert len({id(reason) for reason in reasons}) == 1, "found out once for all"


def test_of_a_thousand_different_requests_only_the_usual_count(
    monkeypatch: pytest.MonkeyPatch,
):
    counted: list[int] = []

    def note(cluster: Cluster, usual: Usual) -> Any:
        counted.append(len(usual))
        return weigh(cluster, usual)

    monkeypatch.setattr(fragmentation, "weigh", note)
    queue = [
        pending(str(i), cpu=0.001 * (i + 1), shares=(0.5, 2, 0)[i % 3])
        for i in range(1000)
    ]
    policy = GroupPolicy(placement="fragmentation")
    place = node("a", host(4), shared("g"), shared("h"))
    decided = decide([place], queue, policy=policy)
    assert decided.placements
    assert counted == [MOST + MOST + MOST_PLAIN], "narrow ones, wide ones, and others"


def test_of_who_waits_only_the_first_thousand_say_what_is_usual():
    queue = [pending(str(i), cpu=0.001 * (i + 1), shares=0.5) for i in range(3000)]
    place = Cluster([node("a", host(4), shared("g"))])
    assert len(gather(place, (), queue)) == LOOKED_AT
