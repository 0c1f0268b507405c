"""Two services on one database would each believe what they remember."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from backendai_hub.core.events import Event, EventKind
from backendai_hub.db.engine import Database, OvertakenError
from backendai_hub.db.leader import AnotherServiceError, Leadership
from backendai_hub.db.tables import VersionRow
from tests.harness import until


@pytest.fixture
async def other(database: Database):
    second = Database(database.url.render_as_string(hide_password=False))
    yield second
    await second.close()


@pytest.mark.postgres
@pytest.mark.parametrize("db_url", ["postgresql"], indirect=True)
class TestOnPostgreSQL:
    async def test_only_one_service_serves(self, database: Database, other: Database):
        first, second = Leadership(database), Leadership(other)
        await first.take()
        with pytest.raises(AnotherServiceError, match="another hub service"):
            await second.take(tries=2, pause=0)
        await first.close()
        await second.take(tries=1)
        await second.close()

    async def test_one_that_loses_its_connection_takes_the_right_again(
        self, database: Database, other: Database
    ):
        first = Leadership(database)
        await first.take()
        lost = first._connection
        keeping = asyncio.create_task(first.keep(pause=0.01))
        await end_connections(other)
        await until(lambda: first._connection not in {None, lost}, "it has it again")
        with pytest.raises(AnotherServiceError):
            await Leadership(other).take(tries=1)
        assert not keeping.done()
        keeping.cancel()
        await first.close()

    async def test_one_that_was_overtaken_is_told_to_stop(
        self, database: Database, other: Database
    ):
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await end_connections(other)
        await second.take(tries=50, pause=0.02)
        await asyncio.wait_for(first.keep(pause=0.01), 60)
        await second.close()
        await first.close()

    async def test_nobody_writes_any_more_once_another_has_begun(
        self, database: Database, other: Database
    ):
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await first.begin()
        await write(database, "before")
        keeping = asyncio.create_task(first.keep(pause=3600))
        await end_connections(other)
        await second.take(tries=50, pause=0.02)
        await second.begin()

        with pytest.raises(OvertakenError, match="has taken over"):
            await write(database, "after")
        with pytest.raises(OvertakenError):
            async with database.transaction() as tx:
                tx.record(Event(kind=EventKind.SESSION_PROGRESS, text="an event"))
        async with database.transaction() as tx:
            await tx.connection.execute(text("SELECT 1"))  # reading is no harm
        await write(other, "of the second")
        assert await names(other) == ["before", "leader", "of the second"]
        await asyncio.wait_for(keeping, 60)
        await second.close()
        await first.close()

    async def test_a_successor_waits_for_what_is_being_committed(
        self, database: Database, other: Database
    ):
        """Confirmed, a transaction is in front of the change of leaders."""
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await first.begin()
        async with database.transaction() as tx:
            await tx.execute(insert(VersionRow).values(name="late", value=1))
            await tx.confirm(database.epoch)
            await end_lock_holder(other)
            await second.take(tries=50, pause=0.02)
            beginning = asyncio.create_task(second.begin())
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            async with asyncio.timeout(60):
                while not await tx.connection.scalar(waiting):
                    assert not beginning.done()
        await asyncio.wait_for(beginning, 60)
        assert await names(other) == ["late", "leader"]
        assert other.epoch == 2
        await second.close()
        await first.close()

    async def test_what_a_predecessor_leaves_open_is_ended(
        self, database: Database, other: Database
    ):
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await first.begin()

        async def be_overtaken_in_the_last_step() -> None:
            async with database.transaction() as tx:
                await tx.execute(insert(VersionRow).values(name="late", value=1))
                await tx.confirm(database.epoch)
                await end_lock_holder(other)
                await second.take(tries=50, pause=0.02)
                await asyncio.wait_for(second.begin(), 60)
                await tx.connection.execute(text("SELECT 1"))

        with pytest.raises(DBAPIError):
            await be_overtaken_in_the_last_step()
        assert await names(other) == ["leader"]
        await second.close()
        await first.close()

    async def test_one_that_falls_silent_is_deposed_and_one_that_speaks_is_not(
        self, database: Database, other: Database
    ):
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await first.begin()
        keeping = asyncio.create_task(first.keep(pause=0.02))
        with pytest.raises(AnotherServiceError):
            await second.take(tries=150, pause=0.02, patience=2)
        assert not keeping.done()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await asyncio.wait_for(second.take(pause=0.02, patience=2), 60)
        await second.begin()
        with pytest.raises(OvertakenError):
            await write(database, "after")
        await asyncio.wait_for(first.keep(pause=0.01), 60)
        await second.close()
        await first.close()

    async def test_one_whose_turn_has_passed_unseen_does_not_lead_again(
        self, database: Database, other: Database
    ):
        """Another has led and ended while the connection of the first was away."""
        first, second = Leadership(database), Leadership(other)
        await first.take()
        await first.begin()
        await end_connections(other)
        await second.take(tries=50, pause=0.02)
        await second.begin()
        await second.close()
        await asyncio.wait_for(first.keep(pause=0.01), 60)
        await first.close()


async def write(database: Database, name: str) -> None:
    async with database.transaction() as tx:
        await tx.execute(insert(VersionRow).values(name=name, value=1))


async def names(database: Database) -> list[str]:
    async with database.read() as connection:
        return sorted(await connection.scalars(select(VersionRow.name)))


async def end_lock_holder(other: Database) -> None:
    """End the connection that holds the right to serve, and no other."""
    async with other.transaction() as tx:
        await tx.connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
                " WHERE locktype = 'advisory' AND objid = 1650551148"
                " AND pid <> pg_backend_pid() AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )


async def end_connections(other: Database) -> None:
    """As if the network had dropped whoever holds the lock."""
    async with other.transaction() as tx:
        await tx.execute(
            text(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
                " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                " AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_on_sqlite_the_lock_of_the_folder_is_enough(database: Database):
    one, two = Leadership(database), Leadership(database)
    await one.take(tries=1)
    await two.take(tries=1)
    await one.close()
    await two.close()
