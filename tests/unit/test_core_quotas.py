"""Limits: which ones a request would break, and in what words."""

import hypothesis.strategies as st
from hypothesis import given

from backendai_hub.core.quotas import (
    LOCK_ORDER,
    QuotaScope,
    ScopeKind,
    find_shortfalls,
)
from backendai_hub.core.slots import ResourceSlots

GIB = 1 << 30


def make_scope(limits, used=(), kind=ScopeKind.PROJECT, name="vision"):
    return QuotaScope(kind=kind, id=name, name=name, limits=limits, used=dict(used))


def broken(request, *scopes):
    return [(s.name, s.slot) for s in find_shortfalls(ResourceSlots(request), scopes)]


def test_a_request_may_use_a_limit_up():
    scope = make_scope({"cpu": 4000}, {"cpu": 3000})
    assert broken({"cpu": 1000}, scope) == []
    assert broken({"cpu": 1001}, scope) == [("vision", "cpu")]


def test_a_slot_without_a_limit_is_unlimited():
    assert broken({"mem": 1 << 60}, make_scope({"cpu": 0})) == []


def test_a_limit_of_zero_forbids_the_slot():
    scope = make_scope({"cuda.device": 0})
    assert broken({"cuda.device": 1}, scope) == [("vision", "cuda.device")]
    assert broken({"cpu": 1000}, scope) == []


def test_a_slot_that_is_not_in_use_counts_from_zero():
    assert broken({"cpu": 1000}, make_scope({"cpu": 1000})) == []


def test_lowering_a_limit_below_use_only_blocks_what_asks_for_that_slot():
    scope = make_scope({"cpu": 1000}, {"cpu": 8000})
    assert broken({"mem": 1}, scope) == []
    assert broken({"cpu": 1}, scope) == [("vision", "cpu")]


def test_a_slot_asked_for_with_zero_breaks_no_limit():
    assert broken({"cpu": 0}, make_scope({"cpu": 1000}, {"cpu": 8000})) == []


def test_every_broken_limit_is_named_in_the_order_of_the_scopes():
    domain = make_scope({"cpu": 1}, kind=ScopeKind.DOMAIN, name="default")
    user = make_scope({"cpu": 2, "mem": 0}, kind=ScopeKind.USER, name="alice")
    assert broken({"cpu": 3, "mem": 1}, domain, user) == [
        ("default", "cpu"),
        ("alice", "cpu"),
        ("alice", "mem"),
    ]


def test_without_scopes_nothing_is_limited():
    assert broken({"cpu": 1 << 60}) == []


def test_a_shortfall_says_who_what_and_how_much():
    scope = make_scope({"mem": 16 * GIB, "cpu": 2000}, {"mem": 12 * GIB, "cpu": 1500})
    request = ResourceSlots({"cpu": 1000, "mem": 8 * GIB})
    assert [str(s) for s in find_shortfalls(request, [scope])] == [
        "project vision: cpu 1.5 of 2 in use, asks 1",
        "project vision: mem 12 GiB of 16 GiB in use, asks 8 GiB",
    ]


def test_scopes_are_locked_from_the_widest_to_the_narrowest_and_devices_last():
    assert LOCK_ORDER == ("domain", "project", "user", "keypair", "device")


BAGS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 3))


@given(BAGS, BAGS, BAGS)
def test_a_request_is_stopped_exactly_when_its_slots_would_pass_a_limit(
    request, limits, used
):
    over = {
        slot
        for slot, asked in request.items()
        if asked and slot in limits and used.get(slot, 0) + asked > limits[slot]
    }
    found = broken(request, make_scope(limits, used))
    assert {slot for _, slot in found} == over
    assert len(found) == len(over)
