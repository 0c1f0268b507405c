"""Somebody drops a folder of many files, and puts them in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import Drag, choose, make_folder, row, tray
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# More than are sent at a time, and than fit into the window.
MANY = 60


def lay_out(folder: Path) -> Path:
    """Fill a folder with files, folders in it, and one with nothing in it."""
    data = folder / "set"
    (data / "labels").mkdir(parents=True)
    (data / "void").mkdir()
    for number in range(MANY):
        (data / f"{number:03}.txt").write_text(f"number {number}\n")
    (data / "labels" / "all.csv").write_text("name,label\na,1\n")
    return data


def count(site: Platform, person: str, folder: str, path: str) -> int:
    """Count what lies on the disk, as the service tells whoever may look."""
    del person
    root = next(site.folder.root.glob(f"**/{folder.replace('-', '')[4:]}"))
    return sum(1 for one in (root / path).iterdir() if one.is_file())


def test_a_dropped_folder_arrives_whole_and_is_put_in_order(
    site: Platform, make_person: MakePerson, tmp_path: Path
):
    mina = make_person("mina")
    folder = make_folder(mina, "sets")
    page = mina.page
    expect(page.get_by_text("Nothing is in here")).to_be_visible()
    mina.check_looks("explorer-empty")

    drag = Drag(page, page.get_by_text("Nothing is in here"), lay_out(tmp_path))
    drag.enter()
    expect(page.get_by_text("Drop to upload into sets")).to_be_visible()
    mina.look("explorer-drop")
    drag.drop()
    expect(page.get_by_text("Drop to upload into sets")).to_have_count(0)

    # One row, however many files; it goes on while other pages are looked at.
    expect(tray(page).get_by_role("listitem")).to_have_count(1)
    page.get_by_role("link", name="Sessions").first.click()
    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()
    expect(tray(page)).to_contain_text(f"Uploaded: {MANY + 1}", timeout=240_000)
    page.get_by_role("button", name="Unfold").click()
    mina.check_looks("tray", ".bai-tray")
    tray(page).get_by_role("link", name="sets").click()

    row(page, "set").get_by_role("link").click()
    expect(page.get_by_text(f"Entries: {MANY + 2}")).to_be_visible()
    expect(row(page, "void")).to_be_visible()
    assert count(site, mina.name, folder, "set") == MANY
    mina.check_looks("explorer-many")

    # The same again: names are taken, and nothing is replaced unasked.
    again = tmp_path / "again"
    again.mkdir()
    for name in ("000.txt", "new.txt"):
        (again / name).write_text("another")
    drag = Drag(page, row(page, "000.txt"), again / "000.txt", again / "new.txt")
    drag.enter()
    drag.drop()
    expect(tray(page)).to_contain_text("Files that exist already: 1")
    mina.check_looks("tray-clash", ".bai-tray")
    tray(page).get_by_role("button", name="Keep both").click()
    expect(page.get_by_text(f"Entries: {MANY + 4}")).to_be_visible()
    tray(page).get_by_role("button", name="Clear").click()
    expect(tray(page)).to_have_count(0)

    # In order: by another name, into a folder, into the trash and back.
    choose(page, row(page, "001.txt"), "Rename")
    field = page.get_by_label("New name of 001.txt")
    field.fill("first.txt")
    field.press("Enter")
    page.get_by_label("Find here").fill("first")
    expect(page.get_by_text("Entries: 1", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name="Select first.txt").check()
    chosen = page.get_by_role("region", name="With what is selected")
    chosen.get_by_role("button", name="Move", exact=True).click()
    places = page.get_by_role("dialog", name="Move to")
    expect(places.get_by_role("treeitem", name="void")).to_be_visible()
    mina.check_looks("move-dialog", "[role=dialog]")
    places.get_by_role("treeitem", name="labels").click()
    places.get_by_role("button", name="Move", exact=True).click()
    expect(places).to_have_count(0)
    page.get_by_label("Find here").fill("")
    row(page, "labels").get_by_role("link").click()
    choose(page, row(page, "first.txt"), "Move to the trash")
    expect(row(page, "first.txt")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "first.txt")).to_be_visible()
    assert count(site, mina.name, folder, "set/labels") == 2

    with page.expect_download() as begun:
        page.get_by_role("checkbox", name="Select all", exact=True).check()
        chosen.get_by_role("button", name="Download").click()
        page.get_by_role("menuitem", name="As zip").click()
    assert begun.value.suggested_filename == "sets.zip"
