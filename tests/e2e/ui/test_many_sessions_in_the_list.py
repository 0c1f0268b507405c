"""Somebody with many sessions finds some of them, and ends them together."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LATER = "2199-01-01T00:00:00Z"


def ask_for_many(person: Person, *names: str) -> None:
    """Ask for batch sessions that wait for a time nobody here lives to see."""
    made = person.page.evaluate(
        """async ([names, later]) => {
          const cookie = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie);
          const headers = {'Content-Type': 'application/json',
            'X-XSRFToken': cookie ? decodeURIComponent(cookie[1]) : ''};
          const api = document.querySelector('meta[name=backendai-prefix]').content;
          const answers = [];
          for (const name of names) {
            const body = {image: 'jupyterlab', type: 'batch', name, starts_at: later,
              startup_command: 'true', slots: {cpu: '0.1', mem: '320m'}};
            const answer = await fetch(`${api}api/sessions`,
              {method: 'POST', headers, body: JSON.stringify(body)});
            answers.push(answer.status);
          }
          return answers;
        }""",
        [list(names), LATER],
    )
    assert made == [201] * len(names)


def end_all(site: Platform, person: Person) -> None:
    """Leave nothing waiting for the stories that come after this one."""
    left = site.get(f"sessions?status=live&owner={person.name}&limit=100")
    for session in left["items"]:
        site.terminate(session)


def names_in(page: Page) -> list[str]:
    return page.get_by_role("rowheader").get_by_role("link").all_inner_texts()


def test_some_of_many_sessions_are_found_kept_as_a_file_and_ended(
    site: Platform, make_person: MakePerson
):
    mina = make_person("mina")
    page = mina.open("sessions")
    expect(page.get_by_text("No sessions yet")).to_be_visible()
    mina.check_looks("sessions-none")
    ask_for_many(mina, *(f"sweep-{n:02}" for n in range(22)), "report")

    # The stream has told of every one of them, and the list is one page of them.
    expect(page.get_by_role("rowheader")).to_have_count(20)
    mina.check_looks("sessions")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("rowheader")).to_have_count(3)
    page.get_by_role("button", name="Previous").click()

    page.get_by_label("Search by name, tag or identifier").fill("report")
    expect(page.get_by_role("rowheader")).to_have_count(1)
    page.wait_for_url("**search=report**")
    page.reload()
    expect(page.get_by_role("rowheader")).to_have_count(1)
    assert names_in(page) == ["report"]

    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("button", name="Name", exact=True).click()
    expect(page.get_by_role("rowheader").first).to_contain_text("report")
    with page.expect_download() as told:
        page.get_by_role("button", name="Export as CSV").click()
    text = Path(told.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["Name"] for row in rows][:2] == ["report", "sweep-00"]
    assert len(rows) == 23

    page.get_by_label("Choose sweep-00").check()
    page.get_by_label("Choose sweep-01").check()
    bar = page.get_by_role("region", name="With what is chosen")
    expect(bar).to_contain_text("2 chosen")
    mina.check_looks("sessions-chosen")
    bar.get_by_role("button", name="Stop session").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("nothing is lost")
    assert mina.find_barriers("[role=dialog]") == []
    dialog.get_by_role("button", name="Stop session").click()
    expect(page.get_by_text("2 sessions are stopping.")).to_be_visible()
    page.get_by_role("radio", name="Ended").check()
    expect(page.get_by_role("rowheader")).to_have_count(2)
    assert sorted(names_in(page)) == ["sweep-00", "sweep-01"]

    # What was said is still there for who did not look.
    page.keyboard.press("]")
    notices = page.get_by_role("region", name="Notifications")
    expect(notices).to_contain_text("2 sessions are stopping.")
    page.keyboard.press("Escape")
    expect(notices).to_have_count(0)

    end_all(site, mina)


def test_a_dashboard_tells_users_of_their_limits_and_operators_of_the_site(
    site: Platform, make_person: MakePerson
):
    mina = make_person("mina")
    page = mina.open("dashboard")
    expect(page.get_by_role("heading", name="The cluster now")).to_be_visible()
    expect(page.get_by_role("heading", name="Who waits")).to_have_count(0)
    ask_for_many(mina, "later")
    tile = page.get_by_role("list", name="My sessions").get_by_role("link")
    expect(tile.filter(has_text="Waiting")).to_contain_text("1")
    mina.check_looks("dashboard")

    ops = make_person("ops", role="superadmin")
    page = ops.open("dashboard")
    expect(page.get_by_role("heading", name="Nodes")).to_be_visible()
    expect(page.get_by_role("heading", name="Who waits")).to_be_visible()
    expect(page.get_by_role("table", name="Who waits")).to_be_visible()
    ops.check_looks("dashboard-operator")
    # Every device is reached with the keyboard alone, and leads to its node.
    cell = page.locator(".bai-heat-cell").first
    cell.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/nodes/*")
    end_all(site, mina)
