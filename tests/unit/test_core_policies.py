"""Policies: what is refused when a session is asked for, and in what words."""

import pytest

from backendai_hub.core.durations import describe_duration
from backendai_hub.core.errors import InvalidRequestError, LimitReachedError
from backendai_hub.core.fields import defaults_of, fields_of, read_fields, request_type
from backendai_hub.core.policies import (
    KeypairPolicy,
    ProjectPolicy,
    SubmissionCaps,
    UserPolicy,
    check_caps,
    check_pending,
    choose_priority,
)

POLICIES = [KeypairPolicy, UserPolicy, ProjectPolicy]


def make_caps(**changes):
    return SubmissionCaps(
        **{
            "policy": "gold",
            "max_pending_session_count": None,
            "max_pending_session_resource_slots": {},
            "max_containers_per_session": 1,
            "max_priority": None,
            **changes,
        }
    )


def check(priority=10, containers=1, **caps):
    check_caps(make_caps(**caps), priority=priority, containers=containers)


def pend(request, *, waiting=0, asked=(), **caps):
    check_pending(
        make_caps(**caps), waiting=waiting, asked=dict(asked), request=request
    )


# --- priority ----------------------------------------------------------------------


@pytest.mark.parametrize("priority", [0, 10, 100])
def test_any_priority_from_0_to_100_may_be_asked_for_without_a_cap(priority):
    check(priority)


@pytest.mark.parametrize("priority", [-1, 101, 1 << 63])
def test_other_priorities_are_none(priority):
    with pytest.raises(InvalidRequestError, match="not between 0 and 100"):
        check(priority)


def test_a_priority_up_to_the_cap_is_allowed_and_above_it_refused_by_the_policys_name():
    check(20, max_priority=20)
    with pytest.raises(InvalidRequestError) as refused:
        check(21, max_priority=20)
    assert refused.value.message == (
        "priority: 21 is above 20, the most that the keypair policy gold allows"
    )


def test_a_cap_of_0_leaves_priority_0():
    check(0, max_priority=0)
    with pytest.raises(InvalidRequestError):
        check(1, max_priority=0)


def test_who_asks_for_no_priority_gets_the_usual_one_but_never_more_than_a_cap():
    assert choose_priority([make_caps()], 10) == 10
    assert choose_priority([make_caps(max_priority=50)], 10) == 10
    assert choose_priority([make_caps(max_priority=5), make_caps()], 10) == 5
    assert choose_priority([make_caps(max_priority=0)], 10) == 0
    assert choose_priority([], 10) == 10


# --- containers --------------------------------------------------------------------


def test_a_session_has_as_many_containers_as_its_policy_allows():
    check(containers=3, max_containers_per_session=3)
    with pytest.raises(InvalidRequestError) as refused:
        check(containers=4, max_containers_per_session=3)
    assert refused.value.message == (
        "cluster_size: 4 containers are more than 3, the most that the keypair policy"
        " gold allows in one session"
    )


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_of_containers_of_0_or_less_is_none(most):
    check(containers=1000, max_containers_per_session=most)


def test_a_session_has_at_least_one_container():
    with pytest.raises(InvalidRequestError, match="at least 1"):
        check(containers=0, max_containers_per_session=0)


# --- what may wait -----------------------------------------------------------------


def test_without_pending_caps_anything_may_wait():
    pend({"cpu": 1 << 60}, waiting=10_000, asked={"cpu": 1 << 62})
    assert not make_caps().limits_waiting


def test_as_many_sessions_may_wait_as_the_cap_says_and_no_more():
    pend({"cpu": 1000}, waiting=1, max_pending_session_count=2)
    with pytest.raises(LimitReachedError, match="2 of 2 sessions wait already"):
        pend({"cpu": 1000}, waiting=2, max_pending_session_count=2)


def test_a_pending_cap_of_0_lets_nothing_wait():
    with pytest.raises(LimitReachedError, match="0 of 0"):
        pend({"cpu": 1000}, max_pending_session_count=0)


def test_waiting_sessions_together_may_ask_for_as_much_as_the_cap_says():
    caps = {"max_pending_session_resource_slots": {"cpu": 4000, "mem": None}}
    pend({"cpu": 1000, "mem": 1 << 40}, asked={"cpu": 3000}, **caps)
    with pytest.raises(LimitReachedError, match=r"cpu 3 of 4 waits already, asks 1\.5"):
        pend({"cpu": 1500}, asked={"cpu": 3000}, **caps)


def test_only_listed_slots_are_capped_and_0_forbids_to_wait_for_one():
    caps = {"max_pending_session_resource_slots": {"cuda.device": 0}}
    pend({"cpu": 1 << 50}, **caps)
    with pytest.raises(LimitReachedError, match=r"cuda\.device 0 of 0"):
        pend({"cuda.device": 1000}, **caps)


