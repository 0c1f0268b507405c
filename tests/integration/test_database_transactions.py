"""The one way to write: what commits, what does not, and who hears of it when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import event, func, insert, select, text
from sqlalchemy.exc import IntegrityError, StatementError

from backendai_hub.core.events import Event, EventKind
from backendai_hub.db.engine import Database, Transaction
from backendai_hub.db.history import last_event, list_events
from backendai_hub.db.migrate import upgrade
from backendai_hub.db.tables import EventRow, VersionRow
from tests.factories import START, Clock

WRITERS = 50


def happened(what: str = "something") -> Event:
    return Event(kind=EventKind.SESSION_PROGRESS, text=what)


class Heard:
    """Who was woken, and what stood in the database by then."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def database(db_url: str, heard: Heard) -> AsyncIterator[Database]:
    await asyncio.to_thread(upgrade, db_url)
    opened = Database(db_url, wake=heard, clock=Clock())
    yield opened
    await opened.close()


async def count(database: Database) -> int:
    async with database.read() as connection:
        rows = await connection.scalar(select(func.count()).select_from(VersionRow))
        return int(rows or 0)


async def store(tx: Transaction, name: str) -> None:
    await tx.execute(insert(VersionRow).values(name=name, value=1))


# --- all or nothing ----------------------------------------------------------------


async def test_what_is_committed_is_there_with_its_facts(
    database: Database, heard: Heard
):
    async with database.transaction() as tx:
        await store(tx, "a")
        tx.record(happened("it is there"))
        tx.wake("scheduler")
        assert heard.names == []
    assert await count(database) == 1
    assert sorted(heard.names) == ["events", "scheduler"]
    async with database.read() as connection:
        [fact] = await list_events(connection, after=0)
    assert (fact.text, fact.at) == ("it is there", START)


async def test_what_is_rolled_back_leaves_no_fact_and_wakes_nobody(
    database: Database, heard: Heard
):
    async def write() -> None:
        async with database.transaction() as tx:
            await store(tx, "a")
            tx.record(happened())
            tx.wake("scheduler")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await write()
    assert await count(database) == 0
    async with database.read() as connection:
        assert await last_event(connection) == 0
    assert heard.names == []


async def test_a_cancelled_writer_leaves_nothing_and_holds_up_nobody(
    database: Database, heard: Heard
):
    inside = asyncio.Event()

    async def write() -> None:
        async with database.transaction() as tx:
            await store(tx, "a")
            tx.wake("scheduler")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60), database.transaction() as tx:
        await store(tx, "b")
    assert await count(database) == 1
    assert heard.names == []


async def test_a_fact_that_cannot_be_written_takes_the_change_with_it(
    database: Database, heard: Heard
):
    async def write() -> None:
        async with database.transaction() as tx:
            await store(tx, "a")
            tx.record(Event(kind=EventKind.USER_JOINED, text=None))  # type: ignore[arg-type]

    with pytest.raises(IntegrityError, match=r"(?i)null"):
        await write()
    assert await count(database) == 0
    assert heard.names == []


async def test_who_is_woken_finds_what_woke_them(db_url: str):
    """The wake-up comes after the commit: another connection sees the row."""
    await asyncio.to_thread(upgrade, db_url)
    looks: list[asyncio.Task[int]] = []
    database = Database(
        db_url,
        clock=Clock(),
        wake=lambda name: looks.append(asyncio.create_task(count(database))),
    )
    try:
        for number in range(1, 6):
            async with database.transaction() as tx:
                await store(tx, str(number))
                tx.wake("scheduler")
            assert await looks[-1] == number
    finally:
        await database.close()


async def test_everybody_is_woken_once_however_often_asked(
    database: Database, heard: Heard
):
    async with database.transaction() as tx:
        for _ in range(3):
            tx.wake("scheduler", "routes")
    assert sorted(heard.names) == ["routes", "scheduler"]


# --- writers beside each other -----------------------------------------------------


async def test_many_writers_that_first_look_all_succeed(database: Database):
    """Check, then insert: what fails on SQLite if the transaction begins as a read."""

    async def write(number: int) -> None:
        async with database.transaction() as tx:
            found = await tx.execute(
                select(VersionRow.value).where(VersionRow.name == f"v{number}")
            )
            assert found.first() is None
            await asyncio.sleep(0)
            await store(tx, f"v{number}")
            tx.record(happened(str(number)))

    await asyncio.gather(*(write(number) for number in range(WRITERS)))
    assert await count(database) == WRITERS


async def test_two_processes_worth_of_writers_wait_for_each_other(db_url: str):
    """Two databases on one file share no lock of ours, as two processes would."""
    await asyncio.to_thread(upgrade, db_url)
    both = [Database(db_url, clock=Clock()) for _ in range(2)]

    async def write(number: int) -> None:
        async with both[number % 2].transaction() as tx:
            await tx.execute(select(func.count()).select_from(VersionRow))
            await store(tx, f"v{number}")

    try:
        await asyncio.gather(*(write(number) for number in range(WRITERS)))
        assert await count(both[0]) == WRITERS
    finally:
        for database in both:
            await database.close()


