"""An operator holds, hurries and freezes, empties a node, and asks what would be."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_what_waits_is_held_hurried_and_let_go(make_person: MakePerson, site: Platform):
    root = make_person("root", role="superadmin")
    node = site.get("agents")["items"][0]
    page = root.open(f"nodes/{node['id']}")
    page.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("new fans")
    dialog.get_by_role("button", name="Drain").click()
    expect(page.get_by_text("new fans")).to_be_visible()
    # What is told in passing lies over the page for a while.
    expect(page.locator(".bai-toast")).to_have_count(0)
    root.check_looks("node")
    waiting = [site.create(name=f"queued-{i}", slots={"cpu": "0.1"}) for i in range(2)]

    page = root.open("admin/scheduler")
    row = page.get_by_role("row", name="queued-1")
    expect(row).to_be_visible()
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Set priority").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Priority").fill("60")
    dialog.get_by_role("button", name="Set priority").click()
    expect(row).to_contain_text("60")
    page.get_by_role("row", name="queued-0").get_by_role("checkbox").check()
    page.get_by_role("button", name="Hold").click()
    dialog.get_by_label("Reason").fill("after lunch")
    dialog.get_by_role("button", name="Hold").click()
    expect(page.get_by_role("row", name="queued-0")).to_contain_text("after lunch")
    page.get_by_role("button", name="Freeze").click()
    dialog.get_by_label("Reason").fill("maintenance")
    dialog.get_by_role("button", name="Freeze").click()
    expect(page.get_by_text("is frozen by")).to_be_visible()
    root.check_looks("queue")
    page.get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_text("is frozen by")).to_have_count(0)

    page = root.open(f"nodes/{node['id']}")
    page.get_by_role("button", name="Undrain").click()
    expect(page.get_by_text("new fans")).to_have_count(0)
    until(
        lambda: site.get("agents")["items"][0]["drain"] is None,
        "the node takes sessions",
    )
    for session in waiting:
        site.terminate(session)


def test_what_would_be_is_asked_and_drawn(make_person: MakePerson):
    root = make_person("root", role="superadmin")
    page = root.open("admin/scheduler/simulate")
    asked = page.get_by_role("group", name="What they ask for")
    asked.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Correct what is marked first")).to_be_visible()
    asked.get_by_label("CPU").first.fill("1")

    page.get_by_role("button", name="Simulate").click()

    result = page.get_by_role("heading", name="How it goes")
    expect(result).to_be_visible()
    expect(page.get_by_text("What you added would start")).to_be_visible()
    root.check_looks("simulate")


def test_shares_are_followed_from_domains_to_people(
    make_person: MakePerson, site: Platform
):
    root = make_person("root", role="superadmin")
    session = site.create(name="uses-some", slots={"cpu": "0.1"})
    site.reach(session, "RUNNING")
    page = root.open("admin/scheduler/shares")
    trail = page.get_by_role("navigation", name="Where you are")
    table = page.get_by_role("table", name="Shares, whose turn is next first")
    for steps in (2, 3):  # into the domain, and into its project
        table.get_by_role("link", name="default", exact=True).click()
        expect(trail.get_by_role("listitem")).to_have_count(steps)
    page.reload()
    table.get_by_role("link", name=session["owner"], exact=True).click()
    expect(trail.get_by_role("listitem")).to_have_count(4)
    root.check_looks("shares-of-one")
    trail.get_by_role("link").first.click()
    expect(trail.get_by_role("listitem")).to_have_count(1)
    site.terminate(session)


def test_what_is_counted_is_compared_and_written_down(make_person: MakePerson):
    root = make_person("root", role="superadmin")
    page = root.open("admin/maintenance")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Nothing drifts")).to_be_visible()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The chain holds")).to_be_visible()
    page.get_by_role("button", name="Look now").click()
    root.check_looks("maintenance")

    page = root.open(f"admin/audit?object={root.name}")
    page.get_by_role("button", name="user:update").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("superadmin")
    root.check_looks("audit-entry")
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    first = download.value.path().read_text("utf-8").splitlines()[0]
    assert "actor" in first
