"""What is said of who waits: the smallest change that would start it, and when."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.chains import Waits
from backendai_hub.scheduling.changes import Change, tell_change
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.explained import Explanation, Options
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.shares import ShareState, path_of
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    ReservedWindow,
    ScopeQuota,
    Share,
    Snapshot,
)
from tests.unit.scheduling_snapshots import (
    GIB,
    ask,
    cluster_of,
    gpu,
    host,
    node,
    pending,
    running,
    shared,
    snapshot,
)
from tests.unit.test_scheduling_properties import snapshots


def explain(found: Snapshot, name: str = "s", **more: Any) -> Explanation:
    known = {key: more.pop(key) for key in ("waits", "others") if key in more}
    explanation = Explainer(found).explain(name, Options(**more), **known)
    assert explanation is not None
    return explanation


def limit(kind: str, name: str, used: dict[str, float], **limits: float) -> QuotaScope:
    def milli(amounts: dict[str, float]) -> dict[str, int]:
        return {slot: round(amount * MILLI) for slot, amount in amounts.items()}

    return QuotaScope(
        kind=ScopeKind(kind), id=name, name=name, limits=milli(limits), used=milli(used)
    )


def told(found: Snapshot, name: str = "s", **more: Any) -> list[str]:
    """Return what would start it, in words."""
    session = next(s for s in found.queue if s.id == name)
    return [tell_change(c, session) for c in explain(found, name, **more).changes]


def starts(found: Snapshot, name: str = "s") -> bool:
    return any(p.session == name for p in plan(found).placements)


def test_less_of_the_slot_that_lacks_would_start_it():
    there = [node("a", host(8, mem=64 * GIB, used_mem=8 * GIB))]
    found = snapshot(there, [pending(cpu=1, mem=64 * GIB)])
    assert told(found) == ["with 56 GiB mem instead of 64 GiB"]


def test_half_a_gpu_would_start_where_one_is_half_used():
    there = [node("a", host(8), shared("g0", used=0.5), shared("g1", used=0.75))]
    found = snapshot(there, [pending(cpu=1, shares=1)])
    assert told(found) == ["with 0.5 cuda.shares instead of 1"]


def test_whole_devices_stay_whole():
    there = [node("a", host(8), gpu("g0"), gpu("g1", used=1))]
    found = snapshot(there, [pending(cpu=1, gpus=2)])
    assert told(found) == ["with 1 cuda.device instead of 2"]
    there = [node("a", host(8), gpu("g1", used=1))]
    assert told(snapshot(there, [pending(cpu=1, gpus=1)])) == []


def test_no_half_a_device_is_named_where_a_limit_leaves_half_of_one():
    there = [node("a", host(8), gpu("g0"))]
    half = [limit("user", "alice", used={}, **{"cuda.device": 0.5})]
    assert told(snapshot(there, [pending(cpu=1, gpus=1)], half)) == []


def test_the_nearest_node_decides_what_less_is():
    there = [
        node("a", host(8, used=7), shared("g0")),
        node("b", host(8, used=2), shared("g1")),
    ]
    found = snapshot(there, [pending(cpu=8, shares=1)])
    assert told(found)[0] == "with 6 cpu instead of 8"


def test_less_of_two_slots_is_named_when_one_is_not_enough():
    there = [node("a", host(8, used=6, mem=8 * GIB, used_mem=4 * GIB))]
    found = snapshot(there, [pending(cpu=4, mem=8 * GIB)])
    assert told(found) == [
        "with 2 cpu instead of 4 and with 4 GiB mem instead of 8 GiB"
    ]


def test_nothing_below_what_the_environment_needs_is_named():
    there = [node("a", host(8, mem=4 * GIB))]
    found = snapshot(there, [pending(cpu=1, mem=8 * GIB)])
    assert told(found, least={"mem": 4 * GIB}) == ["with 4 GiB mem instead of 8 GiB"]
    assert told(found, least={"mem": 5 * GIB}) == []


def test_without_the_node_it_names_it_would_start():
    there = [node("a", host(2, used=2)), node("b", host(2))]
    found = snapshot(there, [pending(cpu=1, nodes=("a",))])
    assert told(found)[0] == "if it did not insist on the node a"


def test_without_a_label_it_would_start():
    there = [node("a", host(2), labels={"zone": "east"})]
    found = snapshot(there, [pending(cpu=1, labels={"zone": "west"})])
    assert told(found) == ["without the label zone=west"]


def test_another_resource_group_is_named_only_if_it_is_open_to_it():
    there = [node("a", host(2, used=2), group="x"), node("b", host(2), group="y")]
    found = snapshot(there, [pending(cpu=1, group="x")])
    assert told(found) == []
    assert told(found, groups=("x", "y")) == ["in the resource group y"]


def test_a_project_that_used_less_would_let_it_start():
    there = [node("a", host(8), shared("g0"), shared("g1"))]
    scopes = [limit("project", "vision", used={"cuda.shares": 8}, **{"cuda.shares": 8})]
    found = snapshot(there, [pending(cpu=1, shares=1, project="vision")], scopes)
    assert told(found) == ["if project vision used 1 cuda.shares less"]
    assert explain(found).reasons == (
        "project vision: cuda.shares 8 of 8 in use, asks 1",
    )


def test_what_a_limit_leaves_is_named_before_what_others_would_have_to_leave():
    there = [node("a", host(8))]
    scopes = [limit("project", "vision", used={"cpu": 3}, cpu=4)]
    found = snapshot(there, [pending(cpu=2, project="vision")], scopes)
    assert told(found) == [
        "with 1 cpu instead of 2",
        "if project vision used 1 cpu less",
    ]


def test_what_a_limit_never_allows_is_nothing_that_others_could_leave():
    scopes = [limit("user", "alice", used={}, cpu=1)]
    found = snapshot([node("a", host(8))], [pending(cpu=2)], scopes)
    assert told(found) == ["with 1 cpu instead of 2"]


def test_those_who_take_what_becomes_free_first_are_reckoned_with():
    scopes = [limit("user", "alice", used={"cpu": 4}, cpu=4)]
    queue = [pending("first", cpu=2), pending("s", cpu=1)]
    found = snapshot([node("a", host(8))], queue, scopes)
    assert told(found, "first") == ["if user alice used 2 cpu less"]
    assert told(found) == ["if user alice used 3 cpu less"]


def test_fewer_containers_would_start():
    there = [node("a", host(4)), node("b", host(2, used=2))]
    asked = [ask(cpu=2)] * 4
    found = snapshot(there, [cluster_of("s", *asked, layout="pack")])
    assert told(found) == ["with 2 containers instead of 4"]


def test_a_session_that_is_held_is_told_why_and_whether_that_is_all():
    found = snapshot([node("a", host(2))], [pending(cpu=1, hold="held by alice")])
    explanation = explain(found)
    assert explanation.reasons == ("held by alice",)
    assert explanation.unknown == "held by alice"
    assert told(found) == ["if nothing held it up"]
    assert not explanation.changes[0].is_own
    found = snapshot([node("a", host(2))], [pending(cpu=3, hold="held by alice")])
    assert told(found) == ["if nothing held it up and with 2 cpu instead of 3"]


def test_who_waits_in_a_frozen_group_is_told_of_another():
    there = [node("a", host(4), group="x"), node("b", host(4), group="y")]
    held = pending(cpu=1, group="x", hold="resource group x is frozen")
    found = snapshot(there, [held])
    both = ("x", "y")
    assert told(found, groups=both, leaves_hold=True) == [
        "in the resource group y",
        "if nothing held it up",
    ]
    for change in explain(found, groups=both, leaves_hold=True).changes:
        assert starts(change.apply(found, "s"))
        assert change.is_own is (change.group == "y")
    assert told(found, groups=both) == ["if nothing held it up"]


def test_less_long_would_start_before_a_window():
    window = ReservedWindow(name="fans", starts=3630, ends=9000, nodes=("a",))
    there = [node("a", host(4))]
    found = snapshot(there, [pending(cpu=2, lifetime=7200)], windows=(window,))
    assert told(found, timed=True) == ["with a time limit of 1h"]
    assert told(found) == [], "its owner does not say how long it runs"
    found = snapshot(there, [pending(cpu=2)], windows=(window,))
    assert told(found, timed=True) == ["with a time limit of 1h"]


def test_less_long_would_start_beside_what_is_kept_for_another():
    place, held = busy(1300)
    queue = [pending("wide", cpu=4), pending(cpu=1, lifetime=3000, since=1)]
    place = replace(place, devices=(host(4, used=2, name="a/host"),))
    policy = GroupPolicy(reserve_after=0)
    held = running("r", place, Share("a/host", "cpu", 2000), started=0, ends=1300)
    found = snapshot([place], queue, policy=policy, running=(held,), now=10)
    assert told(found, timed=True)[:1] == ["with a time limit of 21m"]


def test_what_others_have_of_a_maximum_is_told_as_what_they_would_leave():
    place = node("a", host(8, used=2))
    session = pending(cpu=2)
    held = running("r", place, Share("a/host", "cpu", 2000), ends=100)
    path = path_of(session)[:2]
    for maximum, said in ((2000, "2"), (3000, "1")):
        quota = ScopeQuota(guaranteed={}, maximum={"cpu": maximum})
        policy = GroupPolicy(quotas={path: quota})
        found = snapshot([place], [session], policy=policy, running=(held,), now=10)
        assert f"if project default used {said} cpu less in this group" in told(found)
    quota = ScopeQuota(guaranteed={}, maximum={"cpu": 1000})
    policy = GroupPolicy(quotas={path: quota})
    found = snapshot([place], [session], policy=policy, running=(held,), now=10)
    assert told(found) == [], "it may never have as much"


def test_on_several_nodes_a_cluster_would_start_that_wants_one():
    there = [node("a", host(2)), node("b", host(2))]
    found = snapshot(there, [cluster_of("s", ask(cpu=2), ask(cpu=2))])
    assert told(found)[0] == "with its containers on several nodes"


def test_two_changes_are_told_where_none_is_enough_by_itself():
    label = {"zone": "west"}
    there = [
        node("a", host(2), labels={"zone": "east"}),
        node("b", host(8, used=8), labels=label),
    ]
    found = snapshot(there, [pending(cpu=4, labels=label)])
    assert told(found) == ["with 2 cpu instead of 4 and without the label zone=west"]

    there = [node("a", host(2, used=2), group="x"), node("b", host(2), group="y")]
    found = snapshot(there, [pending(cpu=4, group="x")])
    assert told(found, groups=("x", "y")) == [
        "with 2 cpu instead of 4 and in the resource group y"
    ]

    there = [node("a", host(2)), node("b", host(2))]
    found = snapshot(there, [cluster_of("s", ask(cpu=3), ask(cpu=3), layout="spread")])
    assert told(found) == ["with 2 cpu instead of 3 for each container"]

    own = limit("user", "alice", {"cpu": 4}, cpu=4)
    found = snapshot([node("a", host(1))], [pending(cpu=2)], [own])
    assert told(found) == ["if user alice used 1 cpu less and with 1 cpu instead of 2"]


def test_every_reason_is_told_at_once():
    there = [node("a", host(1))]
    scopes = [limit("project", "vision", used={"cpu": 2}, cpu=3)]
    found = snapshot(there, [pending(cpu=2, project="vision")], scopes)
    reasons = explain(found).reasons
    assert reasons[0].startswith("project vision: cpu 2 of 3")
    assert reasons[1].startswith("cpu: asks 2, 1 free on a")


@pytest.mark.parametrize(
    "hold",
    [
        "held by root since 2026-01-01",
        "waits for prepare (RUNNING) to succeed; is to start at noon at the earliest",
        "resource group gpus is frozen",
    ],
)
def test_who_is_held_is_told_what_it_would_wait_for_afterwards_as_well(hold: str):
    scopes = [limit("project", "vision", used={"cpu": 2}, cpu=3)]
    held = pending(cpu=2, project="vision", hold=hold)
    found = snapshot([node("a", host(1))], [held], scopes)
    first, second, third = explain(found).reasons
    assert first == hold
    assert second.startswith("project vision: cpu 2 of 3")
    assert third.startswith("cpu: asks 2, 1 free on a")
    assert plan(found).waiting["s"] == f"{hold}; {second}", "what is stored"
    assert Explainer(replace(found, queue=())).consider(held).explanation.reasons == (
        first,
        second,
        third,
    )


def test_a_group_that_cannot_work_tells_limits_and_room_as_well():
    scopes = [limit("project", "vision", used={"cpu": 2}, cpu=3)]
    queue = [pending(cpu=2, project="vision")]
    policy = GroupPolicy(placement="astrology")
    reasons = explain(
        snapshot([node("a", host(1))], queue, scopes, policy=policy)
    ).reasons
    assert "no placement called 'astrology'" in reasons[0]
    assert reasons[1].startswith("project vision: cpu 2 of 3")
    assert reasons[2].startswith("cpu: asks 2, 1 free on a")
    assert len(explain(snapshot([], queue)).reasons) == 1, "no nodes, no numbers"


def test_positions_count_those_who_wait_for_the_same_nodes():
    there = [node("a", host(1), group="x"), node("b", host(0), group="y")]
    queue = [pending(n, cpu=2, group="x") for n in "pq"]
    queue.append(pending("r", cpu=1, group="y"))
    found = snapshot(there, queue)
    assert [(e.position, e.waiting) for e in (explain(found, n) for n in "pqr")] == [
        (1, 2),
        (2, 2),
        (1, 1),
    ]
    started = snapshot(there, [pending(cpu=1, group="x")])
    assert Explainer(started).explain("s") is None
    assert Explainer(started).explain("nobody") is None


# --- when it starts ------------------------------------------------------------------


def busy(*ends: int | None, cores: int = 4) -> tuple[Any, list[Any]]:
    """Return a node whose every core somebody uses until one of *ends*."""
    place = node("a", host(cores, used=len(ends)))
    held = [
        running(f"r{i}", place, Share("a/host", "cpu", MILLI), ends=end)
        for i, end in enumerate(ends)
    ]
    return place, held


def waiting(place: Any, held: Any, *queue: Any, now: int = 0) -> Snapshot:
    return replace(snapshot([place], list(queue)), running=tuple(held), now=now)


def test_it_starts_when_enough_of_those_that_run_have_ended():
    place, held = busy(300, 100, 200, 400)
    explanation = explain(waiting(place, held, pending(cpu=2)))
    assert (explanation.starts, explanation.after, explanation.node) == (200, "r2", "a")
    assert not explanation.at_the_earliest


def test_those_before_it_take_what_becomes_free_first():
    place, held = busy(100, 200, 300, 400)
    found = waiting(place, held, pending("first", cpu=1), pending(cpu=1))
    assert (explain(found, "first").starts, explain(found).starts) == (100, 200)


def test_those_before_it_who_are_held_are_not_in_its_way():
    place, held = busy(100, 200, 300, 400)
    first = pending("first", cpu=1, hold="held by root")
    explanation = explain(waiting(place, held, first, pending(cpu=1)))
    assert (explanation.position, explanation.ahead) == (2, 0)
    assert explanation.starts == 100


def test_those_before_it_who_end_in_time_make_room_again():
    place, held = busy(100, 9000, 9000, 9000)
    first = pending("first", cpu=1, lifetime=50)
    assert explain(waiting(place, held, first, pending(cpu=1))).starts == 150


def test_nobody_knows_when_it_starts_if_nobody_says_when_they_end():
    place, held = busy(None, None, None, None)
    explanation = explain(waiting(place, held, pending(cpu=1)))
    assert explanation.starts is None
    assert "4 that run do not say when" in explanation.unknown


def test_a_long_queue_before_it_gives_the_earliest_moment_only():
    place, held = busy(*range(100, 104))
    queue = [pending(f"p{i}", cpu=3 + i / 1000) for i in range(700)]
    explanation = explain(waiting(place, held, *queue, pending(cpu=1)))
    assert (explanation.starts, explanation.at_the_earliest) == (100, True)


def window(starts: int, ends: int, **changes: Any) -> ReservedWindow:
    return ReservedWindow(
        name="fans", starts=starts, ends=ends, nodes=("a",), **changes
    )


def test_what_a_window_keeps_comes_back_when_it_is_over():
    found = replace(
        snapshot([node("a", host(2))], [pending(cpu=2)]),
        windows=(window(0, 500),),
        now=10,
    )
    told = explain(found)
    assert (told.starts, told.node, told.window) == (500, "a", True)
    assert starts(replace(found, now=500))


def test_what_becomes_free_within_a_window_is_kept_until_its_end():
    found = waiting(*busy(100, 100, cores=2), pending(cpu=2))
    for begins, session, moment in (
        (200, pending(cpu=2), 500),
        (200, pending(cpu=2, lifetime=101), 500),
        (200, pending(cpu=2, lifetime=100), 100),
        (600, pending(cpu=2, lifetime=500), 100),
    ):
        ends = 500 if begins == 200 else 900
        kept = replace(found, queue=(session,), windows=(window(begins, ends),))
        assert explain(kept).starts == moment
        assert explain(kept).window is (moment == ends)


def test_a_window_that_is_open_to_it_is_not_in_its_way():
    found = waiting(*busy(100, 100, cores=2), pending(cpu=2))
    mine = found.queue[0].scopes[:1]
    assert mine, "it is somebody's"
    kept = replace(found, windows=(window(50, 500, open_to=mine),))
    assert explain(kept).starts == 100


def test_who_waits_for_others_starts_when_they_are_over():
    found = waiting(
        *busy(90, 100, cores=2),
        pending("p", cpu=2, lifetime=50),
        pending("q", cpu=1),
        pending(cpu=1, hold="waits for others"),
    )

    def after(*firsts: str, moment: int = 0) -> Explanation:
        return explain(found, waits=Waits(firsts=firsts, moment=moment))

    assert (after("r1").starts, after("r1").after) == (100, "r1")
    assert after("r1").at_the_earliest
    assert after("r1", moment=130).starts == 130
    assert after("r1", "p").starts == 150, (
        "one that waits itself: its start and its time"
    )
    assert after("r1", "q").starts is None
    assert (
        after("r1", "q").unknown == "1 of those it waits for do not say when they end"
    )


CHAIN = {
    "b": Waits(firsts=("r1",)),
    "c": Waits(firsts=("b", "r0")),
    "d": Waits(firsts=("b",), moment=400),
    "e": Waits(firsts=(), moment=130),
}
"""b waits for r1, c for b and r0, d for b and a moment, and e for one alone."""


@pytest.mark.parametrize(
    ("firsts", "starts", "through", "after"),
    [
        (["r1"], 100, [], "r1"),
        (["b"], 100 + 50, ["b"], "r1"),
        (["c"], 100 + 50 + 20, ["c", "b"], "r1"),
        (["d"], 400 + 30, ["d"], ""),
        (["c", "d"], 400 + 30, ["d"], ""),
        (["r1", "e"], 130 + 10, ["e"], ""),
        (["p"], 100 + 45, ["p"], ""),
    ],
)
def test_a_chain_of_those_who_wait_is_over_when_the_last_of_it_is(
    firsts: list[str], starts: int, through: list[str], after: str
):
    lifetimes = {"b": 50, "c": 20, "d": 30, "e": 10}
    held = [
        pending(i, cpu=1, hold=f"{i} waits", lifetime=n) for i, n in lifetimes.items()
    ]
    room = pending("p", cpu=2, lifetime=45)
    found = waiting(*busy(90, 100, cores=2), room, *held, pending(cpu=1, hold="waits"))
    told = explain(found, waits=Waits(firsts=tuple(firsts)), others=CHAIN)
    assert (told.starts, list(told.through), told.after) == (starts, through, after)
    assert told.at_the_earliest


def test_nobody_knows_when_a_chain_is_over_of_which_one_does_not_say():
    endless = [pending("b", cpu=1, hold="waits"), pending("c", hold="w", lifetime=9)]
    found = waiting(*busy(90, 100, cores=2), *endless, pending(cpu=1, hold="waits"))
    others = {"b": Waits(firsts=("r1",)), "c": Waits(firsts=("b",))}
    told = explain(found, waits=Waits(firsts=("c", "r1")), others=others)
    assert told.starts is None
    assert told.unknown == "1 of those it waits for do not say when they end"
    ring = {"b": Waits(firsts=("c",)), "c": Waits(firsts=("b",))}
    assert explain(found, waits=Waits(firsts=("c",)), others=ring).starts is None


def test_a_chain_may_be_as_long_as_the_queue():
    held = [pending(f"j{i}", hold="waits", lifetime=2) for i in range(3000)]
    found = waiting(*busy(90, 100, cores=2), *held, pending(cpu=1, hold="waits"))
    others = {f"j{i}": Waits(firsts=(f"j{i - 1}",)) for i in range(1, 3000)}
    others["j0"] = Waits(firsts=("r1", "r0"))
    told = explain(found, waits=Waits(firsts=("j2999",)), others=others)
    assert told.starts == 100 + 3000 * 2
    assert told.through[0] == "j2999"
    assert len(told.through) == 3000


def test_a_limit_leaves_room_when_those_who_use_it_have_ended():
    place = node("a", host(8, used=3))
    held = [
        running("r1", place, Share("a/host", "cpu", MILLI), ends=100),
        running("r2", place, Share("a/host", "cpu", MILLI), user="bob", ends=200),
        running("r3", place, Share("a/host", "cpu", MILLI), ends=300),
    ]
    own = limit("user", "alice", {"cpu": 2}, cpu=2)
    found = replace(
        snapshot([place], [pending(cpu=1)], [own]), running=tuple(held), now=0
    )
    explanation = explain(found)
    assert (explanation.starts, explanation.after, explanation.node) == (100, "r1", "a")
    assert explanation.at_the_earliest
    # Two of her own have to go for two, and bob's is none of them.
    more = replace(found, queue=(pending(cpu=2),))
    assert (explain(more).starts, explain(more).after) == (300, "r3")


def test_a_limit_and_the_nodes_both_have_to_leave_room():
    place = node("a", host(2, used=2))
    held = [
        running("r1", place, Share("a/host", "cpu", MILLI), ends=100),
        running("r2", place, Share("a/host", "cpu", MILLI), user="bob", ends=200),
    ]
    own = limit("user", "alice", {"cpu": 1}, cpu=2)
    found = replace(
        snapshot([place], [pending(cpu=2)], [own]), running=tuple(held), now=0
    )
    assert (explain(found).starts, explain(found).after) == (200, "r2")


def test_who_would_be_refused_by_a_limit_for_ever_knows_no_moment():
    place = node("a", host(8))
    own = limit("user", "alice", {"cpu": 2}, cpu=2)
    assert explain(snapshot([place], [pending(cpu=1)], [own])).starts is None


def test_a_newcomer_starts_now_or_is_told_what_those_who_wait_are_told():
    place = node("a", host(4, used=3))
    found = snapshot([place], [pending("first", cpu=2)])
    desk = Explainer(found)
    assert desk.consider(pending("new", cpu=1)).nodes == ("a",)
    would = desk.consider(pending("new", cpu=3)).explanation
    assert would is not None
    assert (would.position, would.waiting) == (2, 2)
    joined = replace(found, queue=(*found.queue, pending("new", cpu=3)))
    assert replace(would, session="s") == replace(explain(joined, "new"), session="s")
    # A second question finds everything as it was.
    assert desk.consider(pending("other", cpu=1)).nodes == ("a",)


@settings(max_examples=150, deadline=None)
@given(snapshots())
def test_a_newcomer_that_is_said_to_start_now_does(found: Snapshot):
    *queue, last = found.queue or (None,)
    if last is None:
        return
    newcomer = replace(last, id="new", priority=0)
    outlook = Explainer(replace(found, queue=tuple(queue))).consider(newcomer)
    joined = replace(found, queue=(*queue, newcomer))
    assert bool(outlook.nodes) == starts(joined, "new")


# --- it is true ----------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(snapshots())
def test_every_change_that_is_named_does_start_it(found: Snapshot):
    explainer = Explainer(found)
    for name in explainer.plan.waiting:
        explanation = explainer.explain(name)
        assert explanation is not None
        for change in explanation.changes:
            assert change != Change()
            assert starts(change.apply(found, name), name), change


@settings(max_examples=100, deadline=None)
@given(snapshots())
def test_a_unit_more_of_one_slot_would_not_start_once_the_queue_is_served(
    found: Snapshot,
):
    explainer = Explainer(found)
    only = [s for s in found.queue if s.id in explainer.plan.waiting][:1]
    if not only or explainer.plan.placements:
        return
    alone = replace(found, queue=tuple(only))
    session = only[0]
    for change in Explainer(alone).explain(session.id).changes:  # type: ignore[union-attr]
        if change.request is None:
            continue
        for slot, amount in change.request.items():
            if amount == session.request[slot]:
                continue
            more = ResourceSlots({**dict(change.request.items()), slot: amount + 1})
            assert not starts(Change(request=more).apply(alone, session.id), session.id)


def test_used_limits_are_those_of_its_scopes():
    scopes = [limit("user", "bob", used={"cpu": 4}, cpu=4)]
    there = [node("a", host(1))]
    found = snapshot(there, [pending(cpu=2, user="alice")], scopes)
    assert (ScopeKind.USER, "alice") in found.queue[0].scopes
    assert told(found) == ["with 1 cpu instead of 2"]


@st.composite
def rich_snapshots(draw: Any) -> Snapshot:
    """Labels, named nodes, clusters, charges, orders and reservations as well."""
    found = draw(snapshots())
    names = [n.id for n in found.nodes]
    queue = []
    for session in found.queue:
        changes: dict[str, Any] = {"since": draw(st.integers(0, 2))}
        kind = draw(st.sampled_from(["plain", "label", "node", "cluster"]))
        if kind == "label":
            changes["labels"] = {"zone": draw(st.sampled_from(["east", "west"]))}
        elif kind == "node" and names:
            changes["nodes"] = (draw(st.sampled_from(names)),)
        elif kind == "cluster":
            count = draw(st.integers(2, 3))
            made = cluster_of(session.id, *[session.request] * count)
            changes["members"], changes["request"] = made.members, made.request
            changes["layout"] = draw(st.sampled_from(["one-node", "spread", "pack"]))
        if draw(st.booleans()):
            request = changes.get("request", session.request)
            changes["charge"] = request + ResourceSlots({"sessions": MILLI})
        queue.append(replace(session, **changes))
    reserve_after = draw(st.sampled_from([None, 1]))
    policy = replace(found.groups[""], reserve_after=reserve_after)
    zone = {"zone": "east"}
    return replace(
        found,
        nodes=tuple(
            replace(n, labels=zone) if draw(st.booleans()) else n for n in found.nodes
        ),
        queue=tuple(queue),
        groups={"": policy},
        now=2,
    )


@settings(max_examples=200, deadline=None)
@given(rich_snapshots())
def test_changes_start_clusters_labelled_reserved_and_shared_ones_too(found: Snapshot):
    explainer = Explainer(found)
    for name in explainer.plan.waiting:
        explanation = explainer.explain(name)
        assert explanation is not None
        for change in explanation.changes:
            assert starts(change.apply(found, name), name), change


@st.composite
def guaranteed_snapshots(draw: Any) -> Snapshot:
    """Guarantees and maxima of scopes, fair share with weights, and who runs."""
    found = draw(rich_snapshots())
    domain = (ScopeKind.DOMAIN, "d")
    paths = [("d",), ("d", "default"), ("d", "default", "alice")]
    paths.append(("d", "default", "bob"))
    amounts = st.dictionaries(
        st.sampled_from(["cpu", "cuda.device"]),
        st.sampled_from([0, 1000, 2000]),
        max_size=2,
    )
    quotas = {
        path: ScopeQuota(guaranteed=draw(amounts), maximum=draw(amounts))
        for path in paths
        if draw(st.booleans())
    }
    shares = ShareState(
        capacity={"cpu": 4000, "cuda.device": 2000},
        live={("d", "default", "alice"): draw(amounts)},
        weights={("d", "default", "bob"): draw(st.sampled_from([0.5, 4.0]))},
        history={("d", "default", "bob"): draw(st.sampled_from([0.0, 0.5]))},
    )
    policy = replace(
        found.groups[""],
        quotas=quotas,
        shares=shares,
        sequencer=draw(st.sampled_from(["fair-share", "fair-share", "fifo"])),
    )
    queue = tuple(
        replace(s, scopes=(domain, *s.scopes), preemptible=draw(st.booleans()))
        for s in found.queue
    )
    held = tuple(
        running(
            f"r-{place.id}",
            place,
            *(
                Share(device.id, slot, device.total[slot] - free)
                for device in place.devices
                for slot, free in device.free.items()
                if device.total[slot] > free and not device.sliced
            ),
            user=draw(st.sampled_from(["alice", "bob"])),
            preemptible=draw(st.booleans()),
            ends=draw(st.sampled_from([None, 50])),
        )
        for place in found.nodes
    )
    held = tuple(replace(r, scopes=(domain, *r.scopes)) for r in held)
    return replace(found, queue=queue, running=held, groups={"": policy})


@settings(max_examples=200, deadline=None)
@given(guaranteed_snapshots())
def test_changes_start_those_who_have_guarantees_and_maxima_and_fair_shares_too(
    found: Snapshot,
):
    explainer = Explainer(found)
    for name in explainer.plan.waiting:
        explanation = explainer.explain(name)
        assert explanation is not None
        for change in explanation.changes:
            assert starts(change.apply(found, name), name), change


@st.composite
def stopped_snapshots(draw: Any) -> Snapshot:
    """Windows, time limits, priorities, and some who are held, as well."""
    found = draw(st.one_of(guaranteed_snapshots(), rich_snapshots()))
    names = [n.id for n in found.nodes]
    windows = []
    for number in range(draw(st.integers(0, 2)) if names else 0):
        starts_at = draw(st.integers(0, 400))
        windows.append(
            ReservedWindow(
                name=f"w{number}",
                starts=starts_at,
                ends=starts_at + draw(st.integers(1, 400)),
                nodes=(draw(st.sampled_from(names)),),
                open_to=draw(st.sampled_from([(), ((ScopeKind.USER, "alice"),)])),
                notice=draw(st.sampled_from([0, 100])),
            )
        )
    held = tuple(
        replace(r, ends=draw(st.sampled_from([None, 100, 300]))) for r in found.running
    )
    queue = tuple(
        replace(
            session,
            lifetime=draw(st.sampled_from([None, 30, 130, 500])),
            priority=draw(st.sampled_from([10, 10, 50])),
            hold=draw(st.sampled_from(["", "", "held by root"])),
        )
        for session in found.queue
    )
    return replace(found, windows=tuple(windows), queue=queue, running=held)


@settings(max_examples=250, deadline=None)
@given(stopped_snapshots())
def test_changes_start_those_who_are_held_or_kept_off_too(found: Snapshot):
    explainer = Explainer(found)
    for name in explainer.plan.waiting:
        explanation = explainer.explain(name, Options(timed=True))
        assert explanation is not None
        for change in explanation.changes:
            assert starts(change.apply(found, name), name), change
