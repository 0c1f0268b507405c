"""What goes wrong with real containers ends with a reason people can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import docker
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Person, chromium
from tests.e2e.up import CONVERGE_SECONDS, Platform, running, until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

CONFIG = """
c.HubService.images = [
    {
        "name": "jupyterlab",
        "references": {"docker": "backendai/jupyterlab:4"},
        "minimum": {"cpu": "0.1", "mem": "256m"},
    },
    {
        "name": "ghost",
        "title": "Not there",
        "references": {"docker": "localhost:1/backendai/ghost:1"},
        "minimum": {"cpu": "0.1", "mem": "256m"},
    },
]
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with running("docker", CONFIG) as up:
        yield up


@pytest.fixture
def engine() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


def container_of(engine: Any, session: dict[str, Any]) -> Any:
    label = f"ai.backend.session={session['id']}"
    (found,) = engine.containers.list(filters={"label": label})
    return found


def test_a_container_removed_behind_our_back_frees_its_slots(
    platform: Platform, engine: Any
):
    free = platform.free()
    session = platform.start(slots={"cpu": "0.5"})
    container_of(engine, session).remove(force=True)
    ended = platform.reach(session, "TERMINATED", "ERROR", seconds=CONVERGE_SECONDS)
    assert ended["reason"]
    assert platform.free() == free


def test_a_killed_main_process_is_an_error_with_its_code(
    platform: Platform, engine: Any
):
    free = platform.free()
    session = platform.start(slots={"cpu": "0.5"})
    container_of(engine, session).kill("SIGKILL")
    ended = platform.reach(session, "TERMINATED", "ERROR", seconds=CONVERGE_SECONDS)
    assert (ended["status"], ended["exit_code"]) == ("ERROR", 137)
    assert platform.free() == free


@pytest.mark.parametrize("process", ["agent", "service", "router", "hub"])
def test_a_container_outlives_a_killed_process_of_ours(
    platform: Platform, engine: Any, process: str
):
    session = platform.start(slots={"cpu": "0.5"})
    since = platform.lab(session)["started"]
    container = container_of(engine, session)
    killed = platform.kill(process)
    platform.returned(process, killed)
    until(
        lambda: (platform.lab(session) or {}).get("started") == since,
        lambda: f"the same notebook server answers\n{platform.logs()}",
        CONVERGE_SECONDS,
    )
    assert container_of(engine, session).id == container.id
    platform.terminate(session)
    platform.reach(session, "TERMINATED")


def test_nothing_secret_is_in_the_engines_own_records(platform: Platform, engine: Any):
    session = platform.start(slots={"cpu": "0.5"})
    record = str(container_of(engine, session).attrs)
    assert "JUPYTERHUB_API_TOKEN" not in record
    environ = container_of(engine, session).exec_run("cat /proc/1/environ").output
    assert b"JUPYTERHUB_API_TOKEN" not in environ
    platform.terminate(session)
    platform.reach(session, "TERMINATED")


@pytest.mark.browser
def test_a_missing_image_is_said_on_the_spawn_page_and_by_the_api(platform: Platform):
    free = platform.free()
    with chromium() as browser:
        person = Person(browser, platform.url, "erin")
        person.log_in(platform.add_user("erin"))
        page = person.page
        page.goto(f"{platform.url}hub/spawn")
        page.get_by_text("Not there").click()
        page.locator("form#spawn_form [type=submit]").first.click()
        expect(page.get_by_text("backendai/ghost:1").first).to_be_visible(
            timeout=60_000
        )
        person.look("missing-image")
    failed = platform.get("sessions?owner=erin&status=ERROR")["items"]
    assert len(failed) == 1
    assert "backendai/ghost:1" in failed[0]["reason"]
    assert platform.free() == free
