"""Somebody launches, uploads and shares with the keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import row, tray
from tests.e2e.ui.keys import Keys

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_batch_job_is_launched_and_stopped(make_person: MakePerson):
    mina = make_person("mina")
    page, keys = mina.page, Keys(mina)
    mina.open("")
    keys.use(page.get_by_role("link", name="Skip to content"))
    keys.has_focus(page.locator("main"))
    keys.use(page.locator("main").get_by_role("link", name="Run a batch job"))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("New session")
    keys.has_focus(heading)

    keys.go_to(page.get_by_role("radio", name="Batch job"))
    keys.press("ArrowLeft")
    keys.has_focus(page.get_by_role("radio", name="Notebook"))
    keys.press("ArrowRight")
    keys.fill(page.get_by_label("Command"), "sleep 600")
    keys.fill(page.get_by_label("CPU", exact=True), "0.5")
    keys.fill(page.get_by_label("Memory", exact=True), "0.5")
    keys.use(page.get_by_text("More options"))
    keys.fill(page.get_by_label("Session name"), "by-hand")
    expect(page.get_by_text("Starts now")).to_be_visible()
    keys.use(page.get_by_role("button", name="Submit job"))
    expect(heading).to_have_text("by-hand")
    keys.has_focus(heading)

    stop = page.get_by_role("button", name="Stop by-hand")
    expect(page.locator("main").get_by_text("Running").first).to_be_visible()
    keys.use(stop)
    asked = page.get_by_role("dialog", name="Stop by-hand?")
    keys.has_focus(asked.get_by_role("button", name="Keep it"))
    for _ in range(3):  # the focus stays in the dialog
        keys.press("Tab")
        inside = (
            "document.querySelector('[role=dialog]').contains(document.activeElement)"
        )
        assert page.evaluate(inside)
    keys.press("Escape")
    expect(asked).to_have_count(0)
    keys.has_focus(stop)
    keys.press("Enter")
    keys.use(asked.get_by_role("button", name="Stop session"))
    expect(asked).to_have_count(0)
    expect(page.locator("main")).to_contain_text(f"stopped by {mina.name}")
    keys.is_not_lost()
    keys.used_alone()


def test_files_are_uploaded_and_shared(make_person: MakePerson, tmp_path: Path):
    grace, mina = make_person("grace"), make_person("mina")
    page, keys = grace.page, Keys(grace)
    grace.open("data")
    new = page.get_by_role("button", name="New folder").first
    keys.use(new)
    form = page.get_by_role("dialog", name="New folder")
    keys.has_focus(form.get_by_label("Name"))
    keys.press("Escape")
    expect(form).to_have_count(0)
    keys.has_focus(new)
    keys.press("Enter")
    keys.fill(form.get_by_label("Name"), "by-hand")
    keys.press("Enter")
    expect(form).to_have_count(0)
    keys.is_not_lost()
    keys.use(page.get_by_role("link", name="by-hand", exact=True))
    heading = page.get_by_role("heading", name="by-hand", level=1)
    keys.has_focus(heading)

    (tmp_path / "notes.md").write_text("# Notes\n")
    upload = page.get_by_role("button", name="Upload", exact=True)
    chooser = keys.choose_files(upload, "Files")
    chooser.set_files(tmp_path / "notes.md")
    expect(tray(page)).to_contain_text("Uploaded: 1")
    keys.has_focus(upload)
    file = row(page, "notes.md").get_by_role("link")
    keys.use(file)
    side = page.get_by_role("region", name="Preview of")
    expect(side).to_contain_text("Notes")
    keys.use(side.get_by_role("button", name="Close the preview"))
    expect(side).to_have_count(0)
    keys.is_not_lost()

    keys.use(page.get_by_role("button", name="Show what is known of the folder"))
    keys.go_to(page.get_by_role("tab", selected=True))
    sharing = page.get_by_role("tab", name="Sharing")
    while sharing.get_attribute("aria-selected") != "true":
        keys.press("ArrowRight")
    keys.has_focus(sharing)
    keys.fill(page.get_by_label("Invite people"), mina.name)
    keys.go_to(page.get_by_label("They may"))
    page.keyboard.type("Read and write")
    expect(page.get_by_label("They may")).to_have_value("rw")
    keys.use(page.get_by_role("button", name="Invite", exact=True))
    permission = page.get_by_label(f"Permission of {mina.name}")
    expect(permission).to_have_value("rw")
    keys.is_not_lost()
    keys.used_alone()

    # The other one takes it without a mouse, too.
    page, keys = mina.page, Keys(mina)
    mina.open("data")
    accept = page.get_by_role("button", name="Accept by-hand")
    keys.use(accept)
    expect(accept).to_have_count(0)
    keys.is_not_lost()
    keys.use(page.get_by_role("link", name="by-hand", exact=True))
    expect(row(page, "notes.md")).to_be_visible()
    keys.used_alone()
