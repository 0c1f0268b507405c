"""What administrators see of the nodes, page by page, and of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import event

from backendai_hub.api.nodes import AgentPage, AgentQuery
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.db import agents
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.node_lists import list_agents, read_agent
from backendai_hub.operations.platform import Platform
from tests.factories import ISOLATION, add_node, schedule, submit
from tests.tenants import ROOT, Office

ORDERS = ("name", "status", "resource_group", "architecture", "last_seen_at")


async def look(platform: Platform, **query: Any) -> AgentPage:
    return await list_agents(platform, AgentQuery(**query))


async def names(platform: Platform, **query: Any) -> list[str]:
    return [one.name for one in (await look(platform, **query)).items]


async def walk(platform: Platform, **query: Any) -> list[str]:
    """Read every page, and see that none but the last is short."""
    seen: list[str] = []
    after = None
    while True:
        page = await look(platform, after=after, limit=2, **query)
        seen += [one.name for one in page.items]
        after = page.next
        if after is None:
            return seen
        assert len(page.items) == 2


async def write(platform: Platform, node_id: str, **values: Any) -> None:
    """Have a node be as no report of a test can make it."""
    async with platform.database.transaction() as tx:
        record = await agents.get_agent(tx.connection, node_id)
        await agents.change_agent(tx, record, **values)


async def make_five(platform: Platform) -> None:
    """Make nodes that share what lists are ordered by, and one never seen."""
    office = Office(platform)
    for group in ("beta", "alpha"):
        await office.make("resource-group", name=group)
    for number in range(5):
        node = await add_node(platform, f"node-{number}")
        platform.database.clock.pass_(60)  # type: ignore[attr-defined]
        if number in {1, 3}:
            await write(platform, node.id, architecture="aarch64", status="LOST")
            await office.move_node(node.name, "beta" if number == 1 else "alpha")
        if number == 2:
            await write(platform, node.id, last_seen_at=None, resource_group_id=None)


@pytest.mark.parametrize("order", ORDERS)
async def test_pages_follow_each_other_in_every_order_and_direction(
    platform: Platform, order: str
):
    await make_five(platform)
    forth = await walk(platform, order=order)
    assert sorted(forth) == [f"node-{number}" for number in range(5)]
    assert await walk(platform, order=f"-{order}") == forth[::-1]


async def test_nodes_are_ordered_by_what_the_list_shows(platform: Platform):
    await make_five(platform)
    assert await walk(platform) == [f"node-{number}" for number in range(5)]
    groups = (await look(platform, order="resource_group")).items
    assert [one.resource_group for one in groups] == [
        *(None, "alpha", "beta", "default", "default"),
    ]
    # Who was never seen was seen before everybody else.
    seen = await walk(platform, order="last_seen_at")
    assert seen == ["node-2", "node-0", "node-1", "node-3", "node-4"]
    assert set((await walk(platform, order="status"))[3:]) == {"node-1", "node-3"}


async def test_lists_are_narrowed_by_everything_that_tells_nodes_apart(
    platform: Platform,
):
    await make_five(platform)
    podman = await add_node(platform, "Gpu_100%")
    podman.isolation = msgspec.structs.replace(ISOLATION, runtime="podman")
    await podman.report()
    await change_agent(platform, ROOT, "node-4", AgentChange(schedulable=False))

    assert await names(platform, search="gpu_") == ["Gpu_100%"]
    assert await names(platform, search="g\0pu", architecture="\0") == []
    assert await names(platform, search="%g") == []
    assert await names(platform, resource_group="ALPHA,beta") == ["node-1", "node-3"]
    assert await names(platform, resource_group="nothing") == []
    assert await names(platform, status="lost") == ["node-1", "node-3"]
    assert len(await names(platform, status="LOST,ALIVE")) == 6
    assert await names(platform, architecture="aarch64") == ["node-1", "node-3"]
    assert await names(platform, runtime="podman") == ["Gpu_100%"]
    assert await names(platform, schedulable=False) == ["node-4"]
    assert "node-4" not in await names(platform, schedulable=True)
    assert await walk(platform, status="ALIVE", schedulable=True, search="node") == [
        *("node-0", "node-2"),
    ]


async def test_a_node_shows_how_many_sessions_have_containers_on_it(
    platform: Platform,
):
    await add_node(platform, "n1")
    await submit(platform, "ada")
    assert (await read_agent(platform, "n1")).sessions == 0
    await schedule(platform)
    (shown,) = (await look(platform)).items
    assert shown.sessions == 1
    assert (
        shown
        == await read_agent(platform, "N1")
        == await read_agent(platform, shown.id)
    )


async def test_many_nodes_are_asked_about_as_often_as_one(platform: Platform):
    await add_node(platform, "node-0")
    one = await count(platform)
    for number in range(1, 4):
        await add_node(platform, f"node-{number}")
    assert await count(platform) == one


async def count(platform: Platform) -> int:
    asked: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        asked.append(statement)

    engine = platform.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        await look(platform)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return len([one for one in asked if "SELECT" in one])


async def test_a_node_that_is_not_there_is_not_found(platform: Platform):
    with pytest.raises(NotFoundError, match="there is no node 'nothing'"):
        await read_agent(platform, "nothing")


async def cursor_of(platform: Platform, order: str) -> str:
    for name in ("a", "b"):
        await add_node(platform, name)
    return (await look(platform, order=order, limit=1)).next or ""


async def test_a_cursor_of_another_order_is_refused(platform: Platform):
    cursor = await cursor_of(platform, "name")
    with pytest.raises(MalformedRequestError, match="in this order"):
        await look(platform, order="architecture", after=cursor)


UNREADABLE: Sequence[tuple[dict[str, Any], type[Exception]]] = [
    ({"limit": 0}, InvalidRequestError),
    ({"limit": 201}, InvalidRequestError),
    ({"order": "version"}, InvalidRequestError),
    ({"order": "--name"}, InvalidRequestError),
    ({"status": "ALIVE,fine"}, InvalidRequestError),
    ({"after": "?"}, MalformedRequestError),
    ({"after": "WyJuYW1lIiwiYVx1MDAwMCIsImIiXQ"}, MalformedRequestError),
    (
        {"order": "last_seen_at", "after": "WyJsYXN0X3NlZW5fYXQiLCJub3ciLCJiIl0"},
        MalformedRequestError,
    ),
]


@pytest.mark.parametrize(("query", "refused"), UNREADABLE)
async def test_what_nobody_can_ask_is_refused(
    platform: Platform, query: dict[str, Any], refused: type[Exception]
):
    with pytest.raises(refused):
        await look(platform, **query)
