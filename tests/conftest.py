"""Fixtures that every test may use."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import upgrade
from backendai_hub.operations.platform import Platform
from tests.databases import StandingDatabase, compile_once, new_database
from tests.factories import AUDIT_KEY, Clock, make_platform, prepare
from tests.forks import import_once
from tests.harness import Stack, migrated, running_stack
from tests.mock_hubs import StartedHubs

# The same examples every time, however long they take: one that fails by chance, once
# in a thousand runs of everything, would be in somebody else's way. To look for more,
# `pytest --hypothesis-profile=search`.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")

compile_once()
import_once()

pytest_plugins = ["tests.distribution", "tests.requirement_marks"]


@pytest.fixture
def memory_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where every commit's fsync costs nothing."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="backendai-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def standing_database() -> Iterator[StandingDatabase]:
    """A PostgreSQL database with the present schema that tests use in turn."""
    with new_database() as url:
        upgrade(url)
        yield StandingDatabase(url)


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def db_url(request: pytest.FixtureRequest, memory_dir: Path) -> Iterator[str]:
    """A database of this test's own, once on each engine.

    It has no tables yet, except for tests of ``database`` and ``migrated_url``: making
    those costs more than most of these tests do, so a copy is taken or the last test's
    rows go.
    """
    ready = not {"database", "migrated_url"}.isdisjoint(request.fixturenames)
    if request.param == "sqlite":
        path = memory_dir / "test.sqlite"
        if ready:
            path.write_bytes(migrated())
        yield f"sqlite+aiosqlite:///{path}"
    elif ready:
        standing = request.getfixturevalue("standing_database")
        standing.empty()
        yield standing.url
    else:
        with new_database() as url:
            yield url


@pytest.fixture
def migrated_url(db_url: str) -> str:
    """The address of such a database with the present schema."""
    return db_url


@pytest.fixture
async def database(db_url: str) -> AsyncIterator[Database]:
    """A database with the present schema and a clock that stands still."""
    opened = Database(db_url, clock=Clock(), audit_key=AUDIT_KEY)
    yield opened
    await opened.close()


@pytest.fixture
async def platform(database: Database) -> Platform:
    """A control plane on that database, with one image on offer and no node."""
    made = make_platform(database)
    await prepare(made)
    return made


@pytest.fixture
async def stack(tmp_path: Path, migrated_url: str) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on each engine."""
    async with running_stack(tmp_path / "data", migrated_url) as running:
        yield running


@pytest.fixture
async def hub_service(tmp_path: Path) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on SQLite."""
    async with running_stack(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def started_hubs() -> AsyncIterator[StartedHubs]:
    """Close what JupyterHubs, spawners and authenticators opened in this test."""
    hubs = StartedHubs()
    yield hubs
    await hubs.close()


@pytest.fixture
def configured_mockhub_instance(
    started_hubs: StartedHubs, configured_mockhub_instance: Callable[..., Any]
) -> Callable[..., Any]:
    """Configure a real JupyterHub, to be closed after its last task.

    A service that is still there may ask it for something until its very end.
    """

    def configure(config: Any) -> Any:
        started_hubs.note_client()
        app = configured_mockhub_instance(config)
        started_hubs.begin(app)
        return app

    return configure


@pytest.fixture(scope="session")
def shared_service() -> Iterator[Stack]:
    """A real hub service and agent that tests share; each uses users of its own."""
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        stack = Stack(Path(folder))
        try:
            asyncio.run(stack.start_service())
            asyncio.run(stack.start_agent())
            yield stack
        finally:
            stack.stop()
