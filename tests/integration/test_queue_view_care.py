"""A view of the queue survives a database that fails, and lets go of who is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from backendai_hub.operations import known_images, queue_view
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.sessions import terminate_session
from tests.factories import add_node, principal_of, start, submit
from tests.tenants import Office

READINGS = (
    "load_unmet",
    "load_images",
    "load_holds",
    "load_lifetimes",
    "add_use",
    "load_windows",
    "load_nodes",
)


@pytest.mark.parametrize("reading", READINGS)
async def test_what_was_being_read_when_the_database_failed_is_read_again(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, reading: str
):
    await add_node(platform)
    view = QueueView(platform)
    await submit(platform, "alice")
    await view.refresh()
    await submit(platform, "bob")

    async def fail(*_: Any) -> Any:
        raise OSError("the database is away")

    with monkeypatch.context() as patch:
        module = known_images if reading == "load_images" else queue_view
        patch.setattr(module, reading, fail)
        view._stale.images = view._stale.tenancy = view._stale.all_nodes = True
        with pytest.raises(OSError, match="away"):
            await view.refresh()
    assert await view.refresh(), "bob could start, and nobody has looked yet"
    assert view.snapshot() == await load_snapshot(platform)


async def test_a_view_keeps_nothing_of_who_has_left(platform: Platform):
    await add_node(platform)
    await Office(platform).limit_user("alice", max_session_lifetime=3600)
    alice = await principal_of(platform, "alice")
    view = QueueView(platform)
    for _ in range(2):
        session = (await submit(platform, "alice")).session
        await view.refresh()
        assert view._lifetimes == {session.id: 3600}
        await terminate_session(platform, alice, session.id)
        await view.refresh()
    assert [view._queue, view._holds, view._lifetimes, view._waits] == [{}] * 4


async def test_others_have_their_turn_while_a_long_queue_is_read(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await add_node(platform)
    await start(platform, "zoe", slots={"cpu": "3", "mem": "1"})
    for name in ("alice", "bob", "carol"):
        await submit(platform, name, slots={"cpu": "3", "mem": "1"})
    described: list[str] = []
    seen_half_way: set[int] = set()
    view = QueueView(platform)
    describe = view._describe

    def count(record: Any, returned: Any) -> Any:
        described.append(record.id)
        return describe(record, returned)

    async def look() -> None:
        while True:
            seen_half_way.add(len(described))
            await asyncio.sleep(0)

    monkeypatch.setattr(queue_view, "_AT_A_TIME", 1)
    monkeypatch.setattr(view, "_describe", count)
    looking = asyncio.create_task(look())
    await view.refresh()
    looking.cancel()
    assert seen_half_way >= {0, 1, 2}

    # Somebody becomes known, and everybody is looked at anew, but nobody has changed.
    described.clear()
    await principal_of(platform, "dave")
    assert not await view.refresh()
    assert described == []
    await Office(platform).change("user", "bob", status="inactive")
    assert await view.refresh()
    assert len(described) == 1
    assert view.snapshot() == await load_snapshot(platform)
