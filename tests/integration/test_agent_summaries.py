"""What everybody sees of the nodes that their sessions can run on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from backendai_hub.api.agent_summaries import AgentSummaryPage, AgentSummaryQuery
from backendai_hub.core.errors import (
    ForbiddenError,
    InvalidRequestError,
    MalformedRequestError,
)
from backendai_hub.operations.agent_summaries import list_summaries
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user
from tests.factories import add_node, schedule, submit
from tests.tenants import Office


async def look(platform: Platform, name: str = "ada", **query: Any) -> AgentSummaryPage:
    actor = await ensure_user(platform, name)
    return await list_summaries(platform, actor, AgentSummaryQuery(**query))


def names(page: AgentSummaryPage) -> list[str]:
    return [one.name for one in page.items]


async def test_people_see_the_nodes_of_groups_open_to_them_and_no_others(
    platform: Platform,
):
    office = Office(platform)
    await add_node(platform, "open-1")
    await add_node(platform, "far-1")
    await office.make("resource-group", name="far")
    await office.move_node("far-1", "far")

    assert names(await look(platform)) == ["open-1"]
    assert names(await look(platform, resource_group="far")) == []

    await office.open_group("far", "domain", "default")
    assert names(await look(platform)) == ["far-1", "open-1"]
    await office.change("resource-group", "far", is_public=False)
    assert names(await look(platform)) == ["open-1"]


async def test_it_says_how_full_a_node_is_and_not_who_fills_it(platform: Platform):
    await add_node(platform, "node-1")
    session = (await submit(platform, "grace")).session
    await schedule(platform)

    [one] = (await look(platform)).items
    assert one.used["cpu"] == session.slots["cpu"]
    assert set(one.used) <= set(one.capacity)
    text = msgspec.json.encode(one).decode()
    assert "grace" not in text
    assert set(msgspec.to_builtins(one)) == {
        "name",
        "status",
        "resource_group",
        "architecture",
        "schedulable",
        "capacity",
        "used",
    }


async def test_pages_follow_each_other_in_both_directions(platform: Platform):
    for number in range(5):
        await add_node(platform, f"node-{number}")
    for order in ("name", "-name"):
        seen, after = [], None
        while True:
            page = await look(platform, order=order, limit=2, after=after)
            seen += names(page)
            after = page.next
            if after is None:
                break
        assert seen == sorted(seen, reverse=order == "-name")
        assert len(seen) == 5


async def test_lists_are_narrowed_by_name_state_and_architecture(platform: Platform):
    await add_node(platform, "gpu_100%")
    await add_node(platform, "cpu-1")

    assert names(await look(platform, search="GPU_")) == ["gpu_100%"]
    assert names(await look(platform, search="0%")) == ["gpu_100%"]
    assert names(await look(platform, search="%u-")) == []
    assert len(names(await look(platform, status="alive"))) == 2
    assert names(await look(platform, status="lost")) == []
    assert names(await look(platform, architecture="s390x")) == []


async def test_nobody_is_shown_what_the_operator_hides(platform: Platform):
    await add_node(platform, "node-1")
    hiding = replace(platform.settings, hide_agents=True)
    with pytest.raises(ForbiddenError, match="does not show its nodes"):
        await look(replace(platform, settings=hiding))


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ({"limit": 0}, InvalidRequestError),
        ({"limit": 201}, InvalidRequestError),
        ({"order": "size"}, InvalidRequestError),
        ({"status": "fine"}, InvalidRequestError),
        ({"after": "?"}, MalformedRequestError),
        ({"after": "WyJhXHUwMDAwIiwiYiJd"}, MalformedRequestError),
    ],
)
async def test_what_nobody_can_ask_is_refused(platform: Platform, query, refused):
    with pytest.raises(refused):
        await look(platform, **query)
