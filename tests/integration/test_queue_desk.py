"""Queues are put in order for one at a time, and long ones not for everybody anew."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.access import Caller
from backendai_hub.operations import explain
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.queues import QueueDesk, QueueQuery, read_queue
from backendai_hub.operations.sessions import terminate_session
from tests.factories import add_node, principal_of, start, submit
from tests.tenants import ROOT

ASKED = {"cpu": "3", "mem": "1"}


async def read(platform: Platform, desk: QueueDesk) -> list[str]:
    page = await read_queue(platform, ROOT, "default", QueueQuery(), desk)
    return [entry.id for entry in page.items]


async def test_short_queues_are_as_they_are_now_and_long_ones_as_lately(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await add_node(platform)
    refreshes = 0
    refresh = QueueView.refresh

    async def count(self: Any) -> bool:
        nonlocal refreshes
        refreshes += 1
        return await refresh(self)

    monkeypatch.setattr(QueueView, "refresh", count)
    now = 0.0
    desk = QueueDesk(clock=lambda: now, used=lambda: now)
    first = (await submit(platform, "alice", slots=ASKED)).session.id
    assert await read(platform, desk) == [first]
    second = (await submit(platform, "bob", slots=ASKED)).session.id
    assert await read(platform, desk) == [first, second]

    async def take_long(self: Any) -> bool:
        nonlocal now
        now += 1.05
        return await count(self)

    monkeypatch.setattr(QueueView, "refresh", take_long)
    assert await read(platform, desk) == [first, second]
    third = (await submit(platform, "carol", slots=ASKED)).session.id
    before = refreshes
    for _ in range(20):
        assert await read(platform, desk) == [first, second], "a second ago"
    assert refreshes == before
    now += 10.1
    assert await read(platform, desk) == [first, second, third]


async def test_a_busy_machine_makes_nobody_see_older_queues(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    now = 0.0
    refresh = QueueView.refresh

    async def wait_for_the_processor(self: Any) -> bool:
        nonlocal now
        now += 5.0
        return await refresh(self)

    monkeypatch.setattr(QueueView, "refresh", wait_for_the_processor)
    await add_node(platform)
    desk = QueueDesk(clock=lambda: now, used=lambda: 0.0)
    first = (await submit(platform, "alice", slots=ASKED)).session.id
    assert await read(platform, desk) == [first]
    second = (await submit(platform, "bob", slots=ASKED)).session.id
    assert await read(platform, desk) == [first, second]


async def test_who_is_told_why_is_told_so_although_others_have_asked_meanwhile(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await add_node(platform)
    await start(platform, "alice", slots=ASKED)
    bob = await principal_of(platform, "bob", Caller.USER)
    desk = ExplanationDesk()
    mine = (await submit(platform, "bob", server="a", slots=ASKED)).session
    name_visible = explain._name_visible

    async def be_overtaken(*given: Any) -> str:
        monkeypatch.setattr(explain, "_name_visible", name_visible)
        await terminate_session(platform, bob, mine.id)
        other = (await submit(platform, "bob", server="b", slots=ASKED)).session
        await desk.explain(platform, bob, other.id)
        return await name_visible(*given)

    monkeypatch.setattr(explain, "_name_visible", be_overtaken)
    told = await desk.explain(platform, bob, mine.id)
    assert told.session == mine.id
    assert told.reasons == ["cpu: asks 3, 1 free on node-1"]
