"""Sessions through JupyterHub's front door: start, refusal, stop, restart."""

import pytest
import pytest_asyncio

from tests.harness import until
from tests.integration.spawner_harness import browser, standing_hub, wait_for_spawns

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def standing():
    async with standing_hub() as hub:
        yield hub


@pytest_asyncio.fixture(loop_scope="module")
async def hub(standing):
    await standing.clear()
    wait_for_spawns(standing, 0.2)
    return standing


async def test_a_session_starts_with_nothing_chosen(hub):
    status, _ = await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")

    assert status in {201, 202}
    assert await spawner.poll() is None
    assert hub.app.proxy.routes["/user/alice/one/"]["target"] == hub.stack.gateway_url
    async with hub.stack.client("alice") as alice:
        attached = await alice.get("api/spawned?server=one")
    assert attached["session"]["status"] == "RUNNING"
    assert attached["session"]["image"] == "jupyterlab"
    assert attached["session"]["attachment"]["prefix"] == "/user/alice/one/"
    assert attached["token"] == spawner.api_token


async def test_what_is_chosen_is_what_is_asked_for(hub):
    options = {"image": "jupyterlab", "name": "mine", "cpu": "0.5", "shmem": "32m"}
    await hub.start("alice", "one", options)
    await hub.until_ready("alice", "one")

    async with hub.stack.client("alice") as alice:
        session = (await alice.get("api/spawned?server=one"))["session"]
    assert session["name"] == "mine"
    assert session["slots"]["cpu"] == "0.5"
    assert session["shmem"] == "32m"


async def test_stopping_the_server_ends_the_session(hub):
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    status, _ = await hub.stop("alice", "one")

    assert status in {202, 204}
    async with hub.stack.client("alice") as alice:
        ended = await alice.get(f"api/sessions/{session_id}")
    assert ended["status"] == "TERMINATED"
    assert "/user/alice/one/" not in hub.app.proxy.routes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image": "windows"}, "there is no environment 'windows'"),
        ({"cpu": "1000"}, "could ever run this"),
        ({"mem": "1m"}, "at least"),
    ],
)
async def test_what_the_service_refuses_is_told_in_its_words(hub, options, words):
    wait_for_spawns(hub, 60)

    status, body = await hub.start("alice", "one", options)

    assert status == 422
    assert words in body["message"]
    assert hub.app.tornado_settings["failure_count"] == 0


async def test_a_restarted_hub_finds_a_running_session_attached(hub):
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    await hub.restart()

    again = hub.spawner("alice", "one")
    assert again is not spawner
    assert again.ready
    assert again.get_state()["session_id"] == session_id
    assert await again.get_url() == f"{hub.stack.gateway_url}/user/alice/one/"
    async with hub.stack.client("alice") as alice:
        await alice.reach(session_id, "RUNNING")


async def test_a_hub_that_starts_while_the_service_is_down_ends_nothing(hub):
    line = hub.line
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    line.cut()
    await hub.restart()
    still = hub.spawner("alice", "one")
    assert still.ready
    assert await still.poll() is None
    line.mend()

    assert await still.poll() is None
    async with hub.stack.client("alice") as alice:
        await alice.reach(session_id, "RUNNING")


async def test_an_unreachable_session_is_left_running_for_a_later_attach(
    hub, monkeypatch
):
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]
    monkeypatch.setitem(hub.app.config.BackendAISpawner, "http_timeout", 1)
    monkeypatch.setitem(
        hub.app.config.BackendAISpawner,
        "gateway_url",
        "http://127.0.0.1:9",
    )

    await hub.restart()

    assert not hub.spawner("alice", "one").ready
    async with hub.stack.client("alice") as alice:
        await alice.reach(session_id, "RUNNING")
    monkeypatch.undo()
    hub.app.users.clear()
    await hub.start("alice", "one")
    again = await hub.until_ready("alice", "one")
    assert again.get_state()["session_id"] == session_id


async def test_an_outage_before_the_request_only_delays_it(hub):
    line = hub.line
    line.cut("503")
    await hub.start("alice", "one")
    await until(lambda: line.refused >= 2, "the spawner has tried again")
    assert hub.spawner("alice", "one").pending == "spawn"

    line.mend()

    await hub.until_ready("alice", "one")


async def test_an_ended_session_is_not_repeated_by_its_key(hub):
    await hub.start("alice", "one", {"cpu": "0.5"})
    first = (await hub.until_ready("alice", "one")).get_state()["session_id"]
    await hub.stop("alice", "one")

    await hub.start("alice", "one")

    second = await hub.until_ready("alice", "one")
    assert second.get_state()["session_id"] != first
    async with hub.stack.client("alice") as alice:
        session = (await alice.get("api/spawned?server=one"))["session"]
    assert session["slots"]["cpu"] == "0.5"


async def test_a_session_asked_for_by_api_gets_what_only_the_hub_can_give(hub):
    async with hub.stack.client("alice") as alice:
        status, asked = await alice.create(slots={"cpu": "0.2"}, name="by-api")
        assert status == 201
        server = asked["attachment"]["server"]

        options = {"image": "jupyterlab", "name": "by-api", "session_key": asked["id"]}
        await hub.start("alice", server, options)
        spawner = await hub.until_ready("alice", server)

        found = await alice.get(f"api/spawned?server={server}")
    assert found["session"]["id"] == asked["id"]
    assert found["token"] == spawner.api_token


async def test_somebody_elses_key_leads_nowhere(hub):
    await hub.start("alice", "one")
    theirs = await hub.until_ready("alice", "one")
    key = theirs.orm_spawner.user_options["session_key"]

    await hub.start("bob", "one", {"session_key": key})

    mine = await hub.until_ready("bob", "one")
    assert mine.get_state() != theirs.get_state()
    assert mine.api_token != theirs.api_token


async def test_a_session_that_ends_by_itself_takes_its_server_along(hub):
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    async with hub.stack.client("alice") as alice:
        await alice.send("POST", f"api/sessions/{session_id}/terminate", json={})
        await alice.reach(session_id, "TERMINATED")

    assert await spawner.poll_and_notify() is not None
    assert not hub.app.proxy.routes.keys() & {"/user/alice/one/"}


async def test_the_form_is_shown_and_its_plain_fields_start_a_session(hub):
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn/alice/one")
        assert status == 200
        assert 'id="backendai-spawn"' in page
        assert 'src="/hub/backendai/static/spawn.js"' in page
        assert '<select class="form-select" id="backendai-image" name="image">' in page

        status, _ = await tab.send("spawn/alice/one", image="jupyterlab", cpu="0.5")

    assert status == 200
    spawner = await hub.until_ready("alice", "one")
    assert spawner.user_options["slots"] == {"cpu": "0.5"}


async def test_the_form_says_what_was_wrong_with_it(hub):
    wait_for_spawns(hub, 60)
    async with browser(hub, "alice") as tab:
        status, page = await tab.send("spawn/alice/one", spec='{"cpu": "many"}')
        assert status == 400
        assert "cpu: &#39;many&#39; is not an amount" in page

        status, page = await tab.send("spawn/alice/one", image="windows")
        assert status == 422
        assert "there is no environment" in page
        assert 'id="backendai-spawn"' in page


async def test_the_failed_page_tells_why(hub):
    wait_for_spawns(hub, 60)
    await hub.start("alice", "one", {"image": "windows"})
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn-pending/alice/one")

    assert status == 422
    assert "there is no environment" in page


async def test_without_the_service_the_form_says_so(hub):
    line = hub.line
    line.cut("503")
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn/alice/one")

    assert status == 200
    assert "does not answer at the moment" in page
