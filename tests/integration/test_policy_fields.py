"""Every field of every policy and of resource groups does what it says.

The tables below name for each field the test of its effect. Fields of which there is
nothing yet that they could limit are listed as such, with a value that has to be
stored, shown and refused where it makes no sense. A field in neither table fails the
first test, so that none is forgotten.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.fields import fields_of
from backendai_hub.core.groups import SchedulerOptions, SessionOptions
from backendai_hub.core.nouns import noun_of
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user
from tests.factories import add_node, make_device, schedule, start, submit
from tests.integration import (
    test_concurrent_logins,
    test_deadlines,
    test_fair_share,
    test_group_rules,
    test_idle_sessions,
    test_kept_room,
    test_node_places,
    test_preemption,
    test_quota_rules,
    test_session_grants,
)
from tests.tenants import Office, read, why

HERE = sys.modules[__name__]
QUOTA, GROUPS, TIME = test_quota_rules, test_group_rules, test_deadlines
IDLE, KEPT, SHARE = test_idle_sessions, test_kept_room, test_fair_share
GRANTS, LOGINS = test_session_grants, test_concurrent_logins
ROOM, PLACES = test_preemption, test_node_places

EFFECTS: dict[str, dict[str, tuple[Any, str]]] = {
    "keypair-policy": {
        "name": (HERE, "test_policies_are_referred_to_by_names_that_never_change"),
        "is_default": (HERE, "test_who_is_given_no_policy_has_the_default_one"),
        "default_for_unspecified": (
            QUOTA,
            "test_q4_a_slot_that_a_limited_policy_does_not_list_can_never_be_had",
        ),
        "total_resource_slots": (
            QUOTA,
            "test_q1_a_user_uses_at_most_what_their_default_keypairs_policy_allows",
        ),
        "max_concurrent_sessions": (HERE, "test_so_many_sessions_run_at_once"),
        "max_concurrent_sftp_sessions": (
            QUOTA,
            "test_q7_a_system_session_counts_against_its_own_number_only",
        ),
        "max_pending_session_count": (
            QUOTA,
            "test_more_than_the_pending_cap_is_refused_and_nothing_is_stored",
        ),
        "max_pending_session_resource_slots": (
            QUOTA,
            "test_waiting_sessions_together_ask_for_no_more_than_the_pending_slots",
        ),
        "max_containers_per_session": (HERE, "test_a_session_has_so_many_containers"),
        "max_session_lifetime": (
            TIME,
            "test_a_session_is_ended_when_it_has_run_as_long_as_its_policy_allows",
        ),
        "idle_timeout": (
            IDLE,
            "test_a_session_is_ended_when_it_was_unused_for_longer_than_its_policy_allows",
        ),
        "max_priority": (HERE, "test_a_priority_above_the_cap_is_refused"),
        "max_job_priority": (
            ROOM,
            "test_nobody_raises_their_own_job_priority_unless_a_policy_lets_them",
        ),
        "allows_not_preemptible": (
            ROOM,
            "test_a_policy_may_allow_no_sessions_that_are_never_displaced",
        ),
    },
    "user-policy": {
        "name": (HERE, "test_policies_are_referred_to_by_names_that_never_change"),
        "is_default": (HERE, "test_who_is_given_no_policy_has_the_default_one"),
        "max_concurrent_logins": (
            LOGINS,
            "test_one_login_more_than_the_policy_allows_is_refused_in_words",
        ),
    },
    "project-policy": {
        "name": (HERE, "test_policies_are_referred_to_by_names_that_never_change"),
        "is_default": (HERE, "test_who_is_given_no_policy_has_the_default_one"),
    },
    "resource-group": {
        "name": (GROUPS, "test_a_session_is_placed_on_nodes_of_its_group_only"),
        "is_active": (GROUPS, "test_an_inactive_group_keeps_its_queue_and_what_runs"),
        "is_public": (GROUPS, "test_a_group_that_is_not_public_takes_no_such_session"),
        "is_default": (GROUPS, "test_the_default_group_is_the_first_of_those_open"),
        "default_session_options": (
            HERE,
            "test_a_session_that_asks_for_no_priority_has_its_groups",
        ),
        "scheduler": (SHARE, "test_the_groups_scheduler_says_who_is_first"),
        "use_host_network": (
            GRANTS,
            "test_sessions_of_a_group_are_on_their_nodes_network",
        ),
    },
}
"""The test of each field's effect, by noun and field."""

_HOSTS = ({"local": ["mount-in-session"]}, {"local": ["fly"]})
_COUNT = (7, -1)

