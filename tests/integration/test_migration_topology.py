"""Slices and labels come with the schema's ninth step, and go with it."""

from __future__ import annotations

import asyncio

from sqlalchemy import create_engine, inspect, pool, text

from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from backendai_hub.operations.platform import Platform
from tests.factories import start
from tests.integration.test_node_places import label
from tests.integration.test_sliced_devices import SMALL, add_cut_node, ask

ADDED = {
    "agents": {"labels", "set_labels", "max_containers"},
    "devices": {"links", "profiles", "slices"},
    "sessions": {"labels"},
    "allocations": {"slices"},
}


async def test_what_is_held_in_slices_is_still_held_without_them(
    platform: Platform, migrated_url: str
):
    await add_cut_node(platform, linked=1)
    await label(platform, "node-1", gpu="a100")
    session = await start(platform, slots=ask(SMALL, 3), labels={"gpu": "a100"})
    await platform.database.close()

    await asyncio.to_thread(downgrade, migrated_url, "0008")
    engine = create_engine(sync_url(migrated_url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        for table, names in ADDED.items():
            there = {c["name"] for c in inspect(connection).get_columns(table)}
            assert names.isdisjoint(there), table
        held = connection.execute(
            text("SELECT slot, amount FROM allocations WHERE session_id = :id"),
            {"id": session.id},
        )
        assert {row.slot: row.amount for row in held}[SMALL] == 3000
    await asyncio.to_thread(upgrade, migrated_url)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT slices FROM allocations")).scalars()
        assert set(rows) == {0}
        labels = connection.execute(text("SELECT labels FROM agents")).scalar()
        assert labels in ({}, "{}")
    engine.dispose()
