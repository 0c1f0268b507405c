"""Reading: pages that miss nothing, times in one zone, and servers that hang up."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text, update

from backendai_hub.core.errors import InvalidRequestError, MalformedRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import Session
from backendai_hub.db.engine import Database, OvertakenError
from backendai_hub.db.tables import SessionRow
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import ListQuery, list_sessions
from tests.factories import (
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    submit,
)

on_postgresql = pytest.mark.parametrize(
    "db_url",
    [pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)


async def ask(platform: Platform, server: str, **changes: Any) -> str:
    return (await submit(platform, "alice", server=server, **changes)).session.id


async def rewrite(platform: Platform, session_id: str, **values: Any) -> None:
    """Give a session what its request would not let it have."""
    async with platform.database.transaction() as tx:
        await tx.execute(
            update(SessionRow).where(SessionRow.id == session_id).values(**values)
        )


async def read_all(platform: Platform, name: str, order: str) -> list[Session]:
    """Read every page, two sessions at a time."""
    principal = await principal_of(platform, name)
    found: list[Session] = []
    after: str | None = None
    while True:
        query = ListQuery(limit=2, after=after, order=order)
        page = await list_sessions(platform, principal, query)
        found += page.items
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("order", ["created_at", "-created_at"])
async def test_pages_show_every_session_once_even_those_of_one_moment(
    platform: Platform, order: str
):
    made = [await ask(platform, f"s{n}") for n in range(5)]  # while the clock stands
    await submit(platform, "bob")

    found = [s.id for s in await read_all(platform, "alice", order)]

    assert found == sorted(made, reverse=order.startswith("-"))


@pytest.mark.parametrize("order", ["name", "-name", "priority", "-status", "owner"])
async def test_pages_in_any_order_show_every_session_once(
    platform: Platform, order: str
):
    for number, name in enumerate(["b", "a", "a|b", "c", "é"]):
        made = await ask(platform, f"s{number}")
        await rewrite(platform, made, name=name, priority=[10, 0][number % 2])

    found = await read_all(platform, "alice", order)

    keys = [getattr(s, order.removeprefix("-")) for s in found]
    assert sorted(s.name for s in found) == ["a", "a|b", "b", "c", "é"]
    if order not in {"name", "-name"}:  # letters sort as the database sorts them
        assert keys == sorted(keys, reverse=order.startswith("-"))


async def test_a_list_is_narrowed_by_whatever_is_asked_for(platform: Platform):
    train = await ask(platform, "s1")
    await rewrite(platform, train, name="Train_1", tag="vision")
    await rewrite(platform, await ask(platform, "s2"), name="trainX1")
    principal = await principal_of(platform, "alice")

    async def names(**query: str) -> list[str]:
        page = await list_sessions(platform, principal, ListQuery(**query))
        return sorted(s.name for s in page.items)

    assert await names(search="TRAIN") == ["Train_1", "trainX1"]
    assert await names(search="train_") == ["Train_1"]
    assert await names(search="vis") == ["Train_1"]
    assert await names(search=train) == ["Train_1"]
    assert await names(search="100%") == []
    assert await names(type="interactive", project="default") == ["Train_1", "trainX1"]
    assert await names(type="batch") == []
    assert await names(project="other") == []
    assert await names(resource_group="nowhere") == []
    assert await names(agent="nowhere", search="\0") == []
    with pytest.raises(InvalidRequestError, match="type: there is no 'odd'"):
        await names(type="odd")
    with pytest.raises(InvalidRequestError, match="order: 'image' is none of"):
        await names(order="image")


@pytest.mark.parametrize("order", ["created_at", "name", "priority"])
async def test_what_is_no_cursor_of_a_list_is_refused(platform: Platform, order: str):
    principal = await principal_of(platform, "alice")
    wrong = [b"", b"no", b"x|y", f"{1 << 63}|{'0' * 32}".encode(), b"\xff|a"]

    for content in wrong:
        after = base64.urlsafe_b64encode(content).decode()
        with pytest.raises(MalformedRequestError, match="not a cursor"):
            await list_sessions(
                platform, principal, ListQuery(order=order, after=after)
            )


def test_time_is_told_no_finer_than_a_cursor_can_say(tmp_path: Path):
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/none.sqlite")

    told = [database.clock() for _ in range(5)]

    assert {moment.microsecond % 1000 for moment in told} == {0}


async def test_a_page_names_the_devices_that_are_held_and_no_others(
    platform: Platform,
):
    await add_node(platform, devices=[make_device(), make_gpu("b"), make_gpu("a")])
    both = await ask(platform, "both", slots={"cuda.device": "2"})
    none = await ask(platform, "none")
    assert await schedule(platform) == 2

    found = {s.id: s for s in await read_all(platform, "alice", "created_at")}

    assert found[both].devices == ["a", "b"]
    assert found[none].agent == found[both].agent == "node-1"
    assert found[none].devices == []


@on_postgresql
async def test_times_are_utc_whatever_zone_the_server_lives_in(db_url: str):
    first = Database(db_url)
    async with first.transaction() as tx:
        zone = f"ALTER DATABASE \"{first.url.database}\" SET timezone = 'Asia/Seoul'"
        await tx.execute(text(zone))
    await first.close()
    opened = Database(db_url)
    try:
        for reading in (opened.read, opened.glance):
            async with reading() as connection:
                assert (await connection.scalar(select(func.now()))).tzinfo is UTC
    finally:
        await opened.close()


@on_postgresql
async def test_connections_the_server_has_closed_are_replaced_unnoticed(
    database: Database, db_url: str
):
    async def use_all() -> None:
        async with database.glance() as one, database.read() as other:
            for connection in (one, other):
                await connection.execute(select(func.count()).select_from(SessionRow))

    await asyncio.gather(*(use_all() for _ in range(3)))  # several lie in the pools
    watching = Database(db_url)
    try:
        async with watching.glance() as connection:
            hang_up = (
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            ended = (await connection.execute(text(hang_up))).scalars().all()
        assert len(ended) >= 4
        assert all(ended)

        await asyncio.gather(*(use_all() for _ in range(3)))
        async with database.transaction() as tx:
            await tx.execute(select(func.count()).select_from(SessionRow))
    finally:
        await watching.close()


@on_postgresql
async def test_who_is_spared_finds_a_connection_when_all_others_are_taken(
    migrated_url: str,
):
    opened = Database(migrated_url, pool_size=1)
    try:
        async with opened.read() as taken:
            await taken.execute(select(1))
            with opened.spared():
                async with asyncio.timeout(60), opened.read() as connection:
                    assert await connection.scalar(select(1)) == 1
                async with asyncio.timeout(60), opened.transaction() as tx:
                    await tx.execute(select(1))

        # A successor fences off these writes like all others.
        opened.epoch = 7
        with opened.spared(), pytest.raises(OvertakenError):
            async with opened.transaction() as tx:
                tx.record(Event(kind=EventKind.SESSION_WAITING, text="late"))
        assert opened.overtaken.is_set()
    finally:
        await opened.close()
