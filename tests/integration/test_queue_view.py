"""What the scheduler remembers is what it would read; and it misses nobody's chance."""

from __future__ import annotations

import asyncio
import gc
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis.stateful import invariant, run_state_machine_as_test

from backendai_hub.core.errors import HubError
from backendai_hub.db.versions import Stale
from backendai_hub.operations import placement, queue_view
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Plan
from tests.factories import add_node, make_device, principal_of, start, submit
from tests.integration.test_ledger_machine import SETTINGS, LedgerMachine
from tests.tenants import Office


class ViewMachine(LedgerMachine):
    """Everything that happens to the ledger, watched by a view from the beginning."""

    async def begin(self) -> None:
        await super().begin()
        self.view = QueueView(self.platform)

    @invariant()
    def the_view_is_what_the_database_says(self) -> None:
        self.run(self.look())

    async def look(self) -> None:
        gained = await self.view.refresh()
        fresh = await load_snapshot(self.platform)
        assert self.view.snapshot() == fresh
        decided = plan(fresh)
        if not gained:
            assert decided.placements == (), "somebody could start, and nobody knew"
        news = self.view.take_news()
        if news.came and not news.gained and self.view.is_enough(news.came):
            few = plan(self.view.snapshot(news.came))
            assert started(few) == started(decided), "others gained as well"
        self.view.placed.update(p.session for p in decided.placements)
        await placement.apply_plan(self.platform, decided)


def started(decided: Plan) -> set[str]:
    return {placement.session for placement in decided.placements}


def test_whatever_happens_a_view_equals_one_that_was_just_made(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 0)
    machine = type("Machine", (ViewMachine,), {"url": migrated_url})
    run_state_machine_as_test(machine, settings=SETTINGS)


# Forgotten on purpose: an invariant that does not notice proves nothing.


def forget_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Stale.note

    def note(self: Any, table: Any, ids: Any) -> None:
        original(self, table, () if table == "ledger" else ids)

    monkeypatch.setattr(Stale, "note", note)


def forget_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Stale.note

    def note(self: Any, table: Any, ids: Any) -> None:
        if table != "sessions":
            original(self, table, ids)

    monkeypatch.setattr(Stale, "note", note)


def forget_nothing(_: pytest.MonkeyPatch) -> None:
    """As it is."""


def wait_for_somebodys_cards(machine: ViewMachine) -> None:
    look = machine.the_view_is_what_the_database_says

    def ask(user: str) -> Any:
        return machine.enqueue(user, cpu=1, gpus=2, key=0, system=False, at_once=False)

    first = ask("alice")
    look()
    ask("bob")
    look()
    machine.terminate(first, force=True)
    look()


FORGOTTEN = {
    "nothing": (forget_nothing, nullcontext()),
    "devices": (forget_devices, pytest.raises(AssertionError)),
    "sessions": (forget_sessions, pytest.raises(AssertionError)),
}


@pytest.mark.parametrize(("forget", "noticed"), FORGOTTEN.values(), ids=FORGOTTEN)
def test_what_is_forgotten_is_noticed(
    forget: Any, noticed: Any, monkeypatch: pytest.MonkeyPatch, migrated_url: str
):
    machine: ViewMachine = type("Machine", (ViewMachine,), {"url": migrated_url})()
    forget(monkeypatch)
    try:
        with noticed:
            wait_for_somebodys_cards(machine)
    finally:
        machine.teardown()


# --- what is a gain, and what is not --------------------------------------------


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


async def settle(view: QueueView, platform: Platform) -> None:
    """Let everybody start who can, as the scheduler does."""
    await view.refresh()
    decided = plan(view.snapshot())
    view.placed.update(p.session for p in decided.placements)
    await placement.apply_plan(platform, decided)


async def test_nothing_that_only_takes_room_is_a_reason_to_plan_again(
    platform: Platform,
):
    node = await add_node(platform, devices=[make_device(slots={"cpu": 2, "mem": 9})])
    view = QueueView(platform)
    await submit(platform, server="a", slots={"cpu": "0.002", "mem": "1"})
    await submit(platform, server="b", slots={"cpu": "0.002", "mem": "1"})
    await settle(view, platform)

    assert not await view.refresh()  # what it has placed itself
    await node.report()
    assert not await view.refresh()  # a node that says what it always says
    assert len(view.records) == 1


async def test_new_sessions_freed_room_and_raised_limits_are(
    platform: Platform, office: Office
):
    await add_node(platform, devices=[make_device(slots={"cpu": 4, "mem": 9})])
    view = QueueView(platform)
    first = await start(platform, server="a", slots={"cpu": "0.003", "mem": "1"})
    await submit(platform, server="b", slots={"cpu": "0.003", "mem": "1"})
    await settle(view, platform)
    assert not await view.refresh()

    await submit(platform, server="c", slots={"cpu": "0.003", "mem": "1"})
    assert await view.refresh()
    assert not await view.refresh()

    await office.change("domain", "default", total_resource_slots={"cpu": "9"})
    assert await view.refresh()
    assert not await view.refresh()

    alice = await principal_of(platform, "alice")
    await terminate_session(platform, alice, first.id, force=True)
    assert await view.refresh()
    assert not await view.refresh()


async def test_a_reading_that_fails_is_made_up_for(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await add_node(platform)
    view = QueueView(platform)
    await submit(platform)

    async def fail(*_: object, **__: object) -> None:
        raise HubError("the database is away")

    with monkeypatch.context() as broken:
        broken.setattr(queue_view, "load_nodes", fail)
        with pytest.raises(HubError):
            await view.refresh()
    assert await view.refresh()
    assert view.snapshot() == await load_snapshot(platform)


async def test_views_that_nobody_keeps_are_not_told_any_more(platform: Platform):
    followers = platform.database.versions._followers
    view = QueueView(platform)
    assert len(followers) == 1
    del view
    await asyncio.to_thread(gc.collect)
    assert len(followers) == 0
