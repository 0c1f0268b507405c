"""SSH keys come with the schema's 14th step, and are forgotten on the way back."""

from __future__ import annotations

import asyncio

from sqlalchemy import create_engine, inspect, pool, text

from backendai_hub.core.access import USER_SCOPES
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from backendai_hub.operations import ssh_keys
from backendai_hub.operations.users import ensure_user, make_principal
from tests.factories import make_platform, prepare
from tests.tenants import Office


async def test_keys_are_forgotten_on_the_way_back_and_keypairs_are_not(
    database: Database, migrated_url: str
):
    platform = make_platform(database)
    await prepare(platform)
    actor = await ensure_user(platform, "ada")
    ada = make_principal(actor, scopes=USER_SCOPES, credential="token")
    key = await Office(platform).default_key("ada")
    await ssh_keys.make_key(platform, ada, key.name)
    await database.close()

    await asyncio.to_thread(downgrade, migrated_url, "0013")
    engine = create_engine(sync_url(migrated_url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        assert "ssh_keys" not in inspect(connection).get_table_names()
        kept = connection.execute(text("SELECT id FROM keypairs")).scalars().all()
        assert key.id in kept
    await asyncio.to_thread(upgrade, migrated_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM ssh_keys")).scalar() == 0
    engine.dispose()
