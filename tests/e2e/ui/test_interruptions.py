"""What stands on the pages while tabs, services and networks come and go."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.browser import SLOW, Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def make_job(person: Person, name: str) -> str:
    """Ask for a session that waits for years; return its id."""
    body = {
        "name": name,
        "type": "batch",
        "image": "jupyterlab",
        "startup_command": "true",
        "starts_at": "2099-01-01T00:00:00Z",
    }
    return str(ask(person, "POST", "sessions", body)["id"])


def find(page: Page, name: str) -> Locator:
    """Find a session's row."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name))


def test_two_tabs_of_one_person_stay_in_step(make_person: MakePerson):
    mina = make_person("mina")
    mina.open("sessions?status=all")
    other = mina.context.new_page()
    mina.listen(other)
    other.goto(mina.page.url)
    for page in (mina.page, other):
        expect(page.get_by_text("Live", exact=True)).to_be_visible()

    job = make_job(mina, "one-of-two")
    for page in (mina.page, other):
        expect(find(page, "one-of-two")).to_contain_text("Waiting")

    # Stopped on its own page in one tab, gone from the list in the other.
    other.goto(f"{mina.url}services/backendai/sessions/{job}")
    expect(other.get_by_role("heading", name="one-of-two", level=1)).to_be_visible()
    stop = other.get_by_role("button", name="Stop one-of-two")
    stop.click()
    other.get_by_role("dialog").get_by_role("button", name="Stop session").click()
    expect(find(mina.page, "one-of-two")).to_contain_text("Cancelled")
    expect(stop).to_have_count(0)

    # A folder made in one is in the other.
    mina.open("data")
    other.goto(f"{mina.url}services/backendai/data")
    expect(other.locator("main h1")).to_be_visible()
    ask(mina, "POST", "folders", {"name": "of-both"})
    for page in (mina.page, other):
        expect(page.get_by_role("link", name="of-both", exact=True)).to_be_visible()


def test_a_page_comes_though_the_network_changes_while_it_loads(
    make_person: MakePerson,
):
    mina = make_person("mina")
    page = mina.open("data")
    lost: set[str] = set()

    def lose_once(route: Route) -> None:
        if route.request.url in lost:
            route.continue_()
        else:
            lost.add(route.request.url)
            route.abort("connectionreset")

    page.route("**/assets/*.js", lose_once)
    page.get_by_role("link", name="Settings").click()

    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    assert lost


def test_a_page_outlives_the_service(site: Platform, make_person: MakePerson):
    mina = make_person("mina")
    mina.open("sessions")
    page = mina.page
    make_job(mina, "before")
    expect(find(page, "before")).to_be_visible()
    stream = page.locator(".bai-stream")
    expect(stream).to_have_attribute("data-state", "live")
    # As if typed while nobody answers: what is chosen is not lost.
    choice = find(page, "before").get_by_role("checkbox")
    choice.check()

    killed = site.kill("service")
    expect(stream).not_to_have_attribute("data-state", "live")
    expect(find(page, "before")).to_be_visible()
    page.get_by_role("button", name="Refresh").click()
    site.returned("service", killed)
    expect(stream).to_have_attribute("data-state", "live", timeout=SLOW)
    expect(page.get_by_role("alert")).to_have_count(0, timeout=SLOW)
    make_job(mina, "after")
    for name in ("before", "after"):
        expect(find(page, name)).to_be_visible()
    expect(
        page.get_by_role("row", name="before").get_by_role("checkbox")
    ).to_be_checked()


def test_a_page_outlives_its_network(make_person: MakePerson):
    mina, grace = make_person("mina"), make_person("grace", role="superadmin")
    mina.open("sessions")
    page = mina.page
    make_job(mina, "before")
    expect(find(page, "before")).to_be_visible()
    stream = page.locator(".bai-stream")
    expect(stream).to_have_attribute("data-state", "live")

    mina.context.set_offline(True)
    expect(stream).not_to_have_attribute("data-state", "live", timeout=SLOW)
    page.get_by_role("button", name="Refresh").click()
    # What was there is there, and says that it may be out of date.
    expect(page.get_by_text("What you see may be out of date")).to_be_visible()
    expect(find(page, "before")).to_be_visible()
    mina.look("offline")
    assert mina.find_barriers() == []

    # Meanwhile an administrator ends it; nobody could tell.
    grace.open("sessions?all=1")
    row = find(grace.page, "before").filter(has_text=mina.name)
    expect(row).to_be_visible()
    row.get_by_role("link", name="before").click()
    grace.page.get_by_role("button", name="Stop before").click()
    asked = grace.page.get_by_role("dialog")
    asked.get_by_role("button", name="Stop session").click()
    expect(grace.page.locator("main")).to_contain_text("Cancelled")

    mina.context.set_offline(False)
    expect(stream).to_have_attribute("data-state", "live", timeout=SLOW)
    expect(page.get_by_text("What you see may be out of date")).to_have_count(0)
    expect(find(page, "before").filter(has_text="Waiting")).to_have_count(0)


def test_a_reload_keeps_what_the_address_carries(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("launch")
    page.get_by_role("radio", name="Batch job").check()
    page.get_by_label("Command").fill("python train.py --epochs 3")
    page.get_by_label("CPU", exact=True).fill("0.5")
    page.get_by_label("Memory", exact=True).fill("0.75")
    page.get_by_text("More options").click()
    page.get_by_label("Session name").fill("kept")
    page.wait_for_url("**name=kept**")
    page.reload()
    expect(page.get_by_role("radio", name="Batch job")).to_be_checked()
    expect(page.get_by_label("Command")).to_have_value("python train.py --epochs 3")
    expect(page.get_by_label("CPU", exact=True)).to_have_value("0.5")
    expect(page.get_by_label("Memory", exact=True)).to_have_value("0.75")
    expect(page.get_by_label("Session name")).to_have_value("kept")

    # So do lists: what is searched for, filtered and sorted.
    make_job(mina, "found")
    make_job(mina, "hidden")
    mina.open("sessions")
    search = page.get_by_label("Search by name")
    search.fill("found")
    expect(find(page, "hidden")).to_have_count(0)
    page.wait_for_url("**found**")
    page.reload()
    expect(find(page, "found")).to_be_visible()
    expect(search).to_have_value("found")
    expect(find(page, "hidden")).to_have_count(0)
    page.go_back()
    page.go_forward()
    expect(search).to_have_value("found")
