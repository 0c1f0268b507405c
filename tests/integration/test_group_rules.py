"""Resource groups: who may use which, and where sessions go."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import update

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES
from backendai_hub.core.errors import (
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    NeverFitsError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.tables import ResourceGroupRow
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.deadlines import end_expired
from backendai_hub.operations.nouns import list_nouns
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.resources import load_resources
from backendai_hub.operations.users import ensure_user, make_principal
from backendai_hub.scheduling.plan import plan
from tests.factories import add_node, make_gpu, schedule, start, submit
from tests.tenants import ROOT, Office, ask_with_key, breaches, read, why


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


async def groups_seen(platform: Platform, name: str) -> list[str]:
    """Which groups somebody finds in the list of groups."""
    actor = await ensure_user(platform, name)
    principal = make_principal(
        actor, scopes=USER_SCOPES | ADMIN_SCOPES, credential="test"
    )
    shown, _ = await list_nouns(platform, principal, noun_of("resource-group"), {})
    return [group.name for group in shown]


# --- what its options say -----------------------------------------------------------


async def test_an_option_that_has_no_effect_is_refused_and_what_has_is_named(
    office: Office,
):
    rules = {"enabled": True, "preemptible_priority": 5}
    with pytest.raises(InvalidRequestError) as refused:
        await office.make(
            "resource-group", name="g", scheduler_opts={"preemption": rules}
        )
    assert "preemptible_priority has no effect" in str(refused.value)
    assert "job_priority" in str(refused.value)


async def test_a_group_that_had_that_option_already_goes_on(
    platform: Platform, office: Office
):
    await add_node(platform)
    async with platform.database.transaction() as tx:
        stored = {"preemption": {"enabled": True, "preemptible_priority": 5}}
        await tx.execute(update(ResourceGroupRow).values(scheduler_opts=stored))
    shown = (await office.read("resource-group", "default")).scheduler_opts
    assert shown.preemption.enabled
    assert (await start(platform)).resource_group == "default"
    assert await end_expired(platform) == 0
    kept = msgspec.to_builtins(shown)
    changed = await office.change("resource-group", "default", scheduler_opts=kept)
    assert changed.scheduler_opts == shown


# --- who may use which --------------------------------------------------------------


async def test_a_user_may_use_the_groups_of_their_domain_project_and_keypair(
    platform: Platform, office: Office
):
    await ensure_user(platform, "alice")
    for name in ("of-project", "of-keypair", "of-nobody"):
        await office.make("resource-group", name=name)
    await office.open_group("of-project", "project", "default:default")
    key = await office.make("keypair", user="alice")
    await office.open_group("of-keypair", "keypair", key.name)

    for group in ("default", "of-project", "of-keypair"):
        made = await ask_with_key(platform, "alice", key.id, resource_group=group)
        assert made.session.resource_group == group
    with pytest.raises(InvalidRequestError) as refused:
        await submit(platform, resource_group="of-keypair")
    assert refused.value.message == (
        "resource_group: 'of-keypair' is not open to you; open: default, of-project"
    )


async def test_a_group_that_is_not_open_and_one_that_is_not_there_are_told_alike(
    platform: Platform, office: Office
):
    await office.make("resource-group", name="secret")
    words = []
    for name in ("secret", "nowhere"):
        with pytest.raises(InvalidRequestError) as refused:
            await submit(platform, resource_group=name)
        words.append(refused.value.message.replace(name, "X"))
    assert words[0] == words[1]


async def test_the_default_group_is_the_first_of_those_open(
    platform: Platform, office: Office
):
    await office.make("resource-group", name="aaa")
    await office.open_group("aaa", "domain", "default")
    assert (await submit(platform)).session.resource_group == "default"
    await office.make("resource-group", name="zzz", is_default=True)
    assert (await submit(platform, server="b")).session.resource_group == "aaa"
    await office.open_group("zzz", "domain", "default")
    assert (await submit(platform, server="c")).session.resource_group == "zzz"


async def test_without_any_open_group_nothing_is_accepted_and_the_refusal_says_so(
    platform: Platform, office: Office
):
    await office.close_group("default", "domain", "default")
    with pytest.raises(InvalidRequestError, match="no resource group is open to your"):
        await submit(platform)


async def test_a_closed_group_takes_nothing_new_and_what_runs_in_it_goes_on(
    platform: Platform, office: Office
):
    await add_node(platform)
    running = await start(platform)
    waiting = (await submit(platform, server="two", slots={"cpu": 4})).session
    await office.close_group("default", "domain", "default")
    with pytest.raises(InvalidRequestError):
        await submit(platform, server="three")
    assert (await read(platform, running)).status is SessionStatus.SCHEDULED
    assert (await read(platform, waiting)).status is SessionStatus.PENDING


async def test_an_inactive_group_keeps_its_queue_and_what_runs(
    platform: Platform, office: Office
):
    await add_node(platform)
    running = await start(platform, slots={"cpu": 1})
    waiting = (await submit(platform, server="two", slots={"cpu": 1})).session
    await office.change("resource-group", "default", is_active=False)

    assert await why(platform, waiting) == "resource group default is not active"
    assert (await read(platform, running)).status is SessionStatus.SCHEDULED
    await office.change("resource-group", "default", is_active=True)
    assert await schedule(platform) == 1


async def test_an_inactive_group_is_hidden_from_people_and_cannot_be_asked_for(
    platform: Platform, office: Office
):
    await office.make("resource-group", name="old", is_active=False)
    await office.open_group("old", "domain", "default")
    actor = await ensure_user(platform, "alice")
    assert await groups_seen(platform, "alice") == ["default"]
    assert (await load_resources(platform, actor)).resource_groups == ["default"]
    assert "old" in [g.name for g in await office.list("resource-group")]
    with pytest.raises(InvalidRequestError) as refused:
        await submit(platform, resource_group="old")
    assert refused.value.message == (
        "resource_group: 'old' is not active; open: default"
    )
    await office.change("resource-group", "default", is_active=False)
    with pytest.raises(InvalidRequestError, match="is not active"):
        await submit(platform)


async def test_a_group_that_is_not_public_takes_no_such_session(
    platform: Platform, office: Office
):
    await office.make("resource-group", name="sftp", is_public=False)
    await office.open_group("sftp", "domain", "default")
    actor = await ensure_user(platform, "alice")
    assert await groups_seen(platform, "alice") == ["default"]
    assert (await load_resources(platform, actor)).resource_groups == ["default"]
    with pytest.raises(InvalidRequestError, match="'sftp' is not open to you"):
        await submit(platform, resource_group="sftp")
    await office.close_group("default", "domain", "default")
    with pytest.raises(InvalidRequestError, match="no resource group is open"):
        await submit(platform)


async def test_a_group_takes_only_sessions_of_the_types_it_allows(
    platform: Platform, office: Office
):
    await office.change(
        "resource-group", "default", scheduler_opts={"allowed_session_types": ["batch"]}
    )
    with pytest.raises(InvalidRequestError, match="default takes batch sessions only"):
        await submit(platform)
    await office.make("resource-group", name="lab")
    await office.open_group("lab", "domain", "default")
    assert (await submit(platform)).session.resource_group == "lab"
    with pytest.raises(InvalidRequestError, match="takes batch sessions only"):
        await submit(platform, server="two", resource_group="default")


# --- where sessions go ---------------------------------------------------------------


async def test_a_session_is_placed_on_nodes_of_its_group_only(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await add_node(platform, "n2")
    await office.make("resource-group", name="gpu")
    await office.open_group("gpu", "domain", "default")
    await office.move_node("n2", "gpu")
    for number in range(4):
        group = ("default", "gpu")[number % 2]
        placed = await start(platform, server=f"s{number}", resource_group=group)
        assert (await read(platform, placed)).agent == ("n1", "n2")[number % 2]
    full = (
        await submit(platform, server="big", resource_group="gpu", slots={"cpu": 4})
    ).session
    assert "n1" not in await why(platform, full)


async def test_what_only_another_group_has_can_never_be_had_and_names_the_group(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await office.make("resource-group", name="gpu")
    await add_node(platform, "n2", devices=[make_gpu("g")])
    await office.move_node("n2", "gpu")
    with pytest.raises(NeverFitsError) as refused:
        await submit(platform, slots={"cuda.device": 1})
    assert "resource group default" in refused.value.message
    assert "cuda.device" in refused.value.message
    assert "n2" not in refused.value.message


async def test_a_node_that_moves_serves_the_queue_of_its_new_group(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await office.make("resource-group", name="gpu")
    await office.open_group("gpu", "domain", "default")
    first = (await submit(platform, server="a", resource_group="gpu")).session
    second = (await submit(platform, server="b")).session
    await office.move_node("n1", "gpu")

    assert await schedule(platform) == 1
    assert (await read(platform, first)).agent == "n1"
    assert (await read(platform, second)).status is SessionStatus.PENDING


async def test_a_node_with_live_sessions_moves_only_by_force_and_they_go_on(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    running = await start(platform)
    await office.make("resource-group", name="gpu")
    with pytest.raises(InUseError, match="1 live sessions are on n1"):
        await office.move_node("n1", "gpu")
    await office.move_node("n1", "gpu", force=True)
    assert (await read(platform, running)).status is SessionStatus.SCHEDULED
    assert await breaches(platform) == []


@pytest.mark.parametrize("change", ["moved", "closed"])
async def test_a_plan_made_before_a_node_was_moved_or_closed_is_not_carried_out(
    platform: Platform, office: Office, change: str
):
    await add_node(platform, "n1")
    await office.make("resource-group", name="gpu")
    session = (await submit(platform)).session
    decided = plan(await load_snapshot(platform))
    assert len(decided.placements) == 1
    if change == "moved":
        await office.move_node("n1", "gpu")
    else:
        await change_agent(platform, ROOT, "n1", AgentChange(schedulable=False))

    assert await apply_plan(platform, decided) == 0
    assert (await read(platform, session)).status is SessionStatus.PENDING
    assert await breaches(platform) == []


# --- inactive tenants -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("noun", "name", "change", "words"),
    [
        ("domain", "research", {"is_active": False}, "domain research is not active"),
        (
            "project",
            "research:vision",
            {"is_active": False},
            "project vision is not active",
        ),
        ("user", "vera", {"status": "inactive"}, "user vera is inactive"),
    ],
    ids=["domain", "project", "user"],
)
async def test_the_queue_of_an_inactive_tenant_waits_and_what_runs_goes_on(
    platform: Platform,
    office: Office,
    noun: str,
    name: str,
    change: dict[str, object],
    words: str,
):
    await office.make_domain("research")
    await office.make("project", name="vision", domain="research")
    await office.make("user", name="vera", domain="research", project="research:vision")
    await add_node(platform)
    running = await start(platform, "vera", slots={"cpu": 1})
    waiting = (await submit(platform, "vera", server="b", slots={"cpu": 1})).session
    await office.change(noun, name, **change)

    assert await why(platform, waiting) == words
    assert (await read(platform, running)).status is SessionStatus.SCHEDULED
    with pytest.raises((ForbiddenError, InvalidRequestError)):
        await submit(platform, "vera", server="c")
