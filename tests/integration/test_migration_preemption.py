"""A site where some make room for others goes down to the schema without, and up."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from backendai_hub.core.preemptions import Ending
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
    assert (policy.max_job_priority, policy.allows_not_preemptible) == (0, True)
    assert await plans(platform) == []
    assert await breaches(platform) == []
    await node.report([])
    shown = await read(platform, victim)
    assert (shown.status, shown.preemptions) == (SessionStatus.TERMINATED, 0)
    assert await look(platform) == 1
    assert (await read(platform, urgent)).status is SessionStatus.SCHEDULED
    assert await breaches(platform) == []


async def test_nothing_is_kept_any_more_for_a_cluster_that_is_cancelled(
    platform: Platform, database: Database, db_url: str
):
    gpus = [make_gpu("gpu-0"), make_gpu("gpu-1")]
    node = await add_node(platform, devices=[make_device(), *gpus])
    await opt_in(platform)
    policy = {"max_containers_per_session": 0}
    await Office(platform).change("keypair-policy", "default", **policy)
    await occupy(platform, node)
    wide = await ask(platform, "bob", slots=GPU, cluster_size=2, job_priority=1)
    await look(platform)
    assert (await read(platform, wide)).status is SessionStatus.RESERVED
    await database.close()

    await asyncio.to_thread(downgrade, db_url, "0007")
    await asyncio.to_thread(upgrade, db_url)
    (plan,) = await plans(platform)
    assert plan.ending is Ending.CANCELLED
    assert (await read(platform, wide)).status is SessionStatus.CANCELLED
    assert await breaches(platform) == []
