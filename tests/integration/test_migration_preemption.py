"""A site where some make room for others goes down to the schema without, and up."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, upgrade
from backendai_hub.operations.platform import Platform
from tests.factories import add_node, make_device, make_gpu
from tests.jobs import ask
from tests.preemptions import GPU, look, occupy, opt_in, plans
from tests.tenants import Office, breaches, read


async def test_who_waits_waits_and_who_leaves_is_stopped_by_the_older_service(
    platform: Platform, database: Database, db_url: str
):
    node = await add_node(platform, devices=[make_device(), make_gpu("gpu-0")])
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node, name="victim")
    urgent = await ask(platform, "bob", name="urgent", slots=GPU, job_priority=1)
    await look(platform)
    assert len(await plans(platform, open=True)) == 1
    await database.close()

    await asyncio.to_thread(downgrade, db_url, "0006")
    async with database.engine.connect() as connection:
        rows = await connection.execute(text("SELECT name, status FROM sessions"))
        found = {row.name: row.status for row in rows}
    assert found == {"victim": "TERMINATING", "urgent": "PENDING"}
    await database.close()
    await asyncio.to_thread(upgrade, db_url)

    policy = await Office(platform).read("keypair-policy", "default")
    assert policy.max_job_priority == 0
    assert await plans(platform) == []
    assert await breaches(platform) == []
    await node.report([])
    shown = await read(platform, victim)
    assert (shown.status, shown.preemptions) == (SessionStatus.TERMINATED, 0)
    assert await look(platform) == 1
    assert (await read(platform, urgent)).status is SessionStatus.SCHEDULED
    assert await breaches(platform) == []