def test_everything_that_is_too_much_is_named_at_once_with_what_to_do():
    with pytest.raises(LimitReachedError) as refused:
        pend(
            {"cpu": 2000, "mem": 2 << 30},
            waiting=3,
            asked={"cpu": 3000, "mem": 3 << 30},
            max_pending_session_count=3,
            max_pending_session_resource_slots={"cpu": 4000, "mem": 4 << 30},
        )
    assert refused.value.message == (
        "the keypair policy gold limits what may wait: 3 of 3 sessions wait already;"
        " cpu 3 of 4 waits already, asks 2; mem 3 GiB of 4 GiB waits already, asks"
        " 2 GiB; wait until something starts, or cancel it"
    )


# --- fields ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_names_of_policies_never_change(policy):
    assert fields_of(policy)["name"].once
    assert "name" not in request_type(policy, change=True).__struct_fields__


@pytest.mark.parametrize("policy", POLICIES)
def test_every_default_would_be_accepted_if_it_were_given(policy):
    given = {
        "name": "gold",
        **{
            k: defaults_of(policy)[k]
            for k in fields_of(policy)
            if k in defaults_of(policy)
        },
    }
    read_fields(policy, given, change=False)


def test_the_shipped_values_are_those_of_the_specification():
    shown = {
        name: defaults_of(KeypairPolicy)[name]
        for name in fields_of(KeypairPolicy)
        if name not in {"name", "description", "is_default"}
    }
    assert shown == {
        "default_for_unspecified": "UNLIMITED",
        "total_resource_slots": {},
        "max_concurrent_sessions": 5,
        "max_concurrent_sftp_sessions": 1,
        "max_pending_session_count": None,
        "max_pending_session_resource_slots": {},
        "max_containers_per_session": 1,
        "max_session_lifetime": 0,
        "idle_timeout": 3600,
        "max_priority": None,
        "max_job_priority": 0,
        "allows_not_preemptible": True,
        "allowed_vfolder_hosts": {},
    }


BEYOND = [
    ("max_concurrent_sessions", -2),
    ("max_concurrent_sftp_sessions", -2),
    ("max_pending_session_count", -1),
    ("max_containers_per_session", -2),
    ("max_session_lifetime", -1),
    ("max_session_lifetime", 1 << 31),
    ("idle_timeout", -2),
    ("idle_timeout", 15_552_001),
    ("max_priority", -1),
    ("max_priority", 101),
    ("max_concurrent_sessions", 1 << 63),
    ("max_session_lifetime", 1 << 63),
]


@pytest.mark.parametrize(("name", "number"), BEYOND)
def test_numbers_out_of_range_are_refused_with_the_range(name, number):
    with pytest.raises(InvalidRequestError, match=f"{name}: .*give a number from"):
        read_fields(KeypairPolicy, {name: number}, change=True)


NO_LIMITS = [
    "-1",
    -1,
    -0.5,
    "1e309",
    1e309 * -1,
    float("nan"),
    "nan",
    "-inf",
    "0x1",
    "1e3",
    1 << 63,
    -(1 << 63),
    str(1 << 63),
    "1" * 400,
    "",
    " ",
    "+1",
    "१",
]


@pytest.mark.parametrize(
    "field", ["total_resource_slots", "max_pending_session_resource_slots"]
)
@pytest.mark.parametrize("written", NO_LIMITS, ids=lambda v: repr(v)[:20])
def test_what_is_no_amount_is_no_limit_either(field, written):
    with pytest.raises(InvalidRequestError, match=f"^{field}: cpu: "):
        read_fields(KeypairPolicy, {field: {"cpu": written}}, change=True)


@pytest.mark.parametrize(
    "written", ["inf", "Infinity", "unlimited", "∞", None, float("inf"), " INF "]
)
def test_no_limit_may_be_written_in_several_ways(written):
    given = {"total_resource_slots": {"cpu": written, "mem": "0"}}
    read = read_fields(KeypairPolicy, given, change=True)
    assert read == {"total_resource_slots": {"cpu": None, "mem": 0}}
    kind = fields_of(KeypairPolicy)["total_resource_slots"].kind
    assert kind.show(read["total_resource_slots"]) == {"cpu": "inf", "mem": "0"}


@pytest.mark.parametrize("name", ["sessions", "sftp-sessions", "shmem", "CPU", "a b"])
def test_what_is_no_slot_cannot_be_limited_as_one(name):
    for written in ("1", "inf"):
        with pytest.raises(InvalidRequestError, match="not a slot"):
            read_fields(
                KeypairPolicy, {"total_resource_slots": {name: written}}, change=True
            )


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(InvalidRequestError) as refused:
        read_fields(
            KeypairPolicy,
            {
                "max_priority": 101,
                "total_resource_slots": {"cpu": "-1"},
                "default_for_unspecified": "SOMETIMES",
            },
            change=True,
        )
    assert [e["field"] for e in refused.value.fields["errors"]] == [
        "default_for_unspecified",
        "total_resource_slots",
        "max_priority",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (1, "1 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86_400, "1 d"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_durations_are_told_in_the_units_people_use(seconds, words):
    assert describe_duration(seconds) == words
