"""The spawn page asks the Hub what would become of a choice."""

import pytest
import pytest_asyncio

from tests.integration.spawner_harness import standing_hub

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hub():
    async with standing_hub() as hub:
        yield hub


async def ask(hub, user, choice, asker="alice"):
    path = f"../backendai/users/{user}/dry-run"
    return await hub.api("POST", path, user=asker, json=choice)


async def test_a_choice_is_tried_out_and_begins_nothing(hub):
    hub.user("alice")
    status, told = await ask(hub, "alice", {"image": "jupyterlab", "cpu": "0.5"})
    assert (status, told["starts_now"], told["nodes"]) == (200, True, [])
    status, told = await ask(hub, "alice", {"image": "nothing", "cpu": "999"})
    assert status == 200
    assert "there is no environment 'nothing'" in told["refused"][0]["text"]
    crowd = {"image": "jupyterlab", "cpu": "0.5", "cluster_size": 501}
    status, told = await ask(hub, "alice", crowd)
    assert any("cluster_size" in each["text"] for each in told["refused"])
    async with hub.stack.client("alice") as alice:
        assert (await alice.get("api/sessions"))["items"] == []


async def test_what_cannot_be_read_is_refused(hub):
    hub.user("alice")
    status, told = await ask(hub, "alice", {"speed": "high"})
    assert status == 422
    assert "speed: there is no such option" in told["message"]
    status, told = await ask(hub, "alice", 5)
    assert (status, told["message"]) == (400, "send what is chosen as a JSON object")


async def test_nobody_asks_for_others(hub):
    hub.user("alice")
    hub.user("bob")
    status, _ = await ask(hub, "bob", {"image": "jupyterlab"})
    assert status in {403, 404}
