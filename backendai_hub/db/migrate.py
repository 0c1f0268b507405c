"""Bringing a database to the present schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event, pool
from sqlalchemy.engine import URL, make_url

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


def sync_url(url: str) -> URL:
    """Return *url* with the driver that migrations use."""
    parsed = make_url(url)
    return parsed.set(drivername=_DRIVERS[parsed.get_backend_name()])


def build_config() -> Config:
    """Build alembic's configuration; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the database at *url*; blocks, so call it in a thread."""
    _run(url, lambda config: command.upgrade(config, revision))


def downgrade(url: str, revision: str) -> None:
    """Downgrade the database at *url*; blocks."""
    _run(url, lambda config: command.downgrade(config, revision))


def _run(url: str, action: Callable[[Config], None]) -> None:
    engine = create_engine(sync_url(url), poolclass=pool.NullPool)
    if engine.dialect.name == "sqlite":
        # The driver begins no transaction for DDL: an upgrade that is killed halfway
        # would leave tables behind that the next one stumbles over.
        event.listen(engine, "connect", _leave_transactions_to_us)
        event.listen(engine, "begin", _begin_immediate)
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                # Several services may start at once; one of them migrates.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1650553958)")
            config = build_config()
            config.attributes["connection"] = connection
            action(config)
    finally:
        engine.dispose()


def _leave_transactions_to_us(connection: Any, record: Any) -> None:
    del record
    connection.isolation_level = None
    # Another service may be upgrading the same file right now.
    connection.execute("PRAGMA busy_timeout=30000").close()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
