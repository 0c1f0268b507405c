"""Devices kept for who has waited too long, for windows, and for who displaces."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.backfill import Holding, find_shadow
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.shares import path_of
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    ReservedWindow,
    ScopeQuota,
    Share,
)
from backendai_hub.scheduling.trials import Trial, copy_nodes
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    gpu,
    host,
    limit,
    milli,
    node,
    pending,
    running,
    shared,
    snapshot,
)

NOW, HOUR = 100_000, 3600
LONG_AGO = NOW - 2 * HOUR


def device(name: str) -> Share:
    return Share(name, "cuda.device", 1000)


def busy(name: str, *used: int, count: int = 2) -> Any:
    """A node with GPUs of which some are in use."""
    return node(
        name,
        host(64),
        *(gpu(f"{name}/{i}", used=float(i in used)) for i in range(count)),
    )


def names(decided: Any) -> set[str]:
    return {p.session for p in decided.placements}


def decide(nodes: Any, queue: Any, **changes: Any) -> Any:
    return plan(snapshot(nodes, queue, **{"now": NOW, **changes}))


# --- for who has waited too long ---------------------------------------------------


def test_who_has_waited_long_gets_devices_kept_until_enough_others_end():
    place = busy("a", 0)
    first = running("r", place, device("a/0"), ends=NOW + HOUR)
    wide = pending("wide", gpus=2, since=LONG_AGO)
    decided = decide([place], [wide, pending("small", gpus=1)], running=[first])
    assert names(decided) == set()
    [kept] = decided.reservations
    assert (kept.session, kept.starts) == ("wide", NOW + HOUR)
    assert kept.parts[0].node == "a"
    assert "it starts at the latest at 1970-01-02 04:46 UTC" in decided.waiting["wide"]
    assert "kept for a session that has waited longer" in decided.waiting["small"]


def test_who_has_not_waited_long_enough_keeps_nothing():
    place = busy("a", 0)
    first = running("r", place, device("a/0"), ends=NOW + HOUR)
    wide = pending("wide", gpus=2, since=NOW - HOUR + 1)
    decided = decide([place], [wide, pending("small", gpus=1)], running=[first])
    assert names(decided) == {"small"}
    assert decided.reservations == ()


def test_who_ends_in_time_may_use_what_is_kept():
    place = busy("a", 0)
    first = running("r", place, device("a/0"), ends=NOW + HOUR)
    wide = pending("wide", gpus=2, since=LONG_AGO)
    for lifetime, starts in ((HOUR, True), (HOUR + 1, False), (None, False)):
        small = pending("small", gpus=1, lifetime=lifetime)
        decided = decide([place], [wide, small], running=[first])
        assert names(decided) == ({"small"} if starts else set())


def test_what_is_kept_is_used_once():
    place = busy("a", 0)
    first = running("r", place, device("a/0"), ends=NOW + HOUR)
    queue = [pending("wide", gpus=2, since=LONG_AGO)]
    queue += [pending(f"s{i}", gpus=1, lifetime=60) for i in range(3)]
    assert names(decide([place], queue, running=[first])) == {"s0"}


def test_who_waits_behind_one_like_it_that_has_come_later_gets_its_turn():
    place = busy("a", 0)
    first = running("r", place, device("a/0"), ends=NOW + HOUR)
    queue = [
        pending("new", gpus=2, since=NOW, priority=50),
        pending("old", gpus=2, since=LONG_AGO),
        pending("older", gpus=2, since=LONG_AGO),
    ]
    decided = decide([place], queue, running=[first])
    assert [r.session for r in decided.reservations] == ["old"]
    assert "starts at the latest" not in decided.waiting["new"]
    assert "starts at the latest" in decided.waiting["old"]
    assert "starts at the latest" not in decided.waiting["older"]


def test_who_could_never_start_keeps_nothing_from_others():
    place = busy("a")
    queue = [pending("wide", gpus=3, since=LONG_AGO), pending("small", gpus=2)]
    decided = decide([place], queue)
    assert names(decided) == {"small"}
    assert decided.reservations == ()


def test_who_does_not_touch_what_is_kept_may_start():
    places = [busy("a", 0), busy("b", 0, 1)]
    ends = {"a": NOW + HOUR, "b": NOW + 2 * HOUR}
    held = [running("ra", places[0], device("a/0"), ends=ends["a"])]
    held += [
        running(f"rb{i}", places[1], device(f"b/{i}"), ends=ends["b"]) for i in (0, 1)
    ]
    queue = [pending("wide", gpus=2, since=LONG_AGO), pending("plain", cpu=1)]
    decided = decide(places, queue, running=held)
    assert names(decided) == {"plain"}
    assert decided.reservations[0].parts[0].node == "a"


def test_where_nobody_knows_who_ends_when_the_node_with_fewest_in_the_way_is_drained():
    places = [busy("a", 0, 1), busy("b", 0)]
    held = [running(f"ra{i}", places[0], device(f"a/{i}")) for i in (0, 1)]
    held += [running("rb", places[1], device("b/0"))]
    queue = [
        pending("wide", gpus=2, since=LONG_AGO),
        pending("small", gpus=1, lifetime=1),
    ]
    decided = decide(places, queue, running=held)
    assert names(decided) == set()
    [kept] = decided.reservations
    assert (kept.parts[0].node, kept.starts) == ("b", None)
    assert "when those there end is not known" in decided.waiting["wide"]


def test_a_reservation_stays_with_who_has_it_even_behind_others():
    places = [busy("a", 0, 1), busy("b", 0)]
    held = [running(f"ra{i}", places[0], device(f"a/{i}")) for i in (0, 1)]
    held += [running("rb", places[1], device("b/0"))]
    wide = pending("wide", gpus=2, since=LONG_AGO)
    kept = decide(places, [wide], running=held).reservations
    urgent = pending("urgent", gpus=1, priority=90, since=LONG_AGO)
    later = decide(places, [wide, urgent], running=held, reserved=kept)
    assert names(later) == set()
    assert later.reservations == kept


def test_who_has_a_reservation_uses_it_as_soon_as_there_is_room():
    free = busy("a")
    wide = pending("wide", gpus=2, since=LONG_AGO)
    place = busy("a", 0)
    held = running("r", place, device("a/0"), ends=NOW + HOUR)
    kept = decide([place], [wide], running=[held]).reservations
    urgent = pending("urgent", gpus=1, priority=90)
    decided = decide([free], [wide, urgent], reserved=kept, now=NOW + 10)
    assert names(decided) == {"wide"}
    assert decided.reservations == ()


def test_sessions_started_in_the_same_pass_count_with_their_end():
    place = busy("a")
    queue = [
        pending("short", gpus=1, lifetime=HOUR, priority=20),
        pending("wide", gpus=2, since=LONG_AGO),
    ]
    decided = decide([place], queue)
    assert names(decided) == {"short"}
    assert decided.reservations[0].starts == NOW + HOUR


@pytest.mark.parametrize(
    ("late", "kept", "told"),
    [
        (-1, True, "it starts at the latest at"),
        (0, True, "when those there end is not known"),
        (300, True, "when those there end is not known"),
        (301, False, ""),
        (10 * HOUR, False, ""),
    ],
)
def test_who_is_beyond_its_end_is_counted_on_to_go_for_a_while_only(
    late: int, kept: bool, told: str
):
    place = busy("a", 0)
    held = running("r", place, device("a/0"), ends=NOW - late)
    queue = [pending("wide", gpus=2, since=LONG_AGO), pending("small", gpus=1)]
    decided = decide([place], queue, running=[held])
    assert len(decided.reservations) == kept
    assert names(decided) == (set() if kept else {"small"})
    assert told in decided.waiting["wide"]
    if late >= 0:
        assert "at the latest" not in decided.waiting["wide"]


def test_of_those_in_the_way_who_is_beyond_its_end_is_expected_to_go_first():
    place = busy("a", 0, 1)
    held = [
        running("long", place, device("a/0")),
        running("late", place, device("a/1"), ends=NOW - 10),
    ]
    [kept] = decide(
        [place], [pending("one", gpus=1, since=LONG_AGO)], running=held
    ).reservations
    assert [s.device for s in kept.parts[0].shares] == ["a/1"]


def test_a_cluster_gets_a_reservation_too():
    places = [busy("a", 0), busy("b")]
    held = running("r", places[0], device("a/0"), ends=NOW + HOUR)
    gang = cluster_of("gang", *[ask(gpus=2)] * 2, layout="spread", since=LONG_AGO)
    decided = decide(places, [gang, pending("small", gpus=1)], running=[held])
    assert names(decided) == set()
    [kept] = decided.reservations
    assert {part.node for part in kept.parts} == {"a", "b"}
    assert kept.starts == NOW + HOUR


# --- windows -----------------------------------------------------------------------


def test_before_a_window_only_those_start_who_end_in_time():
    window = ReservedWindow(
        name="maintenance", starts=NOW + HOUR, ends=NOW + 2 * HOUR, nodes=("a",)
    )
    for lifetime, starts in ((HOUR, True), (HOUR + 1, False), (None, False)):
        one = pending("s", gpus=1, lifetime=lifetime)
        decided = decide([busy("a")], [one], windows=[window])
        assert names(decided) == ({"s"} if starts else set())
    assert "kept for a reservation from" in decided.waiting["s"]


def test_who_does_not_say_how_long_is_kept_off_only_when_it_is_near():
    window = ReservedWindow(
        name="maintenance",
        starts=NOW + HOUR,
        ends=NOW + 2 * HOUR,
        nodes=("a",),
        notice=HOUR - 1,
    )
    one = pending("s", gpus=1)
    assert names(decide([busy("a")], [one], windows=[window])) == {"s"}
    assert not names(decide([busy("a")], [one], windows=[window], now=NOW + 1))


def test_in_a_window_only_its_class_starts_and_afterwards_everybody():
    window = ReservedWindow(
        name="the course",
        starts=NOW,
        ends=NOW + HOUR,
        nodes=("a",),
        devices=("a/0",),
        open_to=((ScopeKind.PROJECT, "course"),),
    )
    pupils = [pending(f"p{i}", project="course", gpus=1) for i in range(2)]
    others = [pending(f"o{i}", gpus=1, lifetime=1) for i in range(2)]
    decided = decide([busy("a")], [*others, *pupils], windows=[window])
    assert names(decided) == {"o0", "p0"}
    after = decide([busy("a")], others, windows=[window], now=NOW + HOUR)
    assert names(after) == {"o0", "o1"}


# --- where nodes take so many containers -------------------------------------------


def crowded(*ends: int | None, cores: int = 4) -> tuple[Any, list[Any]]:
    """A node on which every container that it takes runs, each with one core."""
    place = node(
        "a", host(cores, used=len(ends)), containers=len(ends), max_containers=len(ends)
    )
    held = [
        running(f"r{i}", place, Share("a/host", "cpu", milli(1)), ends=end)
        for i, end in enumerate(ends)
    ]
    return place, held


def pair(cpu: float) -> Any:
    return cluster_of("pair", ask(cpu=cpu), ask(cpu=cpu), since=LONG_AGO)


def test_who_lacks_only_a_container_is_reserved_the_moment_when_one_ends():
    place, held = crowded(NOW + 2 * HOUR, NOW + HOUR)
    first = pending("first", cpu=1, since=LONG_AGO)
    decided = decide([place], [first, pending("next", cpu=0.5)], running=held)
    [found] = decided.reservations
    assert (names(decided), found.session, found.starts) == (
        set(),
        "first",
        NOW + HOUR,
    )
    [found] = decide([place], [pair(1)], running=held).reservations
    assert found.starts == NOW + 2 * HOUR


def test_as_many_are_drained_as_containers_lack():
    place, held = crowded(None, None, None)
    cluster = Cluster([place])
    holdings = [Holding(0, r.holdings[0][1], None) for r in held]
    for session, gone in ((pending("one", cpu=0.5), 1), (pair(0.5), 2)):
        trial = copy_nodes(cluster, GroupPolicy())
        attempt = partial(_attempt, trial, session)
        shadow = find_shadow(trial.placer, attempt, holdings, now=NOW)
        assert shadow is not None
        assert (shadow.starts, len(shadow.ended)) == (None, gone)
        assert cluster.spare[0] == 0, "it was a copy"


def _attempt(trial: Trial, session: Any, row: int) -> Any:
    assert row == 0
    return trial.take(session)


# --- displacing others -------------------------------------------------------------

RULES = Preemption(enabled=True, victim_scope="resource-group")
OPEN = GroupPolicy(preemption=RULES)


def full(**changes: Any) -> tuple[Any, list[Any]]:
    place = busy("a", 0, 1)
    more = {"preemptible": True, "started": NOW - HOUR, **changes}
    return place, [
        running("old", place, device("a/0"), **{**more, "started": NOW - 2 * HOUR}),
        running("new", place, device("a/1"), **more),
    ]


def test_the_oldest_of_less_job_priority_would_go_and_nobody_else_gets_its_room():
    place, held = full()
    urgent = pending("urgent", gpus=1, job_priority=1)
    decided = decide([place], [urgent], running=held, policy=OPEN)
    assert names(decided) == set()
    [found] = decided.preemptions
    assert (found.session, found.node, found.mode) == ("urgent", "a", "terminate")
    assert [v.session for v in found.victims] == ["old"]
    assert found.shares == (device("a/0"),)
    assert (
        "1 session of less job priority on a would have to go"
        in (decided.waiting["urgent"])
    )


def test_no_more_go_than_have_to():
    place, held = full()
    place = replace(place, devices=(*place.devices, gpu("a/2"), gpu("a/3")))
    held += [running("small", place, Share("a/host", "cpu", 1), preemptible=True)]
    place = replace(
        place, devices=(host(64, used=0.001, name="a/host"), *place.devices[1:])
    )
    wide = pending("wide", gpus=3, job_priority=1)
    decided = decide([place], [wide], running=held, policy=OPEN)
    assert len(decided.preemptions[0].victims) == 1


def test_the_free_part_of_what_will_be_needed_is_kept():
    place, held = full()
    place = replace(place, devices=(*place.devices, gpu("a/2")))
    wide = pending("wide", gpus=2, job_priority=1)
    decided = decide([place], [wide, pending("s", gpus=1)], running=held, policy=OPEN)
    assert names(decided) == set()
    assert "displaces another" in decided.waiting["s"]


def test_who_may_not_be_displaced_stays():
    urgent = pending("urgent", user="alice", gpus=1, job_priority=1)
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"preemptible": False}, {}),
        ({"system": True}, {}),
        ({"job_priority": 1}, {}),
        ({"group": "other"}, {}),
        ({"user": "bob"}, {"victim_scope": "user"}),
        ({}, {"min_runtime": 3 * HOUR}),
        ({}, {"enabled": False}),
    ]
    for change, rule in cases:
        place, held = full(**change)
        policy = GroupPolicy(preemption=replace(RULES, **rule))
        decided = decide([place], [urgent], running=held, policy=policy)
        assert decided.preemptions == (), (change, rule)


def test_the_order_of_victims_is_the_groups():
    urgent = pending("urgent", gpus=1, job_priority=1)
    for order, victim in (("oldest", "old"), ("newest", "new")):
        place, held = full()
        policy = GroupPolicy(preemption=replace(RULES, order=order))
        [found] = decide([place], [urgent], running=held, policy=policy).preemptions
        assert [v.session for v in found.victims] == [victim]


def test_two_who_displace_have_different_victims():
    place, held = full()
    queue = [
        pending("u1", gpus=1, job_priority=1),
        pending("u2", gpus=1, cpu=1, job_priority=1),
    ]
    decided = decide([place], queue, running=held, policy=OPEN)
    assert [p.victims[0].session for p in decided.preemptions] == ["old", "new"]


def test_what_displaced_sessions_leave_waits_for_who_has_displaced_them():
    place, held = full()
    urgent = pending("urgent", gpus=2, job_priority=1)
    other = pending("other", gpus=1, priority=90, since=NOW)
    [found] = decide([place], [urgent], running=held, policy=OPEN).preemptions
    kept = found.reserve("")
    half = decide([busy("a", 1)], [urgent, other], running=held[1:], reserved=[kept])
    assert names(half) == set()
    assert half.reservations == (kept,)
    both = decide([busy("a")], [urgent, other], reserved=[kept])
    assert names(both) == {"urgent"}


@pytest.mark.parametrize("by", ["limit", "maximum", "hold"])
def test_who_may_not_start_when_all_have_left_gives_the_room_back(by: str):
    place, held = full()
    urgent = pending("urgent", gpus=1, job_priority=1)
    [found] = decide([place], [urgent], running=held, policy=OPEN).preemptions
    kept = found.reserve("")
    changes: dict[str, Any] = {"policy": OPEN}
    if by == "limit":
        urgent = replace(urgent, charge=ask(cpu=1))
        changes["scopes"] = [limit("alice", cpu=0)]
    elif by == "maximum":
        quota = ScopeQuota(maximum={"cuda.device": 0})
        quotas = {path_of(urgent): quota}
        changes["policy"] = GroupPolicy(preemption=RULES, quotas=quotas)
    else:
        urgent = replace(urgent, hold="its image is gone")
    queue = [urgent, pending("next", user="bob", gpus=1)]
    # While somebody still leaves for it, what they leave may be what it waits for.
    leaving = [replace(held[0], leaving=True)]
    before = decide(
        [busy("a", 0, 1)], queue, running=leaving, reserved=[kept], **changes
    )
    assert (names(before), before.returned) == (set(), {})

    after = decide([busy("a", 1)], queue, running=held[1:], reserved=[kept], **changes)
    assert names(after) == {"next"}
    assert after.returned == {"urgent": after.waiting["urgent"]}
    assert after.reservations == ()


def test_a_part_of_a_core_is_kept_too():
    place = node("a", host(4, used=3))
    held = running("r", place, Share("a/host", "cpu", milli(3)), ends=NOW + HOUR)
    wide = pending("wide", cpu=3.5, since=LONG_AGO)
    queue = [wide, pending("half", cpu=0.5), pending("more", cpu=0.25)]
    assert names(decide([place], queue, running=[held])) == {"half"}


def test_who_borrows_what_is_kept_leaves_the_rest_to_others():
    place = node("a", host(4, used=2))
    held = running("r", place, Share("a/host", "cpu", milli(2)), ends=NOW + HOUR)
    queue = [
        pending("wide", cpu=3, since=LONG_AGO),
        pending("short", cpu=1.5, lifetime=60),
        pending("long", cpu=0.5),
        pending("more", cpu=0.25),
    ]
    assert names(decide([place], queue, running=[held])) == {"short", "long"}


@pytest.mark.parametrize(("devices", "after"), [(0.5, 3600), (3, 3600), (4, 0), (8, 0)])
def test_wide_requests_have_devices_reserved_at_once(devices: float, after: int):
    policy = GroupPolicy(reserve_after=3600)
    place = node("a", host(64), *(shared(f"a-{i}", used=1) for i in range(8)))
    shares = [Share(f"a-{i}", "cuda.shares", 1000) for i in range(8)]
    held = running("r", place, *shares, ends=NOW + HOUR)
    for waited, reserved in ((after - 1, 0), (after, 1)):
        if waited >= 0:
            wide = pending("w", cpu=1, shares=devices, since=NOW - waited)
            decided = plan(
                snapshot([place], [wide], policy=policy, running=(held,), now=NOW)
            )
            assert len(decided.reservations) == reserved


@pytest.mark.parametrize(
    ("wide_after", "priority", "after"),
    [(0, 10, 0), (600, 10, 600), (600, 55, 300), (None, 10, 3600), (7200, 10, 3600)],
)
def test_the_group_says_how_long_wide_requests_wait_for_it(
    wide_after: int | None, priority: int, after: int
):
    policy = GroupPolicy(reserve_after=3600, reserve_wide_after=wide_after)
    assert policy.patience(priority, wide=True) == after
    never = replace(policy, reserve_after=None)
    assert never.patience(priority, wide=True) is None
    place = busy("a", 0, count=4)
    held = running("r", place, device("a/0"), ends=NOW + HOUR)
    for waited, reserved in ((after - 1, 0), (after, 1)):
        wide = pending("w", gpus=4, priority=priority, since=NOW - waited)
        decided = decide([place], [wide], running=[held], policy=policy)
        assert waited < 0 or len(decided.reservations) == reserved


def test_a_cluster_has_its_devices_reserved_at_once_as_all_wide_requests_do():
    places = [node(name, host(2, used=1)) for name in "ab"]
    held = [
        running(f"r-{p.id}", p, Share(f"{p.id}/host", "cpu", 1000), ends=NOW + HOUR)
        for p in places
    ]
    asks = [ask(cpu=2), ask(cpu=2)]
    gang = cluster_of("g", *asks, layout="spread", since=NOW)
    for after, reserved in ((3600, 1), (None, 0)):
        policy = GroupPolicy(reserve_after=after)
        decided = plan(
            snapshot(places, [gang], policy=policy, running=tuple(held), now=NOW)
        )
        assert len(decided.reservations) == reserved


@pytest.mark.parametrize(
    ("priority", "after"), [(0, 3600), (10, 3600), (55, 1800), (100, 0)]
)
def test_a_higher_priority_has_devices_reserved_sooner(priority: int, after: int):
    policy = GroupPolicy(reserve_after=3600)
    assert policy.patience(priority) == after
    assert GroupPolicy(reserve_after=None).patience(priority) is None
    place = node("a", host(4, used=2))
    held = running("r", place, Share("a/host", "cpu", 2000), ends=NOW + HOUR)
    for waited, reserved in ((after - 1, 0), (after, 1)):
        if waited >= 0:
            wide = pending("w", cpu=4, priority=priority, since=NOW - waited)
            decided = plan(
                snapshot([place], [wide], policy=policy, running=(held,), now=NOW)
            )
            assert len(decided.reservations) == reserved


def test_what_is_free_but_kept_is_not_said_to_be_in_use():
    window = ReservedWindow(name="fans", starts=100, ends=200, nodes=("a",))
    place = node("a", host(2, used=1))
    found = snapshot([place], [pending(cpu=1, lifetime=500)], windows=(window,), now=0)
    told = plan(found).waiting["s"]
    assert told.startswith("cpu: asks 1, 1 free on a but 1 of it kept; ")
    assert "devices of 1 node are kept for a reservation" in told


def test_what_is_kept_of_a_device_that_somebody_has_whole_is_given_to_nobody():
    profiles = {"cuda.device:2g": (0b0011, 0b1100)}
    total = {"cuda.device": MILLI, "cuda.device:2g": 2 * MILLI}
    device = DeviceState(
        id="a/g",
        name="g",
        kind="cuda",
        total=total,
        free={**total, "cuda.device": 0},
        whole=True,
        profiles=profiles,
    )
    place = node("a", host(4), device)
    held = running("r", place, Share("a/g", "cuda.device", MILLI), ends=2000)
    part = ResourceSlots({"cuda.device:2g": MILLI})
    first = pending("first", request=part, since=0, lifetime=1000)
    short = pending("short", request=part, since=900, lifetime=100)
    decided = plan(
        snapshot(
            [place],
            [first, short],
            policy=GroupPolicy(reserve_after=0),
            running=(held,),
            now=1000,
        )
    )
    assert [r.session for r in decided.reservations] == ["first"]
    assert decided.placements == ()
