"""Weights and shares of a resource group: who sees and sets what, and what it shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from backendai_hub.api.shares import ShareChange, SharesRequest
from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Caller, Principal
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.fair_share import DAY
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.tenancy import Role
from backendai_hub.db import shares
from backendai_hub.db.session_lists import list_records
from backendai_hub.operations.counting import count_all
from backendai_hub.operations.fair_share import (
    SharesQuery,
    UsageQuery,
    change_shares,
    find_capacity,
    show_shares,
    show_usage,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.scenarios import export_trace, load_scenario
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.scheduling.ordering import Bands, FairShare
from backendai_hub.scheduling.scenario import from_trace
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.snapshot import GroupPolicy
from backendai_hub.scheduling.trace import read_trace
from backendai_hub.scheduling.what_if import Change
from tests.factories import (
    Node,
    add_node,
    make_device,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.tenants import ROOT, Office


class NodeOffice(Office):
    """An office with a node."""

    node: Node


CPU = {"slots": {"cpu": "2", "mem": "1g"}}


@pytest.fixture
async def office(platform: Platform) -> NodeOffice:
    """Two domains with projects and people, and a node of 8 processors."""
    made = NodeOffice(platform)
    made.node = await add_node(
        platform, devices=[make_device(slots={"cpu": 8000, "mem": 16 << 30})]
    )
    for domain, projects in (("amber", ("one", "two")), ("beryl", ("three",))):
        await made.make_domain(domain)
        for project in projects:
            await made.make("project", name=project, domain=domain)
    for user, domain, project in (
        ("ann", "amber", "one"),
        ("abe", "amber", "two"),
        ("bea", "beryl", "three"),
    ):
        await made.make("user", name=user, domain=domain)
        await made.join(f"{domain}:{project}", user)
        await made.change("user", user, project=f"{domain}:{project}")
    return made


async def admin_of(office: Office, domain: str) -> Principal:
    """A domain's administrator."""
    found = await office.read("domain", domain)
    return Principal(
        caller=Caller.DOMAIN_ADMIN,
        name="ada",
        id="ada",
        role=Role.DOMAIN_ADMIN,
        domain_id=found.id,
        holds=frozenset(
            {found.id, (await office.read("resource-group", "default")).id}
        ),
        scopes=USER_SCOPES | ADMIN_SCOPES,
    )


async def show(platform: Platform, who: Principal = ROOT, **query: str) -> Any:
    return await show_shares(platform, who, "default", SharesQuery(**query))


async def put(
    platform: Platform, *changes: dict[str, Any], who: Principal = ROOT
) -> Any:
    body = SharesRequest(changes=[ShareChange(**change) for change in changes])
    return await change_shares(platform, who, "default", body)


def of(table: Any, name: str) -> Any:
    return next(entry for entry in table.entries if entry.name == name)


# --- what is shown -------------------------------------------------------------------


async def test_everybody_begins_with_the_default_weight_and_no_share(office: Office):
    table = await show(office.platform)

    assert {e.name for e in table.entries} >= {"amber", "beryl", "default"}
    amber = of(table, "amber")
    assert (amber.weight, amber.weight_is_default) == (1, True)
    assert (amber.share, amber.factor) == (0, 1)
    assert table.capacity == {"cpu": "8", "mem": "16g"}


async def test_shares_are_shown_down_to_users(office: Office):
    await start(office.platform, "ann", **CPU)
    await submit(office.platform, "ann", server="two", **CPU)

    for table, name in (
        (await show(office.platform), "amber"),
        (await show(office.platform, domain="amber"), "one"),
        (await show(office.platform, domain="amber", project="one"), "ann"),
    ):
        entry = of(table, name)
        assert entry.live_share == 0.25
        assert entry.dominant_slot == "cpu"
        assert entry.held == {"cpu": "2", "mem": "1g"}
        assert entry.waiting == 1
    assert of(await show(office.platform, domain="amber"), "two").share == 0


async def test_past_use_is_shown_with_its_factor(office: Office):
    """2 of 8 processors and 1 of 16 GiB for a day: a mean of 5/32, of 28 days."""
    await start(office.platform, "ann", **CPU)
    office.platform.database.clock.pass_(DAY)  # type: ignore[attr-defined]
    await count_all(office.platform)

    amber = of(await show(office.platform), "amber")

    # Yesterday counts 2 ** (-1 / 7).
    usage = 5 / 32 / 28 * 2 ** (-1 / 7)
    assert amber.history_share == pytest.approx(usage)
    assert amber.factor == pytest.approx(2**-usage)
    assert amber.share == 0.25  # live use is the larger


