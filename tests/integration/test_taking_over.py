"""Two real services, one database: one decides, and the other when it cannot."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import text

from backendai_hub.db.invariants import find_breaches
from tests.admin import opened_database
from tests.harness import Stack, until

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("db_url", ["postgresql"], indirect=True),
]

LONGEST = 15.0
"""Seconds after which somebody has to serve again: what is promised."""
MANY = 80
SETTINGS = (
    '--HubService.images=[{"name": "tiny", "references": {"fake": "fake"},'
    ' "minimum": {"cpu": "0.001", "mem": "1m"}, "shmem": "0"}]',
    # The node says nothing while nobody serves it: it is to be counted on all along.
    "--HubService.suspect_seconds=600",
    "--HubService.lost_seconds=1200",
    "--HubService.max_live_sessions=1000",
)


class Pair:
    """A service with a node, and another one that stands by."""

    def __init__(self, folder: Path, db_url: str) -> None:
        self.first = Stack(folder / "first", db_url)
        shutil.copytree(self.first.folder.key("."), folder / "second" / "keys")
        self.second = Stack(folder / "second", db_url)
        self.second.patience = 180.0  # it stands by meanwhile
        self.serves: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.first.start_service(*SETTINGS)
        await self.first.start_agent()
        self.serves = asyncio.create_task(self.second.start_service(*SETTINGS))
        await until(
            lambda: (
                "service" in self.second.programs
                and "standing by" in self.second.programs["service"].said()
            ),
            "the second stands by",
        )

    @property
    def leader(self) -> int:
        return self.first.programs["service"].pid

    async def successor(self) -> float:
        """Wait until the second serves; return how many seconds that took."""
        assert self.serves is not None
        began = time.monotonic()
        await self.serves
        return time.monotonic() - began

    async def stop(self) -> None:
        if self.serves is not None:
            self.serves.cancel()
            await asyncio.gather(self.serves, return_exceptions=True)
        program = self.first.programs.get("service")
        if program is not None and program.process and program.process.poll() is None:
            os.kill(program.pid, signal.SIGCONT)
        self.first.stop()
        self.second.stop()


@pytest.fixture
async def pair(tmp_path: Path, db_url: str) -> AsyncIterator[Pair]:
    made = Pair(tmp_path, db_url)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


async def ask_for_many(stack: Stack, count: int) -> int:
    """Ask for sessions until the service is gone; return how many it confirmed."""
    async with stack.client("alice") as api:

        async def ask(number: int) -> bool:
            try:
                made = await api.create(
                    f"k{number}",
                    image="tiny",
                    slots={"cpu": "0.001", "mem": "1m"},
                    attachment={
                        "user": "alice",
                        "server": f"s{number}",
                        "prefix": f"/user/alice/s{number}/",
                    },
                )
            except (aiohttp.ClientError, TimeoutError):
                return False
            return made[0] in {200, 201}

        return sum(await asyncio.gather(*(ask(n) for n in range(count))))


async def rows(stack: Stack, query: str) -> list[tuple[object, ...]]:
    async with opened_database(stack) as database, database.read() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def check_each_was_decided_once(stack: Stack) -> None:
    twice = await rows(
        stack,
        "SELECT session_id, count(*) FROM events WHERE kind = 'session.scheduled'"
        " GROUP BY session_id HAVING count(*) > 1",
    )
    assert twice == []
    containers = await rows(
        stack,
        "SELECT session_id FROM containers GROUP BY session_id HAVING count(*) > 1",
    )
    assert containers == []
    async with opened_database(stack) as database, database.read() as connection:
        assert await find_breaches(connection) == []


async def test_a_leader_killed_in_the_middle_of_deciding_is_replaced(pair: Pair):
    asking = asyncio.create_task(ask_for_many(pair.first, MANY))

    async with opened_database(pair.first) as database:

        async def decides() -> bool:
            query = "SELECT 1 FROM sessions WHERE scheduled_at IS NOT NULL LIMIT 1"
            async with database.glance() as connection:
                return bool((await connection.execute(text(query))).first())

        await until(decides, "the first decides", 90)
    os.kill(pair.leader, signal.SIGKILL)

    assert await pair.successor() <= LONGEST
    confirmed = await asking

    async def all_decided() -> bool:
        waiting = "SELECT 1 FROM sessions WHERE status = 'PENDING' AND ready"
        return not await rows(pair.second, waiting)

    await until(all_decided, "the second decides what was left", 90)
    stored = await rows(pair.second, "SELECT count(*) FROM sessions")
    assert confirmed <= int(str(stored[0][0])) <= MANY
    # Whoever got no answer asks again with the same key, and gets the same session.
    assert await ask_for_many(pair.second, MANY) == MANY
    assert await rows(pair.second, "SELECT count(*) FROM sessions") == [(MANY,)]
    await until(all_decided, "the second decides the rest", 90)
    await check_each_was_decided_once(pair.second)


async def test_what_a_stopped_leader_still_wants_to_write_is_refused(pair: Pair):
    assert await ask_for_many(pair.first, 5) == 5
    os.kill(pair.leader, signal.SIGSTOP)
    # The kernel takes these in; the service sees them when it goes on.
    asking = asyncio.create_task(ask_for_many(pair.first, MANY))

    assert await pair.successor() <= LONGEST
    before = await rows(pair.second, "SELECT count(*) FROM sessions")
    os.kill(pair.leader, signal.SIGCONT)

    assert await asking == 0
    program = pair.first.programs["service"]
    assert program.process is not None
    await until(lambda: program.process.poll() is not None, "the first has ended")
    assert program.process.returncode == 1
    assert "has taken over this database" in program.said()
    assert await rows(pair.second, "SELECT count(*) FROM sessions") == before
    assert await ask_for_many(pair.second, MANY) == MANY
    await check_each_was_decided_once(pair.second)


async def test_a_leader_that_ends_by_itself_is_followed_at_once(pair: Pair):
    pair.first.programs["service"].stop()
    assert await pair.successor() <= LONGEST
