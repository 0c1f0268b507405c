"""Sessions through JupyterHub's front door: queue, refusal, cancel, restart."""

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest

from tests.harness import running_stack, until
from tests.integration.spawner_harness import (
    Hub,
    Line,
    browser,
    configure,
    serving_gateway,
)


@pytest.fixture
async def start_hub(hub_app, tmp_path, monkeypatch):
    """Start a JupyterHub, with a service that has a node or has none yet."""
    monkeypatch.chdir(tmp_path)
    async with AsyncExitStack() as world:

        async def start(*, agent=True, line=False, patience=0.2):
            stack = await world.enter_async_context(
                running_stack(tmp_path / "data", agent=agent)
            )
            await world.enter_async_context(serving_gateway(stack.gateway_port))
            cable = await world.enter_async_context(Line(stack.port)) if line else None
            http = await world.enter_async_context(aiohttp.ClientSession())
            config = configure(stack, service_port=cable.port if cable else None)
            app = await hub_app(config=config)
            # How long the Hub waits for a spawn before it answers 202.
            app.tornado_settings["slow_spawn_timeout"] = patience
            hub = Hub(app, stack, http)
            world.push_async_callback(hub.forget)
            return (hub, cable) if line else hub

        yield start


async def test_a_session_starts_with_nothing_chosen(start_hub):
    hub = await start_hub()

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


async def test_what_is_chosen_is_what_is_asked_for(start_hub):
    hub = await start_hub()

    options = {"image": "jupyterlab", "name": "mine", "cpu": "0.5", "shmem": "32m"}
    await hub.start("alice", "one", options)
    await hub.until_ready("alice", "one")

    async with hub.stack.client("alice") as alice:
        session = (await alice.get("api/spawned?server=one"))["session"]
    assert session["name"] == "mine"
    assert session["slots"]["cpu"] == "0.5"
    assert session["shmem"] == "32m"


async def test_stopping_the_server_ends_the_session(start_hub):
    hub = await start_hub()
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    status, _ = await hub.stop("alice", "one")

    assert status in {202, 204}
    async with hub.stack.client("alice") as alice:
        ended = await alice.get(f"api/sessions/{session_id}")
    assert ended["status"] == "TERMINATED"
    assert "/user/alice/one/" not in hub.app.proxy.routes


async def test_two_tabs_see_a_queued_session_through_to_its_end(start_hub):
    hub = await start_hub(agent=False)
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


async def test_a_tab_is_told_why_the_session_waits_and_that_it_was_cancelled(start_hub):
    hub = await start_hub(agent=False)
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


async def test_cancelling_while_it_waits_cancels_the_session(start_hub):
    hub = await start_hub(agent=False)
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


async def test_a_session_ended_elsewhere_fails_the_start_with_its_reason(start_hub):
    hub = await start_hub(agent=False)
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
    start_hub, options, field
):
    hub = await start_hub(agent=False)

    status, body = await hub.start("alice", "one", options)

    assert status == 400
    assert body["message"].startswith(field)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image": "windows"}, "there is no environment 'windows'"),
        ({"cpu": "1000"}, "could ever run this"),
        ({"mem": "1m"}, "at least"),
    ],
)
async def test_what_the_service_refuses_is_told_in_its_words(start_hub, options, words):
    hub = await start_hub(patience=20)

    status, body = await hub.start("alice", "one", options)

    assert status == 422
    assert words in body["message"]
    assert hub.app.tornado_settings["failure_count"] == 0


async def test_a_restarted_hub_finds_a_running_session_attached(start_hub):
    hub = await start_hub()
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


async def test_a_restarted_hub_leaves_a_queued_session_in_the_queue(start_hub):
    hub = await start_hub(agent=False)
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


async def test_a_hub_that_starts_while_the_service_is_down_ends_nothing(start_hub):
    hub, line = await start_hub(line=True)
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
    start_hub, monkeypatch
):
    hub = await start_hub()
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


@pytest.mark.parametrize("state", ["cut", "503"])
async def test_an_outage_during_the_start_only_delays_it(start_hub, state):
    hub, line = await start_hub(agent=False, line=True)
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


