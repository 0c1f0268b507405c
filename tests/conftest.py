"""Fixtures that every test may use."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from tests.harness import Stack, running_stack

pytest_plugins = ["tests.requirement_marks"]


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def db_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own, once on each engine."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'test.sqlite'}"
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
async def stack(tmp_path: Path, db_url: str) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on each engine."""
    async with running_stack(tmp_path / "data", db_url) as running:
        yield running


@pytest.fixture
async def hub_service(tmp_path: Path) -> AsyncIterator[Stack]:
    """A real hub service and a real agent with the fake runtime, on SQLite."""
    async with running_stack(tmp_path / "data") as running:
        yield running
