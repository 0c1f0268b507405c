"""From a login to a running notebook and back, in a real browser.

Once with containers of Docker and once with sandboxed processes; a second person
works beside the first and can see nothing of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform, running, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("process", marks=pytest.mark.bwrap),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    with running(request.param) as up:
        yield up


@pytest.fixture(autouse=True)
def everything_ended(platform: Platform) -> Iterator[None]:
    """Leave nothing running, so that no story needs another one's good end."""
    yield
    for session in platform.get("sessions?status=live&owner=*")["items"]:
        platform.terminate(session)
        platform.reach(session, "TERMINATED", "CANCELLED", "ERROR")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


SPY = """
import os, pathlib, socket, glob
def readable(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ''
seen = [p for p in glob.glob('/proc/[0-9]*/cmdline') if 'ALICE-MARK' in readable(p)]
seen += [p for p in glob.glob('/home/**/alice-secret*', recursive=True)]
seen += [p for p in glob.glob('/tmp/alice-secret*')]
seen += [p for p in glob.glob('/proc/[0-9]*/root/home/work/alice-secret*')]
def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
        return True
    except OSError:
        return False
seen += [h for h in HOSTS if listens(h, 18765)]
print('SEEN', seen, 'END')
"""


def test_two_people_work_side_by_side_and_give_everything_back(
    platform: Platform, browser: Browser
):
    free = platform.free()
    alice = Person(browser, platform.url, "admin")
    alice.log_in(platform.told["password"])
    alice.launch("first")
    alice.run_cell("print(6 * 7, 'printed')", "42 printed")
    # Something of hers to be found: a file, a process, and an open port.
    printed = alice.type_in_terminal(
        "echo $((40 + 2))-from-a-shell; echo mine > ~/alice-secret;"
        " cp ~/alice-secret /tmp/;"
        " (exec -a ALICE-MARK python3 -m http.server 18765 >/dev/null 2>&1 &)"
    )
    assert printed.strip() == "42-from-a-shell"

    bob = Person(browser, platform.url, "bob")
    bob.log_in(platform.add_user("bob"))
    bob.launch("second")
    hosts = ["127.0.0.1", *addresses(platform)]
    code = SPY.replace("HOSTS", repr(hosts)).strip().replace("\n", "\\n")
    bob.run_cell(f'exec("""{code}""")', "SEEN [] END")

    mine = platform.get("sessions?status=live")["items"][0]
    page = alice.open_console()
    row = page.get_by_role("row").filter(has_text="first")
    expect(row).to_contain_text("Running")
    expect(page.get_by_text("second")).to_have_count(0)
    alice.look("console")
    row.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    # The row may stay until the next look at the list, but it says that it ended.
    expect(row.filter(has_text="Running")).to_have_count(0)

    platform.reach(mine, "TERMINATED")
    others = platform.get("sessions?status=live&owner=*")["items"]
    assert [s["owner"] for s in others] == ["bob"]
    platform.terminate(others[0])
    platform.reach(others[0], "TERMINATED")
    assert platform.free() == free
    until(lambda: hub_servers(platform) == {}, "JupyterHub has no servers left", 20)
    assert alice.errors == bob.errors == []


def addresses(platform: Platform) -> list[str]:
    """The addresses of this platform's containers, as their own engine tells them.

    Not of others on the machine: these may be gone before anybody asks them.
    """
    if platform.runtime != "docker":
        return []
    (node,) = platform.get("agents")["items"]
    client = docker.from_env()
    try:
        found = []
        own = {"label": f"ai.backend.agent={node['id']}"}
        for container in client.containers.list(filters=own):
            networks = container.attrs["NetworkSettings"]["Networks"].values()
            found += [n["IPAddress"] for n in networks if n["IPAddress"]]
        assert found, "a session of this platform runs"
        return found
    finally:
        client.close()


def hub_servers(platform: Platform) -> dict[str, object]:
    answer = platform.web.get(f"{platform.url}hub/api/users", timeout=60)
    return {
        f"{user['name']}/{name}": server
        for user in answer.json()
        for name, server in user["servers"].items()
        if server["ready"] or server["pending"]
    }


def test_a_session_that_cannot_start_says_why_on_the_page(
    platform: Platform, browser: Browser
):
    person = Person(browser, platform.url, "carol")
    person.log_in(platform.add_user("carol"))
    page = person.page
    page.goto(f"{platform.url}hub/spawn")
    page.get_by_label("CPU", exact=True).fill("4096")
    expect(page.get_by_text("No node could ever run this")).to_be_visible()
    person.look("never")
    # Who gets past the page is refused by the service, with its own words.
    answer = platform.web.post(
        f"{platform.api}sessions",
        json={"image": "jupyterlab", "slots": {"cpu": 4096}},
        timeout=60,
    )
    assert answer.status_code == 422
    assert "the largest node has" in answer.json()["detail"]


def test_a_waiting_session_says_why_and_can_be_cancelled(
    platform: Platform, browser: Browser
):
    total = next(
        r["total"] for r in platform.get("resources")["room"] if r["slot"] == "cpu"
    )
    hog = platform.start(name="hog", slots={"cpu": total, "mem": "512m"})
    person = Person(browser, platform.url, "dave")
    person.log_in(platform.add_user("dave"))
    page = person.page
    page.goto(f"{platform.url}hub/spawn")
    expect(page.get_by_text("Will wait")).to_be_visible()
    page.locator("form#spawn_form [type=submit]").first.click()
    expect(page.locator("#backendai-why")).to_contain_text("0 free on")
    person.look("waiting")
    page.get_by_role("button", name="Cancel").click()
    until(
        lambda: platform.get("sessions?owner=dave&status=CANCELLED")["items"],
        "the session is cancelled",
        30,
    )
    platform.terminate(hog)
    platform.reach(hog, "TERMINATED")
