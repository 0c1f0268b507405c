"""Sessions that wait for a node that never comes, at JupyterHub's front door."""

import asyncio

import pytest
import pytest_asyncio

from tests.harness import until
from tests.integration.spawner_harness import browser, standing_hub, wait_for_spawns

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def standing():
    async with standing_hub(agent=False) as hub:
        yield hub


@pytest_asyncio.fixture(loop_scope="module")
async def hub(standing):
    await standing.clear()
    wait_for_spawns(standing, 0.2)
    return standing


async def test_a_tab_is_told_why_the_session_waits_and_that_it_was_cancelled(hub):
    await hub.start("alice", "one")
    steps = []
    tab = asyncio.create_task(hub.progress("alice", "one", into=steps))

    def says(word):
        return any(word in step.get("message", "") for step in steps)

    await until(lambda: says("no node"), "the page says that there is no node")
    await hub.stop("alice", "one")
    await tab

    assert steps[-1]["failed"] is True
    assert not any(step.get("ready") for step in steps)


async def test_a_tab_follows_the_place_in_the_queue(hub):
    await hub.start("bob", "two")
    await until(
        lambda: hub.spawner("bob", "two").get_state().get("session_id"),
        "the first session is in the queue",
    )
    await hub.start("alice", "one")
    steps = []
    tab = asyncio.create_task(hub.progress("alice", "one", into=steps))

    def place():
        told = [step["why"] for step in steps if step.get("why")]
        return (told[-1]["position"], told[-1]["waiting"]) if told else None

    await until(lambda: place() == (2, 2), "the page says that one is before it")
    await hub.stop("bob", "two")
    await until(lambda: place() == (1, 1), "the page says that it is the first")
    await hub.stop("alice", "one")
    await tab


async def test_cancelling_while_it_waits_cancels_the_session(hub):
    await hub.start("alice", "one")
    session_id = await until(
        lambda: hub.spawner("alice", "one").get_state().get("session_id"),
        "the session is known",
    )

    status, _ = await hub.stop("alice", "one")

    assert status in {202, 204}
    async with hub.stack.client("alice") as alice:
        ended = await alice.reach(session_id, "CANCELLED")
    assert "alice" in ended["reason"]


async def test_a_session_ended_elsewhere_fails_the_start_with_its_reason(hub):
    await hub.start("alice", "one")
    session_id = await until(
        lambda: hub.spawner("alice", "one").get_state().get("session_id"),
        "the session is known",
    )
    tab = asyncio.create_task(hub.progress("alice", "one"))

    async with hub.stack.client("alice") as alice:
        await alice.send("POST", f"api/sessions/{session_id}/terminate", json={})

    steps = await tab
    assert steps[-1]["failed"] is True
    assert "cancelled by alice" in steps[-1]["message"]
    assert hub.app.tornado_settings["failure_count"] == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cpu": "many"}, "cpu"),
        ({"gpus": 2}, "gpus"),
        ({"slots": {"mem": "-4g"}}, "mem"),
        ({"image": 7}, "image"),
    ],
)
async def test_options_that_cannot_be_read_are_a_400_naming_the_field(
    hub, options, field
):

    status, body = await hub.start("alice", "one", options)

    assert status == 400
    assert body["message"].startswith(field)


async def test_the_waiting_page_cancels_its_own_server(hub):
    await hub.start("alice", "one")
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn-pending/alice/one")

    assert status == 200
    assert 'data-server="one"' in page
    assert 'data-user="alice"' in page
    assert "stop_named_server(page.user, page.server" in page
    await hub.stop("alice", "one")
