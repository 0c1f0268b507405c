"""Somebody keeps a file in a folder: written in one session, read in the next."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.browser import SLOW, Person, chromium
from tests.e2e.up import Platform, running, until

pytestmark = [pytest.mark.browser, pytest.mark.bwrap, pytest.mark.timeout(600)]


def make_folder(platform: Platform, name: str) -> None:
    answer = platform.web.post(
        f"{platform.api}folders", json={"name": name}, timeout=60
    )
    assert answer.ok, answer.text


def choose_amounts(person: Person, link: str = "") -> None:
    page = person.page

    def is_there() -> bool:
        page.goto(f"{person.url}hub/spawn{link}")
        return page.locator("form#spawn_form").count() == 1

    # From elsewhere: who is there already only moves within the page.
    page.goto("about:blank")
    # JupyterHub leads elsewhere until it has noticed that a session has ended.
    until(is_there, "the spawn page is there")
    page.get_by_label("CPU", exact=True).fill("0.5")
    page.get_by_label("Memory", exact=True).fill("0.5")


def start(person: Person) -> None:
    page = person.page
    page.locator("form#spawn_form [type=submit]").first.click()
    page.wait_for_url("**/lab**")
    expect(page.locator(".jp-Launcher")).to_be_visible(timeout=SLOW)


def end(platform: Platform) -> None:
    (session,) = platform.get("sessions?status=live")["items"]
    platform.terminate(session)
    platform.reach(session, "TERMINATED")


def chosen(person: Person) -> Locator:
    return person.page.get_by_role("list", name="Folders of this session")


def test_a_file_outlives_its_session_and_is_read_only_where_that_was_chosen() -> None:
    with running("process") as platform, chromium() as browser:
        for name in (".cache", "data", "sets"):
            make_folder(platform, name)
        person = Person(browser, platform.url, "admin")
        person.log_in(platform.told["password"])
        page = person.page

        choose_amounts(person, "#mounts=sets:ro")
        expect(chosen(person).get_by_role("group", name="sets")).to_be_visible()
        chosen(person).get_by_role("button", name="Leave out sets").click()
        page.get_by_label("Find a folder").fill("dat")
        expect(page.get_by_text("Folders found: 1")).to_be_visible()
        page.get_by_role("checkbox", name="data").press("Space")
        expect(page.get_by_text("It will be at /home/work/data")).to_be_visible()
        always = page.get_by_role("list", name="Always there:")
        expect(always).to_contain_text("/home/work/.cache")
        expect(page.get_by_text("Starts now")).to_be_visible()
        person.look("folders")
        start(person)
        printed = person.type_in_terminal("echo kept > ~/data/note && cat ~/data/note")
        assert "kept" in printed
        end(platform)

        # What was chosen the last time is there again; what cannot be is said at once.
        choose_amounts(person)
        where = chosen(person).get_by_label("Appears at")
        where.fill(".ssh")
        expect(page.get_by_text("Would be refused")).to_be_visible()
        person.look("folders-refused")
        where.fill("in/data")
        chosen(person).get_by_role("switch", name="Read only").check()
        expect(page.get_by_text("It will be at /home/work/in/data")).to_be_visible()
        expect(page.get_by_text("Starts now")).to_be_visible()
        page.set_viewport_size({"width": 360, "height": 800})
        person.look("folders-narrow")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.set_viewport_size({"width": 1280, "height": 860})
        start(person)
        printed = person.type_in_terminal("cat ~/in/data/note; touch ~/in/data/more")
        assert "kept" in printed
        assert "Read-only file system" in printed

        (session,) = platform.get("sessions?status=live")["items"]
        page.goto(f"{platform.url}services/backendai/sessions/{session['id']}")
        folders = page.get_by_role("region", name="Folders")
        expect(folders.get_by_role("row", name="data")).to_contain_text("read only")
        expect(folders).to_contain_text("/home/work/in/data")
        person.look("folders-of-session")
        assert person.errors == []
