"""Two services on one database would each believe what they remember."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from backendai_hub.db.engine import Database
from backendai_hub.db.leader import AnotherServiceError, Leadership


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
        keeping = asyncio.create_task(first.keep(pause=0.01))
        await end_connections(other)
        # It has the right again: another one cannot have it.
        for _ in range(200):
            await asyncio.sleep(0.01)
            if first._connection is not None and await holds(other):
                break
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
        await asyncio.wait_for(first.keep(pause=0.01), 10)
        await second.close()
        await first.close()


async def end_connections(other: Database) -> None:
    """As if the network had dropped whoever holds the lock."""
    async with other.transaction() as tx:
        await tx.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_locks"
                " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                " AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )


async def holds(other: Database) -> bool:
    async with other.read() as connection:
        count = await connection.scalar(
            text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
    return bool(count)


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_on_sqlite_the_lock_of_the_folder_is_enough(database: Database):
    one, two = Leadership(database), Leadership(database)
    await one.take(tries=1)
    await two.take(tries=1)
    await one.close()
    await two.close()
