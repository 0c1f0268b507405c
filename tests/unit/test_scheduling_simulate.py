"""What would happen, told in small worlds whose course can be reckoned by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError, TooLargeError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.operations.scenarios import hide_names
from backendai_hub.scheduling.figures import find_figures, jain
from backendai_hub.scheduling.outcome import Outcome
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    from_snapshot,
    from_trace,
    is_wide,
)
from backendai_hub.scheduling.shares import ShareState
from backendai_hub.scheduling.simulate import check_bounds, simulate
from backendai_hub.scheduling.snapshot import GroupPolicy, ReservedWindow, Share
from backendai_hub.scheduling.telling import to_records
from backendai_hub.scheduling.trace import TraceError, read_trace, write_trace
from backendai_hub.scheduling.what_if import Change, QuotaChange
from tests.unit.scheduling_snapshots import host, node, pending, running, snapshot

NODE = '{"kind":"node","name":"a","slots":{"cpu":"4","mem":"8g"}}'


def ask(name: str, submit: int, cpu: float, run_time: int, **more: Any) -> str:
    record = {
        "kind": "request",
        "id": name,
        "owner": "alice",
        "submit": submit,
        "slots": {"cpu": cpu},
        "run_time": run_time,
        **more,
    }
    return msgspec.json.encode(record).decode()


def world(*lines: str) -> Scenario:
    return from_trace(read_trace("\n".join((NODE, *lines))))


def waits(outcome: Outcome) -> dict[str, int | None]:
    return {wait.session: wait.seconds for wait in outcome.waits}


def test_who_finds_no_room_starts_when_somebody_has_ended():
    happened = simulate(
        world(ask("a", 0, 4, 100), ask("b", 10, 2, 50), ask("c", 20, 2, 50))
    )
    assert waits(happened) == {"a": 0, "b": 90, "c": 80}
    assert (happened.ends, happened.passes) == (150, 4)


def test_waits_use_and_fairness_are_what_they_are_by_hand():
    told = find_figures(
        simulate(
            world(
                ask("a", 0, 4, 100, project="x"),
                ask("b", 0, 4, 100, project="y"),
            )
        )
    )
    assert (told.waits.mean, told.waits.p95, told.waits.longest) == (50, 100, 100)
    assert told.use["cpu"] == 1.0
    assert told.fairness == 1.0
    assert (told.wide.sessions, told.wide.mean) == (0, None)


def test_what_nobody_ever_can_start_waits_to_the_end_with_its_reason():
    happened = simulate(world(ask("a", 0, 5, 10)))
    [wait] = happened.waits
    assert wait.seconds is None
    assert "cpu" in wait.reason


def test_those_who_run_at_the_beginning_end_and_give_their_room_back():
    line = (
        '{"kind":"running","id":"r","owner":"bob","node":"a",'
        '"held":{"host":{"cpu":"3"}},"remaining":60}'
    )
    assert waits(simulate(world(line, ask("a", 0, 2, 10)))) == {"a": 60}


def test_a_limit_counts_in_a_simulation_too():
    line = '{"kind":"limit","scope":"user","name":"alice","slots":{"cpu":"2"}}'
    happened = simulate(world(line, ask("a", 0, 2, 30), ask("b", 5, 2, 30)))
    assert waits(happened) == {"a": 0, "b": 25}


def test_a_drained_node_takes_nothing_new():
    other = NODE.replace('"a"', '"b"')
    there = world(other, ask("a", 0, 4, 30), ask("b", 0, 4, 30))
    assert waits(simulate(there)) == {"a": 0, "b": 0}
    drained = Change(drain=("b",)).apply(there)
    assert waits(simulate(drained)) == {"a": 0, "b": 30}
    with pytest.raises(InvalidRequestError, match="no node 'c'"):
        Change(drain=("c",)).apply(there)


def test_another_order_lets_others_go_first():
    there = world(ask("a", 0, 4, 30), ask("b", 1, 4, 30), ask("c", 2, 4, 30))
    assert waits(simulate(there)) == {"a": 0, "b": 29, "c": 58}
    last_first = Change(sequencer="lifo").apply(there)
    assert waits(simulate(last_first)) == {"a": 0, "c": 28, "b": 59}


def test_who_holds_less_at_the_time_goes_first_under_dominant_shares():
    asked = [
        ask("much", 0, 3, 100),
        ask("little", 0, 1, 10, owner="bob"),
        ask("more", 1, 1, 10),
        ask("first", 2, 1, 10, owner="carol"),
    ]
    there = world(*asked)
    assert waits(simulate(there))["more"] == 9
    by_share = waits(simulate(Change(sequencer="drf").apply(there)))
    assert (by_share["first"], by_share["more"]) == (8, 19)


def test_a_project_of_more_weight_gets_its_turn_before():
    asked = [
        ask(f"{p}{i}", 0, 1, 10, project=p, owner=p) for p in "xy" for i in range(4)
    ]
    there = Change(sequencer="fair-share").apply(world(*asked))

    def mean(scenario: Scenario, project: str) -> float:
        found = [
            w.seconds or 0 for w in simulate(scenario).waits if w.owner[1] == project
        ]
        return sum(found) / len(found)

    heavy = Change(weights={"y": 100}).apply(there)
    assert mean(heavy, "y") < mean(there, "y")
    with pytest.raises(InvalidRequestError, match="nobody of 'z'"):
        Change(weights={"z": 2}).apply(there)


def test_what_a_question_adds_is_told_and_not_counted():
    there = world(ask("a", 0, 4, 30))
    session = pending("mine", cpu=2, references={"trace": ""})
    added = Arrival(at=0, session=session, run_time=5, added=True)
    happened = simulate(Change(add=(added,)).apply(there))
    assert waits(happened)["mine"] == 30
    assert find_figures(happened).waits.sessions == 1


def test_how_things_are_can_be_simulated_and_written_as_a_trace():
    place = node("a", host(4, used=3))
    held = running("r", place, Share("a/host", "cpu", 3000), ends=160)
    live = snapshot(
        [place], [pending("s", cpu=2, lifetime=40)], running=(held,), now=100
    )
    scenario = from_snapshot(live, usual_run_time=3600)
    assert waits(simulate(scenario)) == {"s": 60}
    text = write_trace(list(to_records(scenario)))
    again = from_trace(read_trace(text))
    assert waits(simulate(again)) == {"s": 60}


def test_weights_that_a_group_gives_count_for_fairness_and_are_written():
    asked = [
        pending("a", project="x", cpu=4, lifetime=100),
        pending("b", project="y", cpu=4, lifetime=50),
    ]
    shares = ShareState(weights={("", "x"): 2.0, ("", "nobody"): 3.0})
    live = snapshot([node("a", host(4))], asked, policy=GroupPolicy(shares=shares))
    scenario = from_snapshot(live, usual_run_time=1)
    again = from_trace(read_trace(write_trace(list(to_records(scenario)))))
    assert again.weights == {("default", "x"): 2.0}
    for one in (scenario, again):
        assert find_figures(simulate(one)).fairness == pytest.approx(1.0)


def test_with_pseudonyms_nobody_is_named_for_whom_a_window_is_kept():
    window = ReservedWindow(
        name="class",
        starts=0,
        ends=9,
        nodes=("a",),
        open_to=((ScopeKind.PROJECT, "p1"),),
    )
    live = snapshot([node("a", host(4))], [pending("s", cpu=1)], windows=(window,))
    scenario = from_snapshot(live, usual_run_time=1, names={"p1": "physics"})
    assert "physics" in write_trace(list(to_records(scenario)))
    hidden = write_trace(list(to_records(hide_names(scenario))))
    assert "physics" not in hidden
    assert '"open_to":["project:project-' in hidden


def test_csv_tells_the_same_as_json_lines():
    table = (
        "kind,name,id,owner,submit,run_time,slots,devices\n"
        "node,a,,,,,cpu=4 mem=8g,2*gpu:cuda.shares=1\n"
        "request,,s,alice,5,60,cpu=1 cuda.shares=0.5,\n"
    )
    lines = "\n".join(
        (
            '{"kind":"node","name":"a","slots":{"cpu":"4","mem":"8g"},'
            '"devices":[{"name":"gpu","count":2,"slots":{"cuda.shares":"1"}}]}',
            ask("s", 5, 1, 60).replace('"cpu":1', '"cpu":1,"cuda.shares":0.5'),
        )
    )
    assert from_trace(read_trace(table)) == from_trace(read_trace(lines))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: this is no JSON"),
        ("[]", "line 2: the record: expected"),
        ('{"kind":"nod"}', "line 2: kind: invalid value 'nod'"),
        (ask("s", -1, 1, 1), "line 2: submit: expected `int` >= 0"),
        (ask("s", 0, 1, -1), "line 2: run_time: expected `int` >= 0"),
        (ask("s", 0, -1, 1), "line 2: slots: cpu: '-1'"),
        (ask("s", 0, 1, 1).replace('"cpu":1', '"cpu":NaN'), "line 2: this is no JSON"),
        (ask("s", 0, 1, 1).replace('"cpu":1', '"cpu":"nan"'), "line 2: slots: cpu"),
        (ask("s", 0, 1, 1).replace('"cpu"', '"tpu"'), "line 2: slots: no node has"),
        (ask("s", 0, 0, 1), "line 2: slots: it asks for nothing"),
        (ask("s", 0, 1, 1, nodes=["x"]), "line 2: nodes: there is no node 'x'"),
        (
            ask("s", 0, 1, 1, members=[{"name": "m", "slots": {"cpu": 2}}]),
            "line 2: members: together they do not ask for slots",
        ),
        (
            '{"kind":"quota","owner":"bob","guaranteed":{"cpu":1}}',
            "line 2: project: an owner's quota has to name it",
        ),
        (
            '{"kind":"quota","guaranteed":{"cpu":2},"maximum":{"cpu":1}}',
            "line 2: guaranteed: more cpu than the maximum",
        ),
        (
            '{"kind":"group","preemption":{"order":"best"}}',
            "line 2: preemption.order: invalid enum value 'best'",
        ),
        (ask("s", 0, 1, 1, colour=1), "line 2: the record: object contains unknown"),
        (NODE, "line 2: name: the node a is in line 1 already"),
        (
            '{"kind":"weight","scope":"user","name":"a","weight":0}',
            "line 2: weight: expected `float` > 0",
        ),
        (
            '{"kind":"running","id":"r","owner":"b","node":"a",'
            '"held":{"host":{"cpu":"5"}}}',
            "line 2: held: a has not as much cpu",
        ),
        (
            '{"kind":"running","id":"r","owner":"b","node":"a","held":{"x":{}}}',
            "line 2: held: a has no 'x'",
        ),
        (
            '{"kind":"window","name":"w","starts":60,"ends":60,"nodes":["a"]}',
            "line 2: ends: 60 is not after 60, when it starts",
        ),
        (
            '{"kind":"window","name":"w","starts":0,"ends":60,"nodes":["a"],'
            '"devices":["a/gpu0"]}',
            "line 2: devices: its nodes have no 'a/gpu0'; write them as a/host",
        ),
        (
            '{"kind":"group","sequencer":"fairest"}',
            "line 2: sequencer: no sequencer called 'fairest' is installed; there are",
        ),
        (
            '{"kind":"group","placement":"anywhere"}',
            "line 2: placement: no placement called 'anywhere' is installed",
        ),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_its_number_and_field(
    line: str, said: str
):
    with pytest.raises(TraceError) as refused:
        world(line)
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the trace is empty"),
        (ask("s", 0, 1, 1), "the trace has no node"),
        ("kind,colour\n", "line 1: there is no column 'colour'"),
        ("name\n", "line 1: kind: the head has to have this column"),
        ("kind,submit\nrequest,soon\n", "line 2: submit: 'soon' cannot be read"),
        ("kind,submit\nrequest,nan\n", "line 2: submit: 'nan' cannot be read"),
        ("kind,weight\nweight,inf\n", "line 2: weight: 'inf' cannot be read"),
        ("kind,slots\nnode,cpu\n", "line 2: slots: 'cpu' cannot be read"),
        ("kind\nnode,1\n", "line 2: more cells than the head has columns"),
        ('{"kind":"node","name":"a","slots":{}}', "have nothing to give"),
    ],
)
def test_a_table_that_cannot_be_is_refused_in_words(text: str, said: str):
    with pytest.raises(TraceError) as refused:
        read_trace(text)
    assert said in refused.value.message


def test_too_much_is_refused_before_it_begins_and_stopped_when_asked():
    small = world(ask("a", 0, 1, 1))
    many = msgspec.structs.replace(small, arrivals=small.arrivals * 25_001)
    with pytest.raises(TooLargeError, match="50002 events are too many"):
        check_bounds(many)
    with pytest.raises(TooLargeError, match="takes too long"):
        simulate(small, stop=lambda: True)


RULES = {"enabled": True, "victim_scope": "resource-group"}


def displaced(outcome: Outcome) -> list[tuple[int, str, str, str]]:
    return [(one.at, one.session, one.by, one.kind) for one in outcome.displaced]


def test_who_has_to_go_for_whom_is_told_with_the_rules_of_the_trace():
    group = {"kind": "group", "preemption": {**RULES, "mode": "reschedule"}}
    happened = simulate(
        world(
            msgspec.json.encode(group).decode(),
            ask("usual", 0, 4, 100, project="x"),
            ask("urgent", 10, 4, 20, owner="bob", job_priority=5),
        )
    )
    assert displaced(happened) == [(10, "usual", "urgent", "priority")]
    assert waits(happened) == {"usual": 0, "urgent": 0}
    # It starts over after the urgent one, and does all of its work again.
    assert happened.ends == 130
    told = find_figures(happened, {"alice": "Alice", "x": "X"})
    assert (told.displaced, told.reclaimed) == (1, 0)
    [one] = told.displacements
    assert (one.owner, one.project, one.by_owner) == ("Alice", "X", "bob")
    assert (one.at, one.ran, one.mode) == (10, 10, "reschedule")


def test_who_may_be_displaced_after_a_while_goes_as_soon_as_that_is_over():
    group = {"kind": "group", "preemption": {**RULES, "min_runtime": 60}}
    urgent = {"owner": "bob", "job_priority": 5}
    asked = [ask("usual", 0, 4, 500), ask("urgent", 10, 4, 20, **urgent)]
    happened = simulate(world(msgspec.json.encode(group).decode(), *asked))
    assert displaced(happened) == [(60, "usual", "urgent", "priority")]
    assert happened.ends == 80
    # What has ended before is no event any more.
    short = world(msgspec.json.encode(group).decode(), ask("usual", 0, 4, 20))
    assert (simulate(short).ends, simulate(short).passes) == (20, 1)


def test_who_may_not_be_displaced_is_not():
    group = {"kind": "group", "preemption": RULES}
    happened = simulate(
        world(
            msgspec.json.encode(group).decode(),
            ask("usual", 0, 4, 100, preemptible=False),
            ask("urgent", 10, 4, 20, owner="bob", job_priority=5),
        )
    )
    assert displaced(happened) == []
    assert waits(happened) == {"usual": 0, "urgent": 90}


def test_what_is_guaranteed_is_reclaimed_from_borrowers_and_a_maximum_holds():
    quotas = [
        {"kind": "quota", "project": "x", "guaranteed": {"cpu": 2}},
        {"kind": "quota", "project": "y", "guaranteed": {"cpu": 2}},
        {"kind": "quota", "project": "z", "maximum": {"cpu": 1}},
    ]
    there = world(
        *(msgspec.json.encode(quota).decode() for quota in quotas),
        ask("own", 0, 2, 100, project="x"),
        ask("borrowed", 1, 2, 100, project="x"),
        ask("due", 10, 2, 20, project="y", owner="bob"),
        ask("small", 100, 1, 50, project="z", owner="carol"),
        ask("over", 100, 1, 50, project="z", owner="carol"),
    )
    happened = simulate(there)
    assert displaced(happened) == [(10, "borrowed", "due", "reclaim")]
    assert (waits(happened)["small"], waits(happened)["over"]) == (0, 50)
    assert find_figures(happened).reclaimed == 1
    written = write_trace(list(to_records(there)))
    assert simulate(from_trace(read_trace(written))) == happened


def test_another_guarantee_and_other_rules_of_preemption_change_who_goes():
    there = world(
        ask("first", 0, 4, 100, project="x"),
        ask("second", 10, 2, 20, project="y", owner="bob", job_priority=1),
    )
    assert waits(simulate(there)) == {"first": 0, "second": 90}
    rules = Change(preemption=RULES).apply(there)
    assert displaced(simulate(rules)) == [(10, "first", "second", "priority")]

    def owed(name: str, **given: Any) -> QuotaChange:
        return QuotaChange(kind=ScopeKind.PROJECT, name=name, **given)

    due = Change(quotas=(owed("y", guaranteed={"cpu": 2000}),)).apply(there)
    assert displaced(simulate(due)) == [(10, "first", "second", "reclaim")]
    less = Change(quotas=(owed("x", maximum={"cpu": 2000}),)).apply(there)
    assert waits(simulate(less)) == {"first": None, "second": 0}
    lifted = Change(quotas=(owed("x", maximum={"cpu": None}),)).apply(less)
    assert waits(simulate(lifted)) == {"first": 0, "second": 90}
    with pytest.raises(InvalidRequestError, match="no project 'w'"):
        Change(quotas=(owed("w"),)).apply(there)
    wrong = owed("x", guaranteed={"cpu": 2}, maximum={"cpu": 1})
    with pytest.raises(InvalidRequestError, match="guaranteed more cpu"):
        Change(quotas=(wrong,)).apply(there)


def test_a_project_is_meant_alone_when_its_domain_is_named():
    there = world(
        ask("arts", 0, 1, 100, project="arts-1", domain="d1"),
        ask("science", 0, 1, 100, project="science-1", domain="d2"),
    )
    names = {"arts-1": "vision", "science-1": "vision", "d1": "arts", "d2": "science"}
    there = msgspec.structs.replace(there, names=names)

    def changed(name: str) -> list[Any]:
        none = QuotaChange(kind=ScopeKind.PROJECT, name=name, maximum={"cpu": 0})
        after = Change(quotas=(none,)).apply(there)
        [policy] = after.groups.values()
        return sorted(policy.quotas)

    assert changed("vision") == [("d1", "arts-1"), ("d2", "science-1")]
    assert changed("science:vision") == [("d2", "science-1")]
    assert changed("science-1") == [("d2", "science-1")]
    with pytest.raises(InvalidRequestError, match="no project 'science:arts'"):
        changed("science:arts")
    weighed = Change(weights={"arts:vision": 2.0}).apply(there)
    assert weighed.weights == {("d1", "arts-1"): 2.0}


def test_the_members_of_a_cluster_start_together_or_not_at_all():
    other = NODE.replace('"a"', '"b"')
    members = [{"name": name, "slots": {"cpu": 3}} for name in ("main1", "sub1")]
    there = world(
        other,
        ask("one", 0, 2, 50, nodes=["a"]),
        ask("both", 10, 6, 20, members=members, layout="spread"),
    )
    happened = simulate(there)
    assert waits(happened) == {"one": 0, "both": 40}
    written = write_trace(list(to_records(there)))
    assert simulate(from_trace(read_trace(written))) == happened


def test_who_is_held_takes_no_part_until_its_time():
    live = snapshot(
        [node("a", host(4))],
        [
            pending("now"),
            pending("later", hold="at its time"),
            pending("ever", hold="x"),
        ],
        now=100,
    )
    there = from_snapshot(live, usual_run_time=10, starts={"later": 130})
    assert there.held == 1
    happened = simulate(there)
    assert {w.session: w.since for w in happened.waits} == {"now": 100, "later": 130}


requests = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 5)), max_size=8
)


@settings(max_examples=100, deadline=None)
@given(requests, st.sampled_from(["fifo", "lifo", "drf", "fair-share"]))
def test_nothing_is_used_twice_and_nobody_is_lost(
    asked: list[tuple[int, int, int]], sequencer: str
):
    lines = [
        ask(f"s{i}", submit, cpu, run, owner=f"u{i % 2}")
        for i, (submit, cpu, run) in enumerate(asked)
    ]
    scenario = Change(sequencer=sequencer).apply(world(*lines))
    happened = simulate(scenario)
    assert simulate(scenario) == happened, "the same scenario happens the same way"
    assert set(waits(happened)) == {f"s{i}" for i in range(len(asked))}
    assert all(m.used.get("cpu", 0) <= 4000 for m in happened.moments)
    # What fits at all starts some day, since everybody ends.
    for i, (_, cpu, _) in enumerate(asked):
        assert (waits(happened)[f"s{i}"] is None) == (cpu > 4)
    if happened.moments:
        assert happened.moments[-1].running == 0


def test_jains_index_is_one_for_all_the_same_and_less_for_one_with_all():
    assert jain([2, 2, 2]) == 1
    assert jain([3, 0, 0]) == pytest.approx(1 / 3)
    assert jain([]) is jain([0, 0]) is None


def test_wide_requests_are_those_for_four_accelerators_or_more():
    assert is_wide(ResourceSlots({"cuda.device": 4000}))
    assert not is_wide(
        ResourceSlots({"cuda.device": 3000, "cpu": 64_000, "mem": 1 << 40})
    )
    assert not is_wide(ResourceSlots({"cuda.mem": 1 << 40}))


@pytest.mark.parametrize(("wide_after", "told"), [("0", 0), ("60", 60), ("null", None)])
def test_a_trace_says_how_long_wide_requests_wait_for_a_reservation(
    wide_after: str, told: int | None
):
    group = f'{{"kind":"group","name":"","reserve_wide_after":{wide_after}}}'
    there = world(group)
    assert there.groups[""].reserve_wide_after == told
    again = from_trace(read_trace(write_trace(list(to_records(there)))))
    assert again.groups == there.groups