STORED: dict[str, dict[str, tuple[Any, Any]]] = {
    "keypair-policy": {
        "description": ("of gold", "x" * 513),
        "allowed_vfolder_hosts": _HOSTS,
    },
    "user-policy": {
        "description": ("of gold", "x" * 513),
        "max_vfolder_count": _COUNT,
        "max_quota_scope_size": ("10g", "-2"),
        "max_session_count_per_model_session": _COUNT,
        "max_customized_image_count": _COUNT,
    },
    "project-policy": {
        "description": ("of gold", "x" * 513),
        "max_vfolder_count": _COUNT,
        "max_quota_scope_size": ("10g", "-2"),
        "max_network_count": _COUNT,
    },
    "resource-group": {
        "description": ("of gold", "x" * 513),
        "driver": ("static", "magic"),
        "driver_opts": ({"a": {"b": [1]}}, {"a": "x" * (65 << 10)}),
        "wsproxy_addr": ("https://apps.example", "x\ny"),
        "wsproxy_api_token": ("s3cret", "x" * 1025),
        "fair_share_spec": ({"half_life_days": 3.5}, {"half_life_days": 0}),
        "default_deployment_options": (
            {"handler_policies": {"deploy": {"max_retry": 5}}},
            {"handlers": 1},
        ),
    },
}
"""Fields of what does not exist yet: a value that is kept, and one that is refused."""

SECRET = {"wsproxy_api_token"}
"""Fields of which only whether they are set is ever shown."""

OPTIONS: dict[str, dict[str, tuple[Any, str] | tuple[Any, Any]]] = {
    "scheduler_opts": {
        "allowed_session_types": (
            GROUPS,
            "test_a_group_takes_only_sessions_of_the_types_it_allows",
        ),
        "pending_timeout": (
            TIME,
            "test_what_waits_longer_than_its_groups_timeout_is_cancelled",
        ),
        "config": ({"num_retries_to_skip": 3}, 3),
        "agent_selection_strategy": (
            KEPT,
            "test_the_group_says_how_its_nodes_are_chosen",
        ),
        "agent_selector_config": ({"a": 1}, 1),
        "allow_fractional_resource_fragmentation": (True, "no"),
        "reserve_after": (
            KEPT,
            "test_the_group_says_after_how_long_room_is_kept",
        ),
        "reserve_wide_after": (
            KEPT,
            "test_the_group_says_after_how_long_room_is_kept_for_wide_requests",
        ),
        "rack_label": (PLACES, "test_containers_that_lie_apart_stay_in_one_rack"),
        "route_cleanup_target_statuses": (["unhealthy", "failed"], "unhealthy"),
        "preemption": (ROOM, "test_nobody_leaves_where_nobody_has_said_so"),
    },
    "default_session_options": {
        "priority": (HERE, "test_a_session_that_asks_for_no_priority_has_its_groups"),
        "job_priority": (-5, 1 << 63),
        "handler_policies": ({"start": {"max_retry": 5}}, 5),
    },
}
"""The parts of a resource group's documents, each in either way."""


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


def test_every_field_is_in_one_of_the_tables():
    for noun, effects in EFFECTS.items():
        declared = set(fields_of(noun_of(noun).shown)) - {"scheduler_opts"}
        assert set(effects) | set(STORED[noun]) == declared, noun
        assert not set(effects) & set(STORED[noun]), noun
    for option, form in (
        ("scheduler_opts", SchedulerOptions),
        ("default_session_options", SessionOptions),
    ):
        assert set(OPTIONS[option]) == set(form.__struct_fields__)


def test_every_test_that_the_tables_name_is_there():
    named = [
        place
        for table in (*EFFECTS.values(), *OPTIONS.values())
        for place in table.values()
        if isinstance(place[0], type(HERE))
    ]
    assert len(named) >= 18
    for module, name in named:
        assert callable(getattr(module, name, None)), f"{module.__name__}: {name}"


STORED_FIELDS = [
    (noun, name, *values)
    for noun, fields in STORED.items()
    for name, values in fields.items()
]


@pytest.mark.parametrize(
    ("noun", "name", "kept", "refused"),
    STORED_FIELDS,
    ids=[f"{noun}.{name}" for noun, name, *_ in STORED_FIELDS],
)
async def test_a_field_is_stored_and_shown_and_nonsense_refused(
    office: Office, noun: str, name: str, kept: Any, refused: Any
):
    await office.make(noun, name="gold")
    shown = getattr(await office.change(noun, "gold", **{name: kept}), name)
    again = getattr(await office.read(noun, "gold"), name)
    assert shown == again
    if name in SECRET:
        assert again is None
        assert getattr(await office.read(noun, "gold"), f"has_{name}")
    else:
        _check_holds(again, kept)
    if refused is None:
        return
    with pytest.raises(InvalidRequestError, match=name):
        await office.change(noun, "gold", **{name: refused})
    assert getattr(await office.read(noun, "gold"), name) == again


OPTION_FIELDS = [
    (option, name, *values)
    for option, fields in OPTIONS.items()
    for name, values in fields.items()
    if not isinstance(values[0], type(HERE))
]