async def test_whose_turn_comes_first_stands_first(office: Office):
    await start(office.platform, "ann", **CPU)

    assert [e.name for e in (await show(office.platform)).entries][-1] == "amber"


async def test_use_is_shown_by_day(office: Office):
    await start(office.platform, "ann", **CPU)
    office.platform.database.clock.pass_(DAY + 3600)  # type: ignore[attr-defined]
    await count_all(office.platform)

    found = await show_usage(
        office.platform, ROOT, "default", UsageQuery(domain="amber", days=7)
    )

    assert [(d.day, d.hours) for d in found.days] == [
        ("2026-01-01", {"cpu": 48.0, "mem": 24.0}),
        ("2026-01-02", {"cpu": 2.0, "mem": 1.0}),
    ]
    nothing = await show_usage(
        office.platform, ROOT, "default", UsageQuery(domain="beryl")
    )
    assert nothing.days == []


@pytest.mark.parametrize("days", [0, -1, 401])
async def test_only_so_many_days_are_shown(office: Office, days: int):
    with pytest.raises(InvalidRequestError, match="between 1 and 400"):
        await show_usage(office.platform, ROOT, "default", UsageQuery(days=days))


# --- what is set ---------------------------------------------------------------------


async def test_weights_and_guarantees_are_set_at_every_level(office: Office):
    await put(
        office.platform,
        {"domain": "amber", "weight": 2, "guaranteed": {"cpu": "4", "mem": "8g"}},
        {"domain": "amber", "project": "one", "weight": 0.5},
        {"domain": "amber", "project": "one", "user": "ann", "weight": 3},
    )

    amber = of(await show(office.platform), "amber")
    assert (amber.weight, amber.weight_is_default) == (2, False)
    assert amber.guaranteed == {"cpu": "4", "mem": "8g"}
    assert of(await show(office.platform, domain="amber"), "one").weight == 0.5
    users = await show(office.platform, domain="amber", project="one")
    assert of(users, "ann").weight == 3


async def test_what_is_left_out_of_a_change_stays_and_null_takes_away(office: Office):
    await put(
        office.platform, {"domain": "amber", "weight": 2, "guaranteed": {"cpu": "4"}}
    )
    await put(office.platform, {"domain": "amber", "weight": None})
    entry = of(await show(office.platform), "amber")
    assert (entry.weight_is_default, entry.guaranteed) == (True, {"cpu": "4"})

    await put(office.platform, {"domain": "amber", "guaranteed": None})

    async with office.platform.database.read() as connection:
        group = (await office.read("resource-group", "default")).id
        assert await shares.list_shares(connection, group) == {}


async def test_a_change_is_all_or_nothing(office: Office):
    with pytest.raises(InvalidRequestError, match=r"changes\[1\]: there is no project"):
        await put(
            office.platform,
            {"domain": "amber", "weight": 2},
            {"domain": "amber", "project": "three", "weight": 2},
        )

    assert of(await show(office.platform), "amber").weight_is_default


@pytest.mark.parametrize("weight", [0, -1, 0.0001, 1e7, float("inf"), float("nan")])
async def test_weights_that_make_no_sense_are_refused(office: Office, weight: float):
    with pytest.raises(InvalidRequestError, match=r"changes\[0\]\.weight: .* from 0"):
        await put(office.platform, {"domain": "amber", "weight": weight})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", '"2"', "[]"])
def test_no_request_holds_a_weight_that_is_no_number(number: str):
    raw = f'{{"changes": [{{"domain": "amber", "weight": {number}}}]}}'.encode()
    try:
        body = msgspec.json.decode(raw, type=SharesRequest)
    except msgspec.DecodeError:
        return
    assert body.changes[0].weight == float("inf")  # which is refused, as above


async def test_a_change_says_whose_it_is(office: Office):
    with pytest.raises(InvalidRequestError, match=r"changes\[0\]\.domain: say which"):
        await put(office.platform, {"domain": "", "weight": 2})


async def test_guarantees_that_make_no_sense_are_refused(office: Office):
    with pytest.raises(InvalidRequestError, match=r"changes\[0\]\.guaranteed: cpu"):
        await put(office.platform, {"domain": "amber", "guaranteed": {"cpu": "-1"}})


