"""Somebody waits, and reads why: on every page, as it changes, without reloading."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform, running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def stay(page: Page) -> None:
    """Mark the page, so that a reload would show."""
    page.evaluate("window.stayed = true")


def stayed(page: Page) -> bool:
    return bool(page.evaluate("window.stayed === true"))


def count_questions(page: Page, session: dict[str, Any]) -> list[str]:
    """Note every question about *session* that the page asks from now on."""
    asked: list[str] = []
    about = f"api/sessions/{session['id']}"
    page.on("request", lambda r: asked.append(r.url) if about in r.url else None)
    return asked


def row_of(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=re.compile(name))


def test_a_reason_changes_on_the_page_while_somebody_looks_at_it() -> None:
    with running("fake") as platform, chromium() as browser:
        tell_the_story(platform, Person(browser, platform.url, "admin"))


def tell_the_story(platform: Platform, person: Person) -> None:
    person.log_in(platform.told["password"])
    room = {r["slot"]: r for r in platform.get("resources")["room"]}
    cores = float(room["cpu"]["total"])
    batch = {"type": "batch", "startup_command": "sleep 600"}
    most = platform.create(name="most", slots={"cpu": str(cores)}, **batch)
    platform.reach(most, "RUNNING")
    first = platform.create(name="first", slots={"cpu": str(cores)}, **batch)
    second = platform.create(name="second", slots={"cpu": "0.5"}, **batch)

    # The list tells the place in the queue, and the page of one session everything.
    page = person.open_console()
    expect(row_of(page, "second").get_by_text("Waiting")).to_be_visible()
    row_of(page, "second").get_by_role("link", name="second").click()
    why = page.get_by_role("region", name="Why it waits")
    expect(why.get_by_text("Number 2 in the queue")).to_be_visible()
    expect(why.get_by_text("cpu: asks 0.5, 0 free")).to_be_visible()
    person.look("why")

    stay(page)
    asked = count_questions(page, second)
    platform.terminate(first)
    expect(why.get_by_text("Number 1 in the queue")).to_be_visible()
    assert asked == []

    page.get_by_role("link", name="All sessions").click()
    third = platform.create(name="third", slots={"cpu": "0.5"}, **batch)
    place = row_of(page, "third").get_by_text("Number 2 in the queue")
    expect(place).to_be_visible()
    asked = count_questions(page, third)
    platform.terminate(second)
    place = row_of(page, "third").get_by_text("Number 1 in the queue")
    expect(place).to_be_visible()
    person.look("list")
    assert asked == []
    assert stayed(page)
    assert person.errors == []
