"""Fixtures that every test may use."""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import upgrade
from backendai_hub.operations.platform import Platform
from backendai_spawner.clients import close_shared_clients
from tests.factories import AUDIT_KEY, Clock, make_platform, prepare
from tests.harness import Stack, running_stack

pytest_plugins = ["tests.requirement_marks"]


@pytest.fixture
def memory_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where every commit's fsync costs nothing."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="backendai-") as folder:
        yield Path(folder)


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def db_url(request: pytest.FixtureRequest, memory_dir: Path) -> Iterator[str]:
    """A database of this test's own, once on each engine."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{memory_dir / 'test.sqlite'}"
        return
    server = make_url(os.environ["BACKENDAI_TEST_POSTGRES_URL"])
    server = server.set(drivername="postgresql+psycopg")
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        yield server.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    finally:
        engine.dispose()


@pytest.fixture
async def database(db_url: str) -> AsyncIterator[Database]:
    """A database with the present schema and a clock that stands still."""
    await asyncio.to_thread(upgrade, db_url)
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
async def stack(tmp_path: Path, db_url: str) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on each engine."""
    async with running_stack(tmp_path / "data", db_url) as running:
        yield running


@pytest.fixture
async def hub_service(tmp_path: Path) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on SQLite."""
    async with running_stack(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def closed_clients() -> AsyncIterator[None]:
    """Close what spawners and authenticators opened in this test's event loop."""
    yield
    await close_shared_clients()


@pytest.fixture
def hub_app(closed_clients: None, hub_app: Callable[..., Any]) -> Callable[..., Any]:
    """Start a real JupyterHub; its connections are closed after its last task.

    A service that is still there may ask it for something until its very end.
    """
    return hub_app


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
