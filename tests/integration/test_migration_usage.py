"""What containers have used comes with the schema's 13th step, and goes with it."""

from __future__ import annotations

import asyncio

from sqlalchemy import create_engine, inspect, pool, text

from backendai_hub.core.live_usage import UsageTotals
from backendai_hub.db import containers
from backendai_hub.db.container_usage import load_totals, write_totals
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from tests.factories import add_node, make_platform, prepare, start

TABLE = "container_usage"
USED = UsageTotals(cpu_seconds=1.5, memory_peak=1 << 40, device_seconds=0.25)


async def test_what_was_used_is_forgotten_on_the_way_back_and_nothing_else_is(
    database: Database, migrated_url: str
):
    platform = make_platform(database)
    await prepare(platform)
    await add_node(platform)
    session = await start(platform)
    async with database.read() as connection:
        [main] = await containers.list_members(connection, session.id)
    async with database.transaction() as tx:
        await write_totals(tx, {main.id: USED})
    async with database.read() as connection:
        assert await load_totals(connection, containers=[main.id]) == {main.id: USED}
    await database.close()

    await asyncio.to_thread(downgrade, migrated_url, "0012")
    engine = create_engine(sync_url(migrated_url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        assert TABLE not in inspect(connection).get_table_names()
        kept = connection.execute(text("SELECT id FROM containers")).scalars().all()
        assert kept == [main.id]
    await asyncio.to_thread(upgrade, migrated_url)
    with engine.connect() as connection:
        assert TABLE in inspect(connection).get_table_names()
        assert connection.execute(text(f"SELECT count(*) FROM {TABLE}")).scalar() == 0
    engine.dispose()
