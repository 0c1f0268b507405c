"""Nodes are found in their list, drained from a row, and only looked at by monitors."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_node_is_found_drained_and_let_go_from_its_row(
    make_person: MakePerson, site: Platform
):
    node = site.get("agents")["items"][0]
    root = make_person("root", role="superadmin")
    page = root.open("nodes")
    row = page.get_by_role("row", name=node["name"])
    expect(row).to_contain_text("Ready")
    expect(row.get_by_role("meter", name="CPU")).to_be_visible()
    root.check_looks("nodes")
    page.set_viewport_size({"width": 360, "height": 860})
    for title in ("Node", "Status", "Resource group", "Last seen"):
        place = page.locator("thead").get_by_text(title).bounding_box()
        assert place is not None
        assert place["x"] >= 0, title
        assert place["x"] + place["width"] <= 360, title
    page.set_viewport_size({"width": 1280, "height": 860})

    page.get_by_role("combobox", name="Status").select_option(label="Lost")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.get_by_role("combobox", name="Status").select_option(label="Ready")
    page.get_by_role("button", name="Columns", exact=True).click()
    page.get_by_role("menuitemcheckbox", name="Labels", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader", name="Labels")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export as CSV").click()
    assert node["name"] in Path(saved.value.path()).read_text("utf-8-sig")

    page.get_by_role("button", name=f"Actions for {node['name']}").click()
    page.get_by_role("menuitem", name="Drain").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("new fans")
    dialog.get_by_role("button", name="Drain").click()
    expect(row).to_contain_text("new fans")
    page.get_by_role("combobox", name="What it takes").select_option(
        label="Takes no new sessions"
    )
    expect(row).to_contain_text("Takes no new sessions")

    eve = make_person("eve", role="monitor")
    expect(eve.open("nodes").get_by_role("row", name=node["name"])).to_be_visible()
    expect(eve.page.get_by_role("button", name="Actions for")).to_have_count(0)

    page.get_by_role("button", name=f"Actions for {node['name']}").click()
    page.get_by_role("menuitem", name="Undrain").click()
    # Told of by the stream, it no longer is one of those that take nothing.
    expect(page.get_by_text("Nothing found")).to_be_visible()
    until(lambda: not site.get("agents?schedulable=false")["items"], "it takes some")
