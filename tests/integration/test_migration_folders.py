"""Folders come with the schema's eleventh step, and go with it; their files stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import create_engine, inspect, pool, text

from backendai_hub.core.mounts import MountRequest
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from tests.factories import submit
from tests.folders import opened_archive

TABLES = {
    "folder_tasks",
    "quota_scopes",
    "session_mounts",
    "uploads",
    "vfolder_invitations",
    "vfolder_permissions",
    "vfolders",
}


async def test_folders_are_forgotten_on_the_way_back_and_nothing_else_is(
    database: Database, migrated_url: str, tmp_path: Path
):
    async with opened_archive(database, tmp_path / "folders") as archive:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        made = await archive.make(alice, "data")
        await archive.share(alice, "data", bob)
        place = archive.place(made, alice.id)
        session = (
            await submit(archive.platform, mounts=[MountRequest(folder="data")])
        ).session
    await database.close()

    await asyncio.to_thread(downgrade, migrated_url, "0010")
    engine = create_engine(sync_url(migrated_url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        seen = inspect(connection)
        assert TABLES.isdisjoint(seen.get_table_names())
        assert "folder_id" not in {c["name"] for c in seen.get_columns("events")}
        kept = connection.execute(text("SELECT id FROM sessions")).scalars().all()
        assert kept == [session.id]
        told = "SELECT count(*) FROM events WHERE kind = 'folder.created'"
        assert connection.execute(text(told)).scalar() == 1
    await asyncio.to_thread(upgrade, migrated_url)
    with engine.connect() as connection:
        assert set(inspect(connection).get_table_names()) >= TABLES
        folders = connection.execute(text("SELECT count(*) FROM vfolders")).scalar()
        assert folders == 0
    engine.dispose()
    assert place.is_dir(), "by its id"
