"""What was found on storage hosts comes and goes with the schema's twelfth step."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import create_engine, inspect, pool, text

from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from tests.folders import opened_archive


async def test_folders_and_scopes_stay_on_the_way_back_and_no_room_is_kept_after_it(
    database: Database, migrated_url: str, tmp_path: Path
):
    async with opened_archive(database, tmp_path / "folders") as archive:
        await archive.make("alice", "data")
    await database.close()

    await asyncio.to_thread(downgrade, migrated_url, "0011")
    engine = create_engine(sync_url(migrated_url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        seen = inspect(connection)
        assert "storage_remains" not in seen.get_table_names()
        assert "reserved_files" not in {c["name"] for c in seen.get_columns("vfolders")}
    await asyncio.to_thread(upgrade, migrated_url)
    with engine.connect() as connection:
        for table in ("vfolders", "quota_scopes"):
            kept = connection.execute(text(f"SELECT reserved_files FROM {table}"))
            assert kept.scalars().all() == [0]
    engine.dispose()
