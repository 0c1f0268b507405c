"""What the scheduler has tried for a session, and how that is told."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, pool, text

from backendai_hub.core.access import Caller
from backendai_hub.core.attempts import Attempt, Result, shape_of
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.db import sessions
from backendai_hub.db.attempts import Tried, note_attempts
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import (
    HistoryQuery,
    list_history,
    terminate_session,
)
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from tests.admin import make_administrator
from tests.commandline import column, with_keypair
from tests.factories import add_node, make_device, principal_of, submit
from tests.harness import running_stack


class Eager(SchedulerReconciler):
    """Tries everybody in each pass: on its clock an hour goes by before it."""

    resync_seconds = 0.0

    def __init__(self, platform: Platform) -> None:
        self.now = 0.0
        super().__init__(platform, Signals(), clock=lambda: self.now)

    async def reconcile(self) -> int:
        self.now += 3600.0
        return await super().reconcile()


async def history_of(platform: Platform, session_id: str) -> list[Attempt]:
    owner = await principal_of(platform, "alice", Caller.USER)
    page = await list_history(platform, owner, session_id, HistoryQuery())
    return page.items


async def test_like_attempts_are_one_and_others_follow(platform: Platform):
    await add_node(platform, devices=[make_device(slots={"cpu": 4, "mem": 9})])
    scheduler = Eager(platform)
    first = await submit(platform, server="a", slots={"cpu": "0.003", "mem": "1"})
    second = await submit(platform, server="b", slots={"cpu": "0.003", "mem": "1"})

    assert await scheduler.reconcile() == 1
    [placed] = await history_of(platform, first.session.id)
    assert (placed.result, placed.attempts) == (Result.PLACED, 1)
    assert "node-1" in placed.message
    [waits] = await history_of(platform, second.session.id)
    assert (waits.result, waits.attempts) == (Result.WAITING, 1)
    assert "cpu" in waits.message

    await submit(platform, server="c", slots={"cpu": "0.001", "mem": "1"})
    for _ in range(3):
        await scheduler.reconcile()
    [waits] = await history_of(platform, second.session.id)
    assert waits.attempts == 4, "a reason with other numbers is the same reason"

    alice = await principal_of(platform, "alice")
    await terminate_session(platform, alice, first.session.id, force=True)
    assert await scheduler.reconcile() == 1
    waited, placed = await history_of(platform, second.session.id)
    assert (waited.result, placed.result) == (Result.WAITING, Result.PLACED)
    assert waited.attempts >= 4


async def test_attempts_that_are_not_written_down_yet_are_when_it_starts(
    platform: Platform,
):
    node = await add_node(platform, devices=[make_device(slots={"cpu": 4, "mem": 9})])
    scheduler = SchedulerReconciler(platform, Signals())
    await submit(platform, server="a", slots={"cpu": "0.003", "mem": "1"})
    made = await submit(platform, server="b", slots={"cpu": "0.003", "mem": "1"})
    await scheduler.reconcile()
    # Each time somebody else comes, everybody is tried again.
    for number in range(3):
        await submit(platform, server=f"n{number}", slots={"cpu": "0.004", "mem": "1"})
        await scheduler.reconcile()
    node.devices = [make_device(slots={"cpu": 6, "mem": 9})]
    await node.report()
    assert await scheduler.reconcile() == 1

    waited, placed = await history_of(platform, made.session.id)
    assert (waited.result, waited.attempts) == (Result.WAITING, 4)
    assert placed.result is Result.PLACED


async def tell(platform: Platform, session_id: str, *tried: tuple[Result, str]) -> None:
    for result, message in tried:
        async with platform.database.transaction() as tx:
            await sessions.get_record(tx.connection, session_id, lock=True)
            await note_attempts(tx, [Tried(session_id, result, message)])


async def test_a_history_comes_in_pages(platform: Platform):
    made = (await submit(platform)).session
    words = ["no node", "no room", "no node", "no room", "no node"]
    await tell(platform, made.id, *((Result.WAITING, word) for word in words))
    alice = await principal_of(platform, "alice")

    told: list[str] = []
    after: int | None = 0
    while after is not None:
        query = HistoryQuery(after=after, limit=2)
        page = await list_history(platform, alice, made.id, query)
        assert len(page.items) <= 2
        told += [attempt.message for attempt in page.items]
        after = page.next
    assert told == words

    for limit in (0, 201):
        with pytest.raises(InvalidRequestError, match="limit"):
            await list_history(platform, alice, made.id, HistoryQuery(limit=limit))
    for number in (-1, 1 << 63):
        with pytest.raises(MalformedRequestError, match="after"):
            await list_history(platform, alice, made.id, HistoryQuery(after=number))


async def test_it_is_told_to_whom_the_session_is_told(platform: Platform):
    made = (await submit(platform)).session
    bob = await principal_of(platform, "bob", Caller.USER)
    with pytest.raises(NotFoundError):
        await list_history(platform, bob, made.id, HistoryQuery())
    with pytest.raises(NotFoundError):
        await list_history(platform, bob, "no-id", HistoryQuery())


def test_numbers_make_no_other_reason():
    one = "cpu: asks 3, 1.5 free on n1, the best of 12 nodes"
    assert shape_of(one) == shape_of("cpu: asks 3, 2 free on n7, the best of 9 nodes")
    assert shape_of(one) != shape_of(
        "mem: asks 3, 1.5 free on n1, the best of 12 nodes"
    )


async def test_a_terminal_shows_it(tmp_path):
    async with running_stack(tmp_path / "data") as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        async with stack.client("root") as spawner:
            made = await spawner.launch("train", slots={"cpu": "0.5"})
            await spawner.reach(made["id"], "RUNNING")
        shown = await root.well("session", "history", made["id"])
        assert column(shown, 0)[-1] == "placement"
        assert column(shown, 1)[-1] == "placed"


# --- sites in use ----------------------------------------------------------------


async def test_what_was_placed_before_the_upgrade_has_a_history(
    platform: Platform, db_url: str
):
    await add_node(platform)
    made = (await submit(platform)).session
    waiting = (await submit(platform, server="two", slots={"cpu": 4})).session
    await SchedulerReconciler(platform, Signals()).reconcile()

    def go_down_and_up() -> list[tuple[str, str, int]]:
        downgrade(db_url, "0002")
        upgrade(db_url)
        engine = create_engine(sync_url(db_url), poolclass=pool.NullPool)
        with engine.connect() as opened:
            found = opened.execute(
                text("SELECT session_id, result, attempts FROM scheduling_history")
            )
            return [tuple(row) for row in found]

    assert waiting.id != made.id
    assert await asyncio.to_thread(go_down_and_up) == [(made.id, "placed", 1)]
