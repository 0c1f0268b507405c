"""Bringing a database to the present schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, pool
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
