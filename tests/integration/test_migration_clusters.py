"""A site with clusters goes down to the schema without them, and up again."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from backendai_hub.core.clusters import ClusterMode
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db import containers
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, upgrade
from backendai_hub.operations.platform import Platform
from tests.crews import Crew, State
from tests.factories import add_node, schedule, seen, submit
from tests.jobs import ask
from tests.tenants import Office, breaches, read

MULTI = ClusterMode.MULTI_NODE


async def test_clusters_end_and_all_else_stays(
    platform: Platform, database: Database, db_url: str
):
    await Office(platform).limit_user("alice", max_containers_per_session=0)
    nodes = [await add_node(platform, f"node-{n}") for n in (1, 2)]
    one = (await submit(platform, slots={"cpu": "1"})).session
    wide = await ask(
        platform, cluster_size=2, cluster_mode=MULTI, slots={"cpu": "3"}, name="wide"
    )
    assert await schedule(platform) == 2
    waiting = await ask(
        platform, cluster_size=2, cluster_mode=MULTI, slots={"cpu": "3"}, name="waiting"
    )
    single, crew = Crew(platform, nodes, one), Crew(platform, nodes, wide)
    await crew.all_are(State.RUNNING)
    await single.all_are(State.RUNNING)
    await database.close()

    await asyncio.to_thread(downgrade, db_url, "0007")
    async with database.engine.connect() as connection:
        listed = await connection.execute(text("SELECT name, status FROM sessions"))
        found = {row.name: row.status for row in listed}
    assert found == {one.name: "RUNNING", "wide": "TERMINATING", "waiting": "CANCELLED"}
    await database.close()
    await asyncio.to_thread(upgrade, db_url)

    shown = await read(platform, one)
    assert (shown.status, shown.cluster_size) == (SessionStatus.RUNNING, 1)
    (main,) = (await single.members()).values()
    assert (main.host, main.role, main.state) == ("main1", "main", "running")
    for session in (wide, waiting):
        words = "sessions of several containers need a newer version of the platform"
        assert (await read(platform, session)).reason == words
    # Of the containers, all were asked to go; what the nodes say ends the session.
    members = {m.id: m for m in await _containers(platform, wide.id)}
    assert {m.desired for m in members.values()} == {"absent"}
    for node in nodes:
        here = [m.id for m in members.values() if m.agent_id == node.id]
        assert len(here) == 1
        keep = [main.id] if main.agent_id == node.id else []
        await node.report(
            [seen(i, State.GONE) for i in here] + [seen(i, State.RUNNING) for i in keep]
        )
    assert (await read(platform, wide)).status is SessionStatus.TERMINATED
    assert (await read(platform, one)).status is SessionStatus.RUNNING
    assert not await breaches(platform)


async def _containers(platform: Platform, session_id: str) -> list[ContainerRecord]:
    async with platform.database.read() as connection:
        return await containers.list_members(connection, session_id)