async def test_users_and_projects_are_named_with_what_they_are_in(office: Office):
    for change in (
        {"domain": "", "project": "one"},
        {"domain": "amber", "user": "ann"},
    ):
        with pytest.raises(InvalidRequestError, match="name the domain of a project"):
            await put(office.platform, {**change, "weight": 2})
    with pytest.raises(MalformedRequestError):
        await show(office.platform, project="one")


async def test_a_user_of_another_domain_is_not_there(office: Office):
    with pytest.raises(InvalidRequestError, match="no user 'bea' in amber"):
        await put(
            office.platform,
            {"domain": "amber", "project": "one", "user": "bea", "weight": 2},
        )


async def test_changes_are_in_the_audit(office: Office):
    await put(office.platform, {"domain": "amber", "weight": 2})
    await put(office.platform, {"domain": "amber", "weight": 2})

    async with office.platform.database.read() as connection:
        rows = (
            (
                await connection.execute(
                    text("SELECT * FROM audit WHERE action = 'shares:update'")
                )
            )
            .mappings()
            .all()
        )
    assert [row["object_name"] for row in rows] == ["amber"]


# --- who may -------------------------------------------------------------------------


async def test_a_domain_admin_sees_and_sets_what_is_in_their_domain(office: Office):
    ada = await admin_of(office, "amber")

    assert [e.name for e in (await show(office.platform, ada)).entries] == ["amber"]
    await put(
        office.platform,
        {"domain": "amber", "project": "one", "weight": 5},
        {"domain": "amber", "project": "two", "user": "abe", "weight": 5},
        who=ada,
    )
    projects = await show(office.platform, ada, domain="amber")
    assert of(projects, "one").weight == 5


async def test_what_a_domain_weighs_is_a_matter_of_superadmins(office: Office):
    ada = await admin_of(office, "amber")

    with pytest.raises(ForbiddenError, match="superadmins decide"):
        await put(office.platform, {"domain": "amber", "weight": 9}, who=ada)


async def test_other_domains_are_not_there_for_a_domain_admin(office: Office):
    ada = await admin_of(office, "amber")

    with pytest.raises(NotFoundError):
        await show(office.platform, ada, domain="beryl")
    with pytest.raises(NotFoundError):
        await show_usage(office.platform, ada, "default", UsageQuery(domain="beryl"))
    with pytest.raises(HubError, match="no domain 'beryl'"):
        await put(
            office.platform,
            {"domain": "beryl", "project": "three", "weight": 9},
            who=ada,
        )


async def test_a_domain_admin_sees_the_use_of_their_domain_only(office: Office):
    await start(office.platform, "bea", **CPU)
    office.platform.database.clock.pass_(3600)  # type: ignore[attr-defined]
    await count_all(office.platform)
    ada, bob = await admin_of(office, "amber"), await admin_of(office, "beryl")

    def ask(who: Principal) -> Any:
        return show_usage(office.platform, who, "default", UsageQuery())

    assert (await ask(ada)).days == []
    assert (await ask(bob)).days[0].hours["cpu"] == 2


# --- what the scheduler gets ---------------------------------------------------------


async def test_the_scheduler_reckons_with_what_is_shown(office: Office):
    await start(office.platform, "ann", **CPU)
    await put(
        office.platform,
        {"domain": "beryl", "weight": 4},
        {"domain": "amber", "project": "one", "guaranteed": {"cpu": "3"}},
    )
    platform = office.platform
    group = (await office.read("resource-group", "default")).id
    async with platform.database.read() as connection:
        (rules,) = await shares.list_rules(connection, [group])
        state = await shares.load_share_state(connection, rules, {"cpu": 8000}, {})
        quotas = await shares.load_quotas(connection, group)

    assert sum(held["cpu"] for held in state.live.values()) == 2000
    assert list(state.weights.values()) == [4]
    assert [dict(q.guaranteed) for q in quotas.values()] == [{"cpu": 3000}]
    assert [len(path) for path in quotas] == [2]
    assert Bands([], FairShare(), state).next() is None
    assert find_capacity([], group) == {}


async def test_a_purged_tenant_leaves_no_weight_behind(office: Office):
    await put(office.platform, {"domain": "beryl", "project": "three", "weight": 4})
    await office.change("project", "beryl:three", is_active=False)

    await office.purge("project", "beryl:three")

    async with office.platform.database.read() as connection:
        group = (await office.read("resource-group", "default")).id
        assert await shares.list_shares(connection, group) == {}


