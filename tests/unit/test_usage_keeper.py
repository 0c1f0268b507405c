"""Measurements of some minutes: rings, sums of several containers, who makes room."""

from __future__ import annotations

from backendai_hub.core.live_usage import UsageSeries, UsageTotals
from backendai_hub.core.measures import Sample
from backendai_hub.core.rings import Ring
from backendai_hub.core.usage_keeper import (
    Subject,
    UsageKeeper,
    join_series,
    join_totals,
)

SESSION = "s"


def learn(keeper: UsageKeeper, name: str, **changes: object) -> Subject:
    subject = Subject(
        **{
            "id": name,
            "session_id": SESSION,
            "agent_id": "node",
            "owner_id": "alice",
            "domain_id": "amber",
            "cpu_limit": 2.0,
            **changes,
        }
    )
    keeper.learn(subject, UsageTotals())
    return subject


def test_a_ring_keeps_the_newest_in_the_order_of_their_moments():
    ring = Ring(2, most=3)
    for moment in range(5):
        ring.append(float(moment), (moment * 10, None))

    assert len(ring) == 3
    assert ring.read(0.0) == ([2.0, 3.0, 4.0], [[20, 30, 40], [None, None, None]])
    assert ring.read(2.0) == ([3.0, 4.0], [[30, 40], [None, None]])
    assert ring.read(9.0) == ([], [[], []])


def test_a_session_of_several_containers_is_their_sum():
    keeper = UsageKeeper()
    learn(keeper, "one", host="main1", rank=0)
    learn(keeper, "two", host="sub1", rank=1)
    keeper.note(100.0, Sample(id="one", cpu=1.0, memory=10))
    keeper.note(101.0, Sample(id="two", cpu=0.5))

    live = keeper.find_live(SESSION, 102.0)

    assert live is not None
    assert (live.cpu, live.cpu_limit, live.memory) == (1.5, 4.0, 10)
    assert live.at == 101.0
    known = keeper.list_known(SESSION, 102.0, 0.0)
    assert [part.subject.host for part in known] == ["main1", "sub1"]


def test_one_of_several_that_is_silent_does_not_count_for_ever():
    keeper = UsageKeeper()
    learn(keeper, "one", host="main1")
    learn(keeper, "two", host="sub1")
    keeper.note(100.0, Sample(id="one", cpu=1.0))
    keeper.note(100.0, Sample(id="two", cpu=0.5))
    keeper.note(130.0, Sample(id="one", cpu=1.0))

    live = keeper.find_live(SESSION, 130.0)

    assert live is not None
    assert live.cpu == 1.0


def test_who_has_taken_a_containers_place_counts_instead_of_it():
    keeper = UsageKeeper()
    learn(keeper, "first attempt")
    keeper.note(100.0, Sample(id="first attempt", cpu=1.0, cpu_seconds=50.0))
    learn(keeper, "second attempt")
    keeper.note(101.0, Sample(id="second attempt", cpu=0.5, cpu_seconds=1.0))

    live = keeper.find_live(SESSION, 102.0)

    assert live is not None
    assert (live.cpu, live.cpu_limit) == (0.5, 2.0)
    totals = join_totals(k.totals for k in keeper.list_known(SESSION, 102.0, 0.0))
    assert totals is not None
    assert totals.cpu_seconds == 51.0, "what was used was used"


def test_series_are_added_up_where_they_lie_in_the_same_step():
    one = UsageSeries(time=[1.0, 6.0, 11.0], cpu=[1.0, 2.0, 3.0], memory=[1, 1, 1])
    two = UsageSeries(time=[2.0, 7.5], cpu=[0.5, None], utilization=[0.2, 0.4])

    joined = join_series([one, two], step=5.0)

    assert joined.time == [5.0, 10.0, 15.0]
    assert joined.cpu == [1.5, 2.0, 3.0]
    assert joined.memory == [1, 1, 1]
    assert joined.utilization == [0.2, 0.4, None]
    assert joined.read_rate == []
    assert join_series([], step=5.0) == UsageSeries()
    assert join_series([one], step=5.0) == one


def test_nothing_of_a_session_that_made_room_is_left():
    keeper = UsageKeeper(most=1)
    learn(keeper, "one")
    keeper.note(1.0, Sample(id="one", cpu=1.0))
    learn(keeper, "other", session_id="t", owner_id="bob")
    keeper.note(2.0, Sample(id="other", cpu=1.0))

    assert keeper.subject("one") is None
    assert keeper.whose(SESSION) is None
    assert list(keeper.list_owned("alice", 2.0)) == []
    assert [live.session_id for live in keeper.list_live(2.0)] == ["t"]


def test_nodes_that_are_silent_are_forgotten():
    keeper = UsageKeeper()
    keeper.note_node(100.0, "node", "one", Sample(cpu=1.0, cpu_limit=4.0))

    assert keeper.find_node("node", 110.0) is not None
    assert keeper.find_node("node", 130.0) is None
    keeper.forget_old(2000.0)
    assert keeper.list_nodes(100.0) == []
