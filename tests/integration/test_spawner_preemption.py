"""A notebook server that has to make room, seen by JupyterHub."""

import pytest
import pytest_asyncio

from tests.admin import KeyAPI, make_administrator
from tests.integration.spawner_harness import standing_hub, wait_for_spawns

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hub():
    async with standing_hub() as hub:
        wait_for_spawns(hub, 0.2)
        yield hub


async def opt_in(api: KeyAPI) -> None:
    group = await api.get("api/resource-groups/default")
    options = group["scheduler_opts"]
    rules = {"enabled": True, "mode": "reschedule", "victim_scope": "resource-group"}
    options["preemption"] = {**options["preemption"], **rules}
    await api.change("resource-groups/default", scheduler_opts=options)
    await api.change("keypair-policies/default", max_job_priority=None)


async def test_it_is_attached_again_as_itself_when_it_starts_again(hub):
    key = await make_administrator(hub.stack)
    async with KeyAPI(hub.stack.url, key.name, key.secret) as root:
        await opt_in(root)
        (node,) = (await root.get("api/agents"))["items"]
        everything = {"cpu": node["capacity"]["cpu"]}
        await hub.start("alice", "one", everything)
        spawner = await hub.until_ready("alice", "one")
        session = spawner.get_state()["session_id"]
        token = spawner.api_token

        status, urgent = await root.create(
            type="batch", startup_command="sleep 600", job_priority=1, slots=everything
        )
        assert status == 201, urgent
        await root.reach(urgent["id"], "RUNNING")
        waiting = await root.get(f"api/sessions/{session}")
        assert (waiting["status"], waiting["preemptions"]) == ("PENDING", 1)
        # JupyterHub lets go of a server that does not run, and the session stays.
        assert await spawner.poll_and_notify() == 0
        assert (await root.get(f"api/sessions/{session}"))["status"] == "PENDING"
        status, _ = await hub.start("alice", "one", everything)
        assert status == 202

        await root.send("POST", f"api/sessions/{urgent['id']}/terminate", json={})
        spawner = await hub.until_ready("alice", "one")
        assert spawner.get_state()["session_id"] == session
        assert spawner.api_token == token
        again = await root.get(f"api/sessions/{session}")
        assert (again["status"], again["attempts"]) == ("RUNNING", 1)
        await hub.stop("alice", "one")
        await root.reach(session, "TERMINATED")