@pytest.mark.parametrize(
    ("option", "name", "kept", "refused"),
    OPTION_FIELDS,
    ids=[f"{option}.{name}" for option, name, *_ in OPTION_FIELDS],
)
async def test_an_option_is_stored_and_shown_and_nonsense_refused(
    office: Office, option: str, name: str, kept: Any, refused: Any
):
    await office.make("resource-group", name="gold")
    await office.change("resource-group", "gold", **{option: {name: kept}})
    shown = getattr(await office.read("resource-group", "gold"), option)
    value = getattr(shown, name)
    if hasattr(value, "__struct_fields__"):
        value = {f: getattr(value, f) for f in value.__struct_fields__}
    _check_holds(list(value) if isinstance(value, tuple) else value, kept)
    with pytest.raises(InvalidRequestError, match=option):
        await office.change("resource-group", "gold", **{option: {name: refused}})


@pytest.mark.parametrize("option", ["scheduler_opts", "default_session_options"])
@pytest.mark.parametrize(
    "given", [{"unknown": 1}, {"pending_timeout": 1 << 63}, {"priority": 101}], ids=str
)
async def test_options_that_no_group_has_are_refused(
    office: Office, option: str, given: dict[str, int]
):
    with pytest.raises(InvalidRequestError, match=option):
        await office.change("resource-group", "default", **{option: given})


def _check_holds(shown: Any, kept: Any) -> None:
    if isinstance(kept, dict) and not isinstance(shown, dict):
        shown = {f: getattr(shown, f) for f in shown.__struct_fields__}
    if isinstance(kept, dict):
        assert kept.items() <= shown.items()
    else:
        assert shown == kept


# --- effects that have no home elsewhere --------------------------------------------


@pytest.mark.parametrize("noun", ["keypair-policy", "user-policy", "project-policy"])
async def test_policies_are_referred_to_by_names_that_never_change(
    office: Office, noun: str
):
    await office.make(noun, name="Gold")
    assert (await office.read(noun, "gold")).name == "Gold"
    assert "name" not in noun_of(noun).change_type.__struct_fields__
    await office.purge(noun, "GOLD")
    with pytest.raises(NotFoundError):
        await office.read(noun, "gold")


async def test_who_is_given_no_policy_has_the_default_one(
    platform: Platform, office: Office
):
    for noun in ("keypair-policy", "user-policy", "project-policy"):
        await office.make(noun, name="gold", is_default=True)
        assert not (await office.read(noun, "default")).is_default
    await ensure_user(platform, "alice")
    project = await office.make("project", name="vision", domain="default")
    assert (await office.default_key("alice")).resource_policy == "gold"
    assert (await office.read("user", "alice")).resource_policy == "gold"
    assert project.resource_policy == "gold"
    with pytest.raises(InvalidRequestError, match="there is always one"):
        await office.change("keypair-policy", "gold", is_default=False)


async def test_so_many_sessions_run_at_once(platform: Platform, office: Office):
    await add_node(platform)
    await office.limit_user("alice", max_concurrent_sessions=2)
    for server in "ab":
        await start(platform, server=server)
    waiting = (await submit(platform, server="c")).session
    assert await why(platform, waiting) == "user alice: sessions 2 of 2 in use, asks 1"
    for unlimited in (0, -1):
        await office.change(
            "keypair-policy", "of-alice", max_concurrent_sessions=unlimited
        )
        assert await schedule(platform) == 1
        await submit(platform, server=f"more{unlimited}")


async def test_a_session_has_so_many_containers(platform: Platform, office: Office):
    await office.limit_user("alice", max_containers_per_session=1)
    with pytest.raises(InvalidRequestError, match=r"more than 1, .*policy of-alice"):
        await submit(platform, cluster_size=2)
    await office.change("keypair-policy", "of-alice", max_containers_per_session=0)
    assert (await submit(platform, cluster_size=2)).session.cluster_size == 2


async def test_a_priority_above_the_cap_is_refused(platform: Platform, office: Office):
    await office.limit_user("alice", max_priority=5)
    with pytest.raises(InvalidRequestError, match=r"6 is above 5, .*policy of-alice"):
        await submit(platform, priority=6)
    assert (await submit(platform, server="a", priority=5)).session.priority == 5
    assert (await submit(platform, server="b")).session.priority == 5


async def test_a_session_that_asks_for_no_priority_has_its_groups(
    platform: Platform, office: Office
):
    first = (await submit(platform, server="a")).session
    await office.change(
        "resource-group", "default", default_session_options={"priority": 70}
    )
    second = (await submit(platform, server="b")).session
    named = (await submit(platform, server="c", priority=0)).session
    assert [s.priority for s in (first, second, named)] == [10, 70, 0]


async def test_a_higher_priority_goes_first(platform: Platform, office: Office):
    await submit(platform, server="low", priority=10, slots={"cpu": 4})
    high = (
        await submit(platform, server="high", priority=20, slots={"cpu": 4})
    ).session
    await add_node(platform, devices=[make_device()])
    assert await schedule(platform) == 1
    assert (await read(platform, high)).status == "SCHEDULED"
