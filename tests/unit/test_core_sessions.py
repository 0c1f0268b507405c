"""The states of a session, and its name."""

import itertools

import pytest

from backendai_hub.core.errors import ConflictError, InvalidRequestError
from backendai_hub.core.sessions import (
    DEADLINES,
    DISPLACEABLE,
    OCCUPYING,
    QUEUED,
    STARTING,
    TERMINAL,
    TRANSITIONS,
    WAITING_WORDS,
    SessionStatus,
    check_can_become,
    check_session_name,
)

S = SessionStatus
LIVE = frozenset(S) - TERMINAL

WITHOUT_DEADLINE = {
    S.PENDING: "a queue may be long; a limit on waiting is policy",
    S.RUNNING: "it does not wait for anything",
}


def follow(status):
    """Return every state that can come after *status*, sooner or later."""
    reached, todo = set(), [status]
    while todo:
        for following in TRANSITIONS[todo.pop()] - reached:
            reached.add(following)
            todo.append(following)
    return reached


def test_every_state_says_what_may_follow():
    assert set(TRANSITIONS) == set(S)


def test_nothing_follows_an_end():
    assert {s for s in S if not TRANSITIONS[s]} == TERMINAL


def test_every_state_is_reached_from_the_queue():
    assert follow(S.PENDING) | {S.PENDING} == set(S)


def test_every_live_state_leads_to_an_end_and_can_fail_at_once():
    for status in LIVE:
        assert follow(status) & TERMINAL, status
        assert S.ERROR in TRANSITIONS[status], status


def test_two_states_lead_back_to_the_queue_and_no_end_is_undone():
    """What is in them is known to have stopped before it goes on."""
    leaving = {S.RESCHEDULING, S.PREEMPTED}
    for status in S:
        back = S.PENDING in TRANSITIONS[status]
        assert back == (status in leaving | {S.RESERVED})
        assert status not in TRANSITIONS[status]
    begun = STARTING | {S.RUNNING}
    for status in leaving:
        assert {s for s in S if status in TRANSITIONS[s]} == begun
    assert begun == DISPLACEABLE
    assert TRANSITIONS[S.TERMINATING] <= TERMINAL


def test_room_is_kept_for_who_waits_and_it_holds_nothing_itself():
    assert {S.PENDING, S.RESERVED} == QUEUED
    assert QUEUED.isdisjoint(OCCUPYING)
    assert {s for s in S if S.RESERVED in TRANSITIONS[s]} == {S.PENDING}
    assert TRANSITIONS[S.RESERVED] - {S.PENDING} == TRANSITIONS[S.PENDING] - {
        S.RESERVED
    }


def test_only_what_waits_in_the_queue_is_cancelled():
    """Later it holds slots, and ends as terminated."""
    assert {s for s in S if S.CANCELLED in TRANSITIONS[s]} == QUEUED


def test_what_is_placed_can_be_stopped_and_runs_when_it_answers():
    for status in STARTING:
        assert {S.RUNNING, S.TERMINATING} <= TRANSITIONS[status], status


def test_every_live_state_has_a_deadline_or_a_reason_why_not():
    assert set(DEADLINES) == LIVE
    assert {s for s, d in DEADLINES.items() if d is None} == set(WITHOUT_DEADLINE)
    assert all(d > 0 for d in DEADLINES.values() if d is not None)


def test_every_state_that_waits_has_words():
    assert set(WAITING_WORDS) == LIVE - {S.RUNNING}


def test_a_session_holds_its_slots_from_its_placement_to_its_end():
    assert LIVE - QUEUED == OCCUPYING
    leaving = {S.PREEMPTED, S.RESCHEDULING, S.TERMINATING}
    assert OCCUPYING - leaving - {S.RUNNING} == STARTING


@pytest.mark.parametrize(("old", "new"), list(itertools.product(S, S)))
def test_only_the_table_decides_what_may_follow(old, new):
    if new in TRANSITIONS[old]:
        check_can_become("s1", old, new)
        return
    with pytest.raises(ConflictError, match=f"s1 is {old} and cannot become {new}"):
        check_can_become("s1", old, new)


def test_no_session_is_called_like_the_identifier_of_another():
    with pytest.raises(InvalidRequestError, match="looks like the identifier"):
        check_session_name("01a20095-42b9-799b-93f9-ae682993b947")
    check_session_name("run-01a20095-42b9-799b-93f9-ae682993b947")


@pytest.mark.parametrize("name", ["a", "A", "7", "my-lab_2.0", "x" * 64])
def test_plain_names_are_taken(name):
    check_session_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "-a", "a-", ".", "..", "a/b", "../etc", "a b", "a\n", "é", "a\0"),
        *("<b>", "x" * 65, "x" * 1_000_000),
    ],
)
def test_other_names_are_refused_and_the_refusal_stays_short(name):
    with pytest.raises(InvalidRequestError, match=r"^name: .*1 to 64") as refused:
        check_session_name(name)
    assert len(refused.value.message) < 300
