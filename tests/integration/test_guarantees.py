"""Guarantees and maxima of scopes in a group, from the table to who leaves for whom."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from backendai_hub.api.shares import ShareChange, SharesRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, upgrade
from backendai_hub.db.nouns import find_item
from backendai_hub.db.shares import ShareRecord, put_share
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.fair_share import (
    SharesQuery,
    change_shares,
    show_shares,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from tests.factories import Node, add_node, make_device, make_gpu, principal_of
from tests.jobs import ask
from tests.preemptions import GPU, look, occupy, opt_in, plans, vanish
from tests.tenants import ROOT, Office, breaches, read

S = SessionStatus


class Site(Office):
    """Two domains with somebody in each, and a node with two GPUs."""

    node: Node

    async def set(self, *changes: dict[str, Any]) -> Any:
        body = SharesRequest(changes=[ShareChange(**change) for change in changes])
        return await change_shares(self.platform, ROOT, "default", body)


@pytest.fixture
async def site(platform: Platform) -> Site:
    made = Site(platform)
    made.node = await add_node(
        platform, devices=[make_device(), make_gpu("gpu-0"), make_gpu("gpu-1")]
    )
    for domain, user in (("amber", "ann"), ("beryl", "bea")):
        await made.make_domain(domain)
        await made.make("project", name="one", domain=domain)
        await made.make("user", name=user, domain=domain)
        await made.join(f"{domain}:one", user)
        await made.change("user", user, project=f"{domain}:one")
    return made


async def status_of(platform: Platform, session: Any) -> SessionStatus:
    return (await read(platform, session)).status


async def show(platform: Platform, name: str) -> Any:
    table = await show_shares(platform, ROOT, "default", SharesQuery())
    return next(entry for entry in table.entries if entry.name == name)


# --- what is set ---------------------------------------------------------------------


async def test_a_maximum_is_set_shown_and_taken_away(site: Site):
    (told,) = await site.set(
        {"domain": "amber", "maximum": {"cuda.device": 0, "mem": "2g"}}
    )
    assert told.maximum == {"cuda.device": "0", "mem": "2g"}
    assert (await show(site.platform, "amber")).maximum == told.maximum

    (told,) = await site.set({"domain": "amber", "maximum": None})
    assert told.maximum == {}
    assert (await show(site.platform, "amber")).maximum == {}


async def test_no_more_is_guaranteed_than_the_maximum(site: Site):
    with pytest.raises(
        InvalidRequestError, match="2 would be guaranteed and at most 1"
    ):
        await site.set(
            {
                "domain": "amber",
                "guaranteed": {"cuda.device": 2},
                "maximum": {"cuda.device": 1},
            }
        )
    assert (await show(site.platform, "amber")).guaranteed == {}


async def test_the_parts_of_a_scope_are_guaranteed_no_more_than_it_is(site: Site):
    await site.make("project", name="two", domain="amber")
    four = {"domain": "amber", "guaranteed": {"cuda.device": 4, "cpu": 1}}
    one = {"domain": "amber", "project": "one", "guaranteed": {"cuda.device": 3}}
    two = {"domain": "amber", "project": "two", "guaranteed": {"cuda.device": 2}}
    # Nothing is guaranteed to the domain yet, so they are it against each other.
    await site.set(one, two)
    told = (
        r"^domain amber: its projects would be guaranteed 5 cuda.device in all"
        r" \(one 3, two 2\), and it is guaranteed 4; guarantee them less, or it more$"
    )
    with pytest.raises(InvalidRequestError, match=told):
        await site.set(four)
    await site.set(four, {**two, "guaranteed": {"cuda.device": 1, "mem": "9g"}})
    with pytest.raises(InvalidRequestError, match=told):
        await site.set(two)
    assert (await show(site.platform, "amber")).guaranteed["cuda.device"] == "4"
    # A maximum bounds what is below it, however far.
    ann = {"domain": "amber", "project": "one", "user": "ann"}
    await site.set({"domain": "amber", "maximum": {"cuda.device": 4, "cpu": 3}})
    with pytest.raises(
        InvalidRequestError,
        match=r"^project one: its users would be guaranteed 4 cpu in all \(ann 4\), and"
        " it may have at most 3; guarantee them less, or raise the maximum$",
    ):
        await site.set({**ann, "guaranteed": {"cpu": 4}})
    await site.set({**ann, "guaranteed": {"cpu": 3, "cuda.device": 3}})


async def test_what_was_too_much_already_may_become_less_or_stay(site: Site):
    scope = ("amber", "one")
    async with site.platform.database.transaction() as tx:
        domain = await find_item(tx.connection, noun_of("domain"), scope[0])
        project = await find_item(
            tx.connection, noun_of("project"), f"{scope[0]}:{scope[1]}"
        )
        assert domain is not None
        assert project is not None
        group = await find_item(tx.connection, noun_of("resource-group"), "default")
        assert group is not None
        for ids, amount in (((domain["id"],), 1), ((domain["id"], project["id"]), 4)):
            record = ShareRecord(guaranteed={"cuda.device": amount * 1000})
            where = (*ids, "", "")[:3]
            await put_share(tx, group["id"], where, record)  # type: ignore[arg-type]
    project_of = {"domain": "amber", "project": "one"}
    with pytest.raises(InvalidRequestError, match=r"5 cuda\.device in all"):
        await site.set({**project_of, "guaranteed": {"cuda.device": 5}})
    await site.set({**project_of, "weight": 2})
    await site.set({**project_of, "guaranteed": {"cuda.device": 3}})


async def test_more_than_the_nodes_have_is_told_since_nodes_come_and_go(site: Site):
    (told,) = await site.set({"domain": "amber", "guaranteed": {"cuda.device": 2}})
    assert told.warnings == []
    first, second = await site.set(
        {"domain": "amber", "weight": 2},
        {"domain": "beryl", "guaranteed": {"cuda.device": 1, "cpu": 1}},
    )
    warning = (
        "domains are guaranteed 3 cuda.device in all, and the nodes of the group have 2"
        " now: not all of it can be kept at once"
    )
    assert first.warnings == second.warnings == [warning]
    table = await show_shares(site.platform, ROOT, "default", SharesQuery())
    assert table.warnings == [warning]
    await add_node(site.platform, "node-2", devices=[make_gpu("gpu-7")])
    table = await show_shares(site.platform, ROOT, "default", SharesQuery())
    assert table.warnings == []
    (told,) = await site.set(
        {"domain": "amber", "project": "one", "guaranteed": {"cpu": 9}}
    )
    assert told.warnings[0].startswith("projects of amber are guaranteed 9 cpu in all")
    (told,) = await site.set(
        {"domain": "beryl", "project": "one", "guaranteed": {"cpu": 1}}
    )
    assert told.warnings == []


# --- maxima --------------------------------------------------------------------------


async def test_who_would_pass_a_maximum_waits_with_numbers_until_it_is_raised(
    site: Site,
):
    platform = site.platform
    await site.set({"domain": "amber", "maximum": {"cuda.device": 1}})
    first = await occupy(platform, site.node, "ann")
    more = await ask(platform, "ann", slots=GPU)
    other = await ask(platform, "bea", slots=GPU)
    await look(platform)

    waits = await read(platform, more)
    assert waits.status is S.PENDING
    assert waits.reason.endswith(
        "amber: cuda.device 1 of at most 1 in use in this group, asks 1"
    )
    assert await status_of(platform, other) is S.SCHEDULED
    why = await ExplanationDesk().explain(
        platform, await principal_of(platform, "ann", Caller.USER), more.id
    )
    assert why.reasons[0] == waits.reason

    await vanish(platform, site.node, first)
    await look(platform)
    assert await status_of(platform, more) is S.SCHEDULED
    assert await breaches(platform) == []


async def test_a_maximum_counts_for_all_that_is_placed_in_one_pass(site: Site):
    platform = site.platform
    await site.set({"domain": "amber", "project": "one", "maximum": {"cuda.device": 1}})
    asked = [await ask(platform, "ann", slots=GPU) for _ in range(2)]

    assert await look(platform) == 1

    assert [await status_of(platform, one) for one in asked] == [
        S.SCHEDULED,
        S.PENDING,
    ]


async def test_who_waits_may_gain_when_a_maximum_is_raised(site: Site):
    platform = site.platform
    await site.set({"domain": "amber", "maximum": {"cuda.device": 0}})
    await ask(platform, "ann", slots=GPU)
    view = QueueView(platform)
    await view.refresh()
    assert not await view.refresh()

    await site.set({"domain": "amber", "maximum": {"cuda.device": 1}})

    assert await view.refresh()
    assert view.snapshot() == await load_snapshot(platform)


# --- guarantees ----------------------------------------------------------------------


async def test_who_borrows_leaves_for_who_is_due_though_nobody_has_opted_in(
    site: Site,
):
    platform, node = site.platform, site.node
    await site.set({"domain": "amber", "guaranteed": {"cuda.device": 1}})
    older = await occupy(platform, node, "bea")
    platform.database.clock.pass_(60)  # type: ignore[attr-defined]
    newer = await occupy(platform, node, "bea")
    due = await ask(platform, "ann", slots=GPU)
    await look(platform)

    assert await status_of(platform, due) is S.RESERVED
    assert await status_of(platform, older) is S.RUNNING
    assert await status_of(platform, newer) is S.PREEMPTED
    (found,) = await plans(platform)
    assert found.kind == "reclaim"

    await vanish(platform, node, newer)
    again = await ask(platform, "bea", slots=GPU, priority=100)
    await look(platform)
    assert await status_of(platform, due) is S.SCHEDULED
    assert await status_of(platform, again) is S.PENDING
    # Nothing more is due, and who is within a guarantee stays.
    await ask(platform, "ann", slots=GPU)
    await look(platform)
    assert len(await plans(platform)) == 1
    assert await breaches(platform) == []


async def test_who_had_to_go_waits_and_does_not_get_it_back(site: Site):
    platform, node = site.platform, site.node
    await opt_in(platform, mode="reschedule")
    await site.set({"domain": "amber", "guaranteed": {"cuda.device": 2}})
    borrowed = [
        await occupy(platform, node, "bea", job_priority=priority)
        for priority in (9, 0)
    ]
    due = await ask(platform, "ann", slots={"cuda.device": "2"})
    await look(platform)
    assert await status_of(platform, due) is S.RESERVED
    for one in borrowed:
        await vanish(platform, node, one)
    for _ in range(3):
        await look(platform)
    assert await status_of(platform, due) is S.SCHEDULED
    assert {await status_of(platform, one) for one in borrowed} == {S.PENDING}
    assert len(await plans(platform)) == 1
    assert await breaches(platform) == []


async def test_who_may_not_be_displaced_does_not_borrow(site: Site):
    platform = site.platform
    await site.set({"domain": "amber", "guaranteed": {"cuda.device": 1}})
    asked = [
        await ask(platform, "bea", slots=GPU, is_preemptible=False) for _ in range(2)
    ]

    assert await look(platform) == 1

    assert (await read(platform, asked[1])).reason == (
        "cuda.device: asks 1; of 1 free, 1 is guaranteed to others, and who may not be"
        " displaced does not borrow it"
    )


# --- the older schema ----------------------------------------------------------------


async def test_guarantees_stay_and_maxima_go_with_the_schema_without_them(
    site: Site, database: Database, db_url: str
):
    platform = site.platform
    await site.set(
        {"domain": "amber", "guaranteed": {"cpu": 1}, "maximum": {"cpu": 2}},
        {"domain": "beryl", "maximum": {"cpu": 2}},
    )
    await database.close()

    await asyncio.to_thread(downgrade, db_url, "0006")
    await asyncio.to_thread(upgrade, db_url)

    amber, beryl = await show(platform, "amber"), await show(platform, "beryl")
    assert (amber.guaranteed, amber.maximum) == ({"cpu": "1"}, {})
    assert (beryl.guaranteed, beryl.maximum) == ({}, {})
