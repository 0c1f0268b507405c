"""Sessions that wait until there is a first node, at JupyterHub's front door."""

import asyncio

import pytest

from tests.harness import until
from tests.integration.spawner_harness import standing_hub, wait_for_spawns


@pytest.fixture
async def hub():
    async with standing_hub(agent=False) as started:
        wait_for_spawns(started, 0.2)
        yield started


async def test_two_tabs_see_a_queued_session_through_to_its_end(hub):
    await hub.start("alice", "one")
    tabs = [
        asyncio.create_task(hub.progress("alice", "one")),
        asyncio.create_task(hub.progress("alice", "one")),
    ]
    async with hub.stack.client("alice") as alice:
        await until(
            lambda: hub.spawner("alice", "one").get_state(), "the session is known"
        )
        waiting = hub.spawner("alice", "one").get_state()["session_id"]
        await alice.reach(waiting, "PENDING")
        assert hub.spawner("alice", "one").pending == "spawn"
        assert await hub.spawner("alice", "one").poll() == 0

        await hub.stack.start_agent()
        await hub.until_ready("alice", "one")

    for steps in await asyncio.gather(*tabs):
        assert steps[-1]["ready"] is True
        phases = [step["phase"] for step in steps if "phase" in step]
        assert "PENDING" in phases
        assert phases[-1] == "RUNNING"
        bars = [step["progress"] for step in steps if "progress" in step]
        assert bars == sorted(bars)


async def test_a_restarted_hub_leaves_a_queued_session_in_the_queue(hub):
    await hub.start("alice", "one")
    spawner = hub.spawner("alice", "one")
    session_id = await until(
        lambda: spawner.get_state().get("session_id"), "the session is known"
    )
    born = spawner.api_token

    await hub.restart()

    async with hub.stack.client("alice") as alice:
        await alice.reach(session_id, "PENDING")
        await hub.stack.start_agent()
        await alice.reach(session_id, "RUNNING")
        await hub.start("alice", "one")
        attached = await hub.until_ready("alice", "one")
        assert attached.get_state()["session_id"] == session_id
        assert attached.api_token == born
        assert len((await alice.get("api/sessions?status=live"))["items"]) == 1
    status, me = await hub.api("GET", "user", user="alice")
    assert status == 200
    assert me["name"] == "alice"
    assert await whose_token(hub, born) == "alice"


async def whose_token(hub, token):
    headers = {"Authorization": f"token {token}"}
    async with hub.http.get(f"{hub.url}api/user", headers=headers) as response:
        return (await response.json())["name"]


@pytest.mark.parametrize("state", ["cut", "503"])
async def test_an_outage_during_the_start_only_delays_it(hub, state):
    line = hub.line
    await hub.start("alice", "one")
    session_id = await until(
        lambda: hub.spawner("alice", "one").get_state().get("session_id"),
        "the session is known",
    )

    line.cut(state)
    await until(lambda: line.refused >= 2, "the spawner has tried again")
    await hub.stack.start_agent()
    line.mend()

    spawner = await hub.until_ready("alice", "one")
    assert spawner.get_state()["session_id"] == session_id
