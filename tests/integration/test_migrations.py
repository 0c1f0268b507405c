"""The schema: as the tables say, up and down, again and at once, on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, pool, text
from sqlalchemy.exc import DBAPIError

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.db.engine import Database
from backendai_hub.db.ledger import set_quota
from backendai_hub.db.migrate import build_config, downgrade, sync_url, upgrade
from backendai_hub.db.tables import Base
from tests.factories import Clock

VERSION_TABLE = "alembic_version"


@pytest.fixture
def connection(db_url: str) -> Iterator[Connection]:
    engine = create_engine(sync_url(db_url), poolclass=pool.NullPool)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
    )
    return list(compare_metadata(context, Base.metadata))


def tell_index(index: Any) -> str:
    options = index.get("dialect_options", {})
    where = {str(value) for key, value in options.items() if key.endswith("_where")}
    return f"{index['name']} {index['column_names']} {index['unique']} {where}"


def shape(connection: Connection) -> dict[str, object]:
    """Everything the database itself says of its tables, checks and indexes."""
    seen = inspect(connection)
    return {
        table: (
            sorted(
                (c["name"], str(c["type"]), c["nullable"])
                for c in seen.get_columns(table)
            ),
            sorted(
                (str(c["name"]), "".join(str(c["sqltext"]).split()))
                for c in seen.get_check_constraints(table)
            ),
            sorted(map(tell_index, seen.get_indexes(table))),
            sorted(str(f["name"]) for f in seen.get_foreign_keys(table)),
            sorted(str(u["name"]) for u in seen.get_unique_constraints(table)),
            seen.get_pk_constraint(table)["constrained_columns"],
        )
        for table in sorted(seen.get_table_names())
        if table != VERSION_TABLE
    }


def test_upgrading_makes_the_schema_the_code_works_with(
    db_url: str, connection: Connection
):
    upgrade(db_url)
    assert differences(connection) == []


def test_checks_and_partial_indexes_are_there_too(db_url: str, connection: Connection):
    """What a comparison of columns does not see: compared with ``create_all``."""
    upgrade(db_url)
    migrated = shape(connection)
    connection.rollback()
    downgrade(db_url, "base")
    Base.metadata.create_all(connection)
    connection.commit()
    assert migrated == shape(connection)


def test_a_difference_would_be_found(db_url: str, connection: Connection):
    upgrade(db_url)
    connection.execute(text("DROP INDEX ix_events_owner"))
    connection.execute(text("ALTER TABLE agents DROP COLUMN version"))
    assert len(differences(connection)) == 2


def test_going_down_leaves_nothing_and_up_again_makes_the_same(
    db_url: str, connection: Connection
):
    upgrade(db_url)
    before = shape(connection)
    connection.rollback()
    downgrade(db_url, "base")
    assert shape(connection) == {}
    connection.rollback()
    upgrade(db_url)
    assert shape(connection) == before


async def test_upgrading_again_changes_nothing_and_keeps_what_is_stored(db_url: str):
    await asyncio.to_thread(upgrade, db_url)
    database = Database(db_url, clock=Clock())
    try:
        async with database.transaction() as tx:
            await set_quota(tx, ScopeKind.USER, "u", "cpu", 1000)
        await asyncio.to_thread(upgrade, db_url)
        async with database.read() as opened:
            stored = await opened.execute(text("SELECT owner_id, quota FROM ledger"))
            assert stored.all() == [("u", 1000)]
    finally:
        await database.close()


async def test_two_services_may_upgrade_at_once(db_url: str, connection: Connection):
    await asyncio.gather(*(asyncio.to_thread(upgrade, db_url) for _ in range(4)))
    assert differences(connection) == []
    versions = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    assert len(versions.all()) == 1


def test_an_upgrade_that_fails_halfway_leaves_nothing_behind(
    db_url: str, connection: Connection
):
    """So that the next start can simply try again."""
    connection.execute(text("CREATE TABLE users (id INTEGER)"))
    connection.commit()
    with pytest.raises(DBAPIError, match="users"):
        upgrade(db_url)
    assert set(shape(connection)) == {"users"}
    connection.execute(text("DROP TABLE users"))
    connection.commit()
    upgrade(db_url)
    assert differences(connection) == []


def test_revisions_are_one_line_and_say_what_they_do():
    revisions = list(ScriptDirectory.from_config(build_config()).walk_revisions())
    assert revisions
    for revision in revisions:
        assert not revision.is_branch_point
        assert revision.doc
        assert Path(revision.path).name.startswith(f"{revision.revision}_")