async def test_an_outage_before_the_request_only_delays_it(start_hub):
    hub, line = await start_hub(line=True)
    line.cut("503")
    await hub.start("alice", "one")
    await until(lambda: line.refused >= 2, "the spawner has tried again")
    assert hub.spawner("alice", "one").pending == "spawn"

    line.mend()

    await hub.until_ready("alice", "one")


async def test_an_ended_session_is_not_repeated_by_its_key(start_hub):
    hub = await start_hub()
    await hub.start("alice", "one", {"cpu": "0.5"})
    first = (await hub.until_ready("alice", "one")).get_state()["session_id"]
    await hub.stop("alice", "one")

    await hub.start("alice", "one")

    second = await hub.until_ready("alice", "one")
    assert second.get_state()["session_id"] != first
    async with hub.stack.client("alice") as alice:
        session = (await alice.get("api/spawned?server=one"))["session"]
    assert session["slots"]["cpu"] == "0.5"


async def test_a_session_asked_for_by_api_gets_what_only_the_hub_can_give(start_hub):
    hub = await start_hub()
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


async def test_somebody_elses_key_leads_nowhere(start_hub):
    hub = await start_hub()
    await hub.start("alice", "one")
    theirs = await hub.until_ready("alice", "one")
    key = theirs.orm_spawner.user_options["session_key"]

    await hub.start("bob", "one", {"session_key": key})

    mine = await hub.until_ready("bob", "one")
    assert mine.get_state() != theirs.get_state()
    assert mine.api_token != theirs.api_token


async def test_a_session_that_ends_by_itself_takes_its_server_along(start_hub):
    hub = await start_hub()
    await hub.start("alice", "one")
    spawner = await hub.until_ready("alice", "one")
    session_id = spawner.get_state()["session_id"]

    async with hub.stack.client("alice") as alice:
        await alice.send("POST", f"api/sessions/{session_id}/terminate", json={})
        await alice.reach(session_id, "TERMINATED")

    assert await spawner.poll_and_notify() is not None
    assert not hub.app.proxy.routes.keys() & {"/user/alice/one/"}


async def test_the_form_is_shown_and_its_plain_fields_start_a_session(start_hub):
    hub = await start_hub()
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn/alice/one")
        assert status == 200
        assert 'id="backendai-spawn"' in page
        assert 'src="/services/backendai/static/console/spawn.js"' in page
        assert '<select class="form-select" id="backendai-image" name="image">' in page

        status, _ = await tab.send("spawn/alice/one", image="jupyterlab", cpu="0.5")

    assert status == 200
    spawner = await hub.until_ready("alice", "one")
    assert spawner.user_options["slots"] == {"cpu": "0.5"}


async def test_the_form_says_what_was_wrong_with_it(start_hub):
    hub = await start_hub(patience=20)
    async with browser(hub, "alice") as tab:
        status, page = await tab.send("spawn/alice/one", spec='{"cpu": "many"}')
        assert status == 400
        assert "cpu: &#39;many&#39; is not an amount" in page

        status, page = await tab.send("spawn/alice/one", image="windows")
        assert status == 422
        assert "there is no environment" in page
        assert 'id="backendai-spawn"' in page


async def test_the_waiting_page_cancels_its_own_server(start_hub):
    hub = await start_hub(agent=False)
    await hub.start("alice", "one")
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn-pending/alice/one")

    assert status == 200
    assert 'data-server="one"' in page
    assert 'data-user="alice"' in page
    assert "stop_named_server(page.user, page.server" in page
    await hub.stop("alice", "one")


async def test_the_failed_page_tells_why(start_hub):
    hub = await start_hub(patience=20)
    await hub.start("alice", "one", {"image": "windows"})
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn-pending/alice/one")

    assert status == 422
    assert "there is no environment" in page


async def test_without_the_service_the_form_says_so(start_hub):
    hub, line = await start_hub(line=True)
    line.cut("503")
    async with browser(hub, "alice") as tab:
        status, page = await tab.get("spawn/alice/one")

    assert status == 200
    assert "does not answer at the moment" in page
