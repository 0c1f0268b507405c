"""Databases on the tests' PostgreSQL server."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Dialect,
    Engine,
    create_engine,
    event,
    pool,
    text,
)
from sqlalchemy.util import LRUCache

from backendai_hub.db.migrate import sync_url

_TABLES = text(
    "SELECT quote_ident(tablename) FROM pg_tables"
    " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
)
_SEQUENCES = text(
    "SELECT quote_ident(sequencename) FROM pg_sequences WHERE schemaname = 'public'"
)
_OTHERS = text(
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def _engine(url: URL) -> Engine:
    return create_engine(url, isolation_level="AUTOCOMMIT", poolclass=pool.NullPool)


@contextmanager
def new_database() -> Iterator[str]:
    """Make a database without tables, and drop it in the end, whoever is in it."""
    server = sync_url(os.environ["BACKENDAI_TEST_POSTGRES_URL"])
    name = f"test_{uuid.uuid4().hex}"
    engine = _engine(server)
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))


class StandingDatabase:
    """A migrated database that is emptied instead of made anew.

    Deleting a few rows takes milliseconds; making some thirty tables, or truncating
    them, takes half a second.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(sync_url(url))
        with self._engine.connect() as connection:
            tables = connection.scalars(_TABLES).all()
            sequences = connection.scalars(_SEQUENCES).all()
        self._emptying = text(
            # The audit's triggers and the order of foreign keys do not matter now.
            "; ".join(
                [
                    "SET session_replication_role = replica",
                    *(f"DELETE FROM {name}" for name in tables),
                    *(f"ALTER SEQUENCE {name} RESTART" for name in sequences),
                ]
            )
        )

    def empty(self) -> None:
        """Send everybody away and delete every row."""
        with self._engine.connect() as connection:
            connection.execute(_OTHERS)
            connection.execute(self._emptying)


class CompiledOnce:
    """Statements that some engine of this process has compiled, for all like it.

    SQLAlchemy keeps them with the engine. A service has one for as long as it runs;
    each test has one of its own, and would compile everything again.
    """

    _kept: LRUCache[Any, Any] = LRUCache(5000)

    def __init__(self, dialect: Dialect) -> None:
        # What a compiled statement reads and writes with.
        loads, dumps = dialect._json_deserializer, dialect._json_serializer
        self._like = (type(dialect), loads, dumps)

    def get(self, key: tuple[Any, ...]) -> Any:
        _, *what = key  # the first is the one engine's own dialect
        return self._kept.get((*self._like, *what))

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        _, *what = key
        self._kept[(*self._like, *what)] = compiled


def compile_once() -> None:
    """Let all engines of this process share what they compile."""

    @event.listens_for(Engine, "engine_connect")
    def share(connection: Connection) -> None:
        engine = connection.engine
        if not isinstance(engine._compiled_cache, CompiledOnce):
            engine._compiled_cache = CompiledOnce(engine.dialect)
