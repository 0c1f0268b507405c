"""Limits: which ones a request would break, and in what words."""

import hypothesis.strategies as st
from hypothesis import given

from backendai_hub.core.quotas import (
    COUNTERS,
    LOCK_ORDER,
    SESSIONS,
    SYSTEM_SESSIONS,
    TENANTS,
    QuotaScope,
    ScopeKind,
    charge,
    find_shortfalls,
)
from backendai_hub.core.slots import MILLI, ResourceSlots

GIB = 1 << 30


def make_scope(
    limits, used=(), kind=ScopeKind.PROJECT, name="vision", unspecified=None
):
    return QuotaScope(
        kind=kind,
        id=name,
        name=name,
        limits=limits,
        used=dict(used),
        unspecified=unspecified,
    )


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


def test_a_slot_that_a_limited_policy_does_not_list_is_forbidden():
    limited = make_scope({"cpu": 4000}, unspecified=0)
    unlimited = make_scope({"cpu": 4000}, unspecified=None)
    assert broken({"cuda.device": 1000}, limited) == [("vision", "cuda.device")]
    assert broken({"cuda.device": 1000}, unlimited) == []


def test_a_listed_slot_without_a_limit_is_unlimited_even_where_others_are_not():
    assert broken({"cpu": 1 << 60}, make_scope({"cpu": None}, unspecified=0)) == []


def test_how_many_sessions_is_limited_by_its_own_number_and_not_by_what_is_unlisted():
    limited = make_scope({"cpu": 4000}, unspecified=0)
    assert broken(charge(ResourceSlots({"cpu": 1000})), limited) == []
    counted = make_scope({SESSIONS: 2 * MILLI}, {SESSIONS: 2 * MILLI})
    assert [str(s) for s in find_shortfalls(charge(ResourceSlots()), [counted])] == [
        "project vision: sessions 2 of 2 in use, asks 1"
    ]


def test_a_session_counts_what_it_asks_for_and_one_session():
    asked = ResourceSlots({"cpu": 1500, "mem": GIB})
    assert charge(asked) == ResourceSlots({"cpu": 1500, "mem": GIB, SESSIONS: MILLI})


def test_a_system_session_counts_as_nothing_but_a_system_session():
    asked = ResourceSlots({"cpu": 1500, "mem": GIB})
    assert charge(asked, system=True) == ResourceSlots({SYSTEM_SESSIONS: MILLI})
    full = make_scope({"cpu": 0, SESSIONS: 0}, unspecified=0)
    assert broken(charge(asked, system=True), full) == []


def test_the_sentence_of_the_specification():
    vision = make_scope({"cuda.shares": 8000}, {"cuda.shares": 12000})
    request = ResourceSlots({"cuda.shares": 1000})
    assert [str(s) for s in find_shortfalls(request, [vision])] == [
        "project vision: cuda.shares 12 of 8 in use, asks 1"
    ]


LIMITS = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 3))
SCOPES = st.tuples(
    *(
        st.builds(
            make_scope,
            LIMITS,
            BAGS,
            kind=st.just(kind),
            name=st.just(str(kind)),
            # Only a policy of a user or keypair can mean "none" by silence.
            unspecified=st.sampled_from([None, 0])
            if kind in {ScopeKind.USER, ScopeKind.KEYPAIR}
            else st.none(),
        )
        for kind in TENANTS
    )
)
COUNTS = st.integers(0, 3)


@given(BAGS, SCOPES, COUNTS, COUNTS, st.booleans())
def test_all_scopes_are_judged_as_counting_on_fingers_would(
    request, scopes, running, most, system
):
    """Compared with a second way of saying it: add up, compare, slot by slot."""
    counter = SYSTEM_SESSIONS if system else SESSIONS
    user = scopes[TENANTS.index(ScopeKind.USER)]
    user.limits[counter] = most * MILLI
    user.used[counter] = running * MILLI
    expected = set()
    for scope in scopes:
        for slot in [] if system else "ab":
            wanted = request.get(slot, 0)
            free_of_limit = scope.limits.get(slot, "unlisted") is None or (
                slot not in scope.limits and scope.unspecified is None
            )
            if wanted == 0 or free_of_limit:
                continue
            most_of_it = scope.limits.get(slot) or 0
            after = sum([scope.used.get(slot, 0), wanted])
            if after > most_of_it:
                expected.add((scope.name, slot))
        if scope is user and running + 1 > most:
            expected.add((scope.name, counter))

    found = broken(charge(ResourceSlots(request), system=system), *scopes)

    assert set(found) == expected
    assert len(found) == len(expected)
    names = [name for name, _ in found]
    assert names == sorted(names, key=LOCK_ORDER.index)


@given(BAGS, BAGS)
def test_what_sessions_count_adds_up(one, other):
    both = ResourceSlots(one) + ResourceSlots(other)
    summed = charge(ResourceSlots(one)) + charge(ResourceSlots(other))
    assert summed == charge(both) + ResourceSlots({SESSIONS: MILLI})
    assert not COUNTERS & set(both)