async def serve(office: Office, *owners: str, cpu: str = "2") -> list[str]:
    """Ask one after the other for some of 8 processors; return who runs."""
    for number, owner in enumerate(owners):
        office.platform.database.clock.pass_(1)  # type: ignore[attr-defined]
        slots = {"cpu": cpu, "mem": "1g"}
        await submit(office.platform, owner, server=f"s{number}", slots=slots)
    await schedule(office.platform)
    async with office.platform.database.read() as connection:
        live = await list_records(connection, [SessionStatus.SCHEDULED])
    names = {r.owner_id: (await office.read("user", r.owner_id)).name for r in live}
    return sorted(names[record.owner_id] for record in live)


MANY = ("ann", "ann", "ann", "ann", "ann", "abe", "bea")


async def test_without_fair_share_who_asked_first_is_first(office: Office):
    assert await serve(office, *MANY) == ["ann", "ann", "ann", "ann"]


@pytest.mark.parametrize(
    ("scheduler", "running"),
    [
        ("lifo", ["abe", "ann", "ann", "bea"]),
        ("drf", ["abe", "ann", "ann", "bea"]),
        ("fair-share", ["abe", "ann", "ann", "bea"]),
    ],
)
async def test_the_groups_scheduler_says_who_is_first(
    office: Office, scheduler: str, running: list[str]
):
    await office.change("resource-group", "default", scheduler=scheduler)

    assert await serve(office, *MANY) == running


async def test_weights_decide_who_runs(office: Office):
    await office.change("resource-group", "default", scheduler="fair-share")
    await put(office.platform, {"domain": "beryl", "weight": 3})

    running = await serve(office, *["ann"] * 4, *["bea"] * 4)

    assert running == ["ann", "bea", "bea", "bea"]


async def test_a_simulation_knows_weights_of_a_group_that_has_another_order(
    office: Office,
):
    platform = office.platform
    await put(platform, {"domain": "beryl", "weight": 3})
    for number, owner in enumerate([*["ann"] * 4, *["bea"] * 4]):
        platform.database.clock.pass_(1)  # type: ignore[attr-defined]
        slots = {"cpu": "2", "mem": "1g"}
        await submit(platform, owner, server=f"s{number}", slots=slots)

    scenario = await load_scenario(platform, 3600)
    happened = simulate(Change(sequencer="fair-share").apply(scenario))

    at_once = [w.owner[2] for w in happened.waits if w.seconds == 0]
    names = sorted(scenario.names[owner] for owner in at_once)
    assert names == ["ann", "bea", "bea", "bea"]
    exported = await export_trace(platform)
    told = from_trace(read_trace(exported.trace)).weights
    assert told == {("beryl",): 3.0}


async def test_past_use_decides_who_runs(office: NodeOffice):
    await office.change("resource-group", "default", scheduler="fair-share")
    clock = office.platform.database.clock
    session = await start(office.platform, "ann", **CPU)
    clock.pass_(20 * DAY)  # type: ignore[attr-defined]
    owner = await principal_of(office.platform, "ann")
    await terminate_session(office.platform, owner, session.id)
    await office.node.report([])
    await count_all(office.platform)

    assert await serve(office, "ann", "bea", cpu="8") == ["bea"]


async def test_a_view_that_is_kept_knows_what_has_changed(office: Office):
    """Shares, weights and schedulers are those of the database at every reading."""
    platform = office.platform
    await office.change("resource-group", "default", scheduler="fair-share")
    view = QueueView(platform)
    await start(platform, "ann", **CPU)
    await submit(platform, "bea", slots={"cpu": "8"})

    async def same() -> GroupPolicy:
        await view.refresh()
        fresh = await load_snapshot(platform)
        assert view.snapshot().groups == fresh.groups
        (policy,) = fresh.groups.values()
        return policy

    assert len((await same()).shares.live) == 1
    await start(platform, "abe", **CPU)
    assert len((await same()).shares.live) == 2
    await put(platform, {"domain": "amber", "weight": 3})
    assert list((await same()).shares.weights.values()) == [3]
    platform.database.clock.pass_(DAY)  # type: ignore[attr-defined]
    await count_all(platform)
    assert len((await same()).shares.history) == 5  # a domain, its projects, users
    await office.change("resource-group", "default", scheduler="fifo")
    assert (await same()).shares is None
