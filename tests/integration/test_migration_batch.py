"""A site with batch sessions goes down to the schema without them, and up again."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from backendai_hub.api.agents import LogParcel
from backendai_hub.core.sessions import SessionResult, SessionStatus
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import downgrade, upgrade
from backendai_hub.operations.logs import accept_log
from backendai_hub.operations.platform import Platform
from tests.factories import add_node
from tests.jobs import State, ask, begin, containers_of, end, tell
from tests.tenants import breaches, read


async def test_sessions_stay_when_what_is_only_for_jobs_goes(
    platform: Platform, database: Database, db_url: str
):
    node = await add_node(platform)
    done = await begin(platform, name="done", tag="x", max_attempts=3)
    (container,) = await containers_of(platform, done)
    await accept_log(platform, node.id, LogParcel(container=container, content=b"hi"))
    await end(platform, node, done)
    again = await begin(platform, name="again", max_attempts=2)
    await tell(platform, node, again, State.EXITED, reason="no")
    waiting = await ask(platform, name="waiting", dependencies=["again"])
    assert (await read(platform, again)).status is SessionStatus.RESCHEDULING
    await database.close()

    await asyncio.to_thread(downgrade, db_url, "0002")
    async with database.engine.connect() as connection:
        rows = await connection.execute(text("SELECT name, status FROM sessions"))
        found = {row.name: row.status for row in rows}
    assert found == {
        "done": "TERMINATED",
        "again": "TERMINATING",
        "waiting": "CANCELLED",
    }
    await database.close()
    await asyncio.to_thread(upgrade, db_url)

    shown = await read(platform, done)
    assert (shown.result, shown.max_attempts) == (SessionResult.UNDEFINED, 1)
    assert (shown.tag, shown.starts_at, shown.dependencies) == (None, None, [])
    assert (shown.is_preemptible, shown.job_priority) == (True, 0)
    assert await breaches(platform) == []
    await node.report([])
    assert (await read(platform, again)).status is SessionStatus.TERMINATED
    shown = await read(platform, waiting)
    assert shown.reason == "batch sessions need a newer version of the platform"
    assert shown.ended_at is not None