async def test_on_sqlite_writing_begins_immediately_and_reading_does_not(
    memory_dir: Path,
):
    url = f"sqlite+aiosqlite:///{memory_dir / 'begin.sqlite'}"
    await asyncio.to_thread(upgrade, url)
    database = Database(url, clock=Clock())
    said: list[str] = []

    def listen(connection, cursor, statement, *rest) -> None:
        said.append(statement)

    event.listen(database.engine.sync_engine, "before_cursor_execute", listen)
    try:
        async with database.transaction() as tx:
            await store(tx, "a")
        async with database.read() as connection:
            await connection.execute(select(VersionRow.name))
        # The connection that has written is used again, and only reads now.
        assert [s for s in said if s.startswith("BEGIN")] == [
            "BEGIN IMMEDIATE",
            "BEGIN",
        ]
        async with database.read() as connection:
            pragmas = {
                name: await connection.scalar(text(f"PRAGMA {name}"))
                for name in ("journal_mode", "foreign_keys", "synchronous")
            }
        assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2}
    finally:
        await database.close()


async def test_a_reader_keeps_one_view_while_others_write(database: Database):
    query = select(func.count()).select_from(VersionRow)
    async with database.read() as connection:
        assert await connection.scalar(query) == 0
        async with database.transaction() as tx:
            await store(tx, "a")
        assert await connection.scalar(query) == 0
    assert await count(database) == 1


async def test_a_reader_does_not_wait_for_a_writer(database: Database):
    async with database.transaction() as tx:
        await store(tx, "a")
        async with asyncio.timeout(60):
            assert await count(database) == 0


# --- the numbers of facts ----------------------------------------------------------


async def test_whoever_follows_the_numbers_misses_no_fact(database: Database):
    """A number never appears below one that was seen: they follow the commits."""
    total, seen = 60, []
    # Writers first do their own work, of different length, then record.
    gate = asyncio.Semaphore(8)

    async def write(number: int) -> None:
        async with gate, database.transaction() as tx:
            await store(tx, f"v{number}")
            tx.record(happened(str(number)))
            for _ in range(number % 5):
                await tx.execute(select(VersionRow.name).limit(1))
            if number % 10 == 9:
                tx.events.clear()  # some have nothing to tell after all

    async def follow() -> None:
        last = 0
        while len(seen) < total - total // 10:
            async with database.read() as connection:
                found = await list_events(connection, after=last)
            seen.extend(fact.text for fact in found)
            if found:
                last = found[-1].seq

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(follow())
        for number in range(total):
            group.create_task(write(number))
    assert sorted(map(int, seen)) == [n for n in range(total) if n % 10 != 9]


@pytest.mark.parametrize("db_url", ["postgresql"], indirect=True)
@pytest.mark.postgres
async def test_a_later_number_is_never_committed_before_an_earlier_one(
    database: Database,
):
    """One writer has its number and is not done; the next waits for its own."""
    async with database.transaction() as first:
        first.record(happened("first"))
        await first.confirm(None)
        await first.flush_events()
        first.events.clear()

        async def write() -> None:
            async with database.transaction() as tx:
                tx.record(happened("second"))

        second = asyncio.create_task(write())
        # PostgreSQL itself says when the second writer stands before the lock.
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        async with asyncio.timeout(60):
            while not await first.connection.scalar(waiting):
                assert not second.done()
        async with database.read() as connection:
            assert await last_event(connection) == 0
    await second
    async with database.read() as connection:
        facts = await list_events(connection, after=0)
    assert [fact.text for fact in facts] == ["first", "second"]


async def test_numbers_are_not_used_again_after_facts_are_pruned(database: Database):
    async with database.transaction() as tx:
        tx.record(happened())
        tx.record(happened())
    async with database.read() as connection:
        newest = await last_event(connection)
    async with database.transaction() as tx:
        await tx.execute(EventRow.__table__.delete())  # type: ignore[attr-defined]
    async with database.transaction() as tx:
        tx.record(happened())
    async with database.read() as connection:
        assert await last_event(connection) > newest


async def test_a_time_without_a_zone_is_refused_and_others_come_back_in_utc(
    database: Database,
):
    row = {"kind": "k", "text": "t", "actor": "a"}
    naive = START.replace(tzinfo=None)
    async with database.transaction() as tx:
        with pytest.raises(StatementError, match="no time zone"):
            await tx.execute(insert(EventRow).values(at=naive, **row))
    async with database.transaction() as tx:
        await tx.execute(insert(EventRow).values(at=START, **row))
    async with database.read() as connection:
        assert await connection.scalar(select(EventRow.at)) == START
