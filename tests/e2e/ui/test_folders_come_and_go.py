"""Folders are copied, given away, thrown away, taken back, and deleted for good."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import make_folder, row
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SOME = 5
# So many are copied for long enough to be seen on the way.
MANY = 8_000
# Keeps what the page has said of how far something is, however short a while.
WATCH = """window.said = [];
new MutationObserver(() => {
    for (const bar of document.querySelectorAll('.bai-tasks [role=progressbar]')) {
        const text = bar.getAttribute('aria-valuetext');
        if (said.at(-1) !== text) { said.push(text); }
    }
}).observe(document.body, {subtree: true, childList: true, attributes: true})"""


def choose(page: Page, name: str, deed: str) -> None:
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    page.get_by_role("menuitem", name=deed, exact=True).click()


def link(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True)


def fill(person: Person) -> None:
    person.page.locator("input[data-picks=files]").set_input_files(
        [
            {"name": f"{n:02}.txt", "mimeType": "text/plain", "buffer": b"text\n"}
            for n in range(SOME)
        ]
    )
    expect(person.page.get_by_text(f"Entries: {SOME}")).to_be_visible()


def test_a_folder_is_copied_and_the_copy_appears_when_it_is_whole(
    make_person: MakePerson,
):
    mina = make_person("mina")
    folder = make_folder(mina, "models")
    fill(mina)
    page = mina.open("data")
    choose(page, "models", "Rename and options")
    page.get_by_role("dialog").get_by_label("May be copied").check()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)

    choose(page, "models", "Copy folder")
    dialog = page.get_by_role("dialog", name="Copy models")
    expect(dialog.get_by_label("Name")).to_have_value("models-copy")
    dialog.get_by_role("button", name="Copy folder").click()
    expect(dialog).to_have_count(0)
    expect(
        page.locator(".bai-toast", has_text="models-copy is being copied")
    ).to_be_visible()

    # How far it is stands on the page for as long as it takes.
    link(page, "models-copy").click()
    expect(page.get_by_role("heading", name="models-copy", level=1)).to_be_visible()
    expect(page.get_by_text(f"Entries: {SOME}")).to_be_visible()
    expect(row(page, "04.txt")).to_be_visible()
    assert folder not in page.url
    mina.open("data")
    expect(page.get_by_role("list", name="What is being done")).to_have_count(0)


def find_worker(site: Platform) -> int:
    """Find the process that does what is done on the disk."""
    service = site.pid("service")
    for about in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            command = about.with_name("cmdline").read_bytes()
            if f"PPid:\t{service}\n" in about.read_text() and b"storage" in command:
                return int(about.parent.name)
    raise AssertionError(f"no worker of {service}")


def test_how_far_a_long_copy_is_shows_for_as_long_as_it_lasts(
    site: Platform, make_person: MakePerson
):
    mina = make_person("mina")
    folder = make_folder(mina, "forest").replace("-", "")
    root = next(site.folder.root.glob(f"**/{folder[4:]}"))
    for number in range(MANY):
        (root / f"{number:05}.txt").write_bytes(b"x" * 100)
    ask(mina, "PATCH", "folders/forest", {"cloneable": True})
    page = mina.open("data")
    under_way = page.get_by_role("list", name="What is being done")
    page.evaluate(WATCH)
    worker = find_worker(site)
    os.kill(worker, signal.SIGSTOP)
    try:
        choose(page, "forest", "Copy folder")
        dialog = page.get_by_role("dialog", name="Copy forest")
        dialog.get_by_role("button", name="Copy folder").click()
        expect(under_way).to_contain_text("Copying a folder")
        mina.check_looks("copying", ".bai-tasks")
    finally:
        os.kill(worker, signal.SIGCONT)
    expect(under_way).to_have_count(0)
    said = [text.split(" / ") for text in page.evaluate("said")]
    assert [one for one in said if len(one) == 2 and one[0] != one[1]], said
    link(page, "forest-copy").click()
    expect(page.get_by_text(f"Entries: {MANY}")).to_be_visible()


def test_a_folder_is_given_to_somebody_else(make_person: MakePerson):
    root = make_person("root", role="superadmin")
    mina, grace = make_person("mina"), make_person("grace")
    folder = make_folder(mina, f"of-{mina.name}")
    page = root.open(f"data?search=of-{mina.name}&user={mina.name}")
    choose(page, f"of-{mina.name}", "Change owner")
    dialog = page.get_by_role("dialog", name=f"Change the owner of of-{mina.name}")
    dialog.get_by_label("User", exact=True).last.fill("nobody-at-all")
    dialog.get_by_role("button", name="Change owner").click()
    expect(dialog).to_contain_text("nobody-at-all")
    root.check_looks("transfer", "[role=dialog]")
    dialog.get_by_label("User", exact=True).last.fill(grace.name)
    dialog.get_by_role("button", name="Change owner").click()
    expect(dialog).to_have_count(0)

    grace.open("data")
    expect(link(grace.page, f"of-{mina.name}")).to_be_visible()
    mine = ask(grace, "GET", f"folders/{folder}")
    assert mine["is_owner"] is True
    mina.open("data")
    expect(link(mina.page, f"of-{mina.name}")).to_have_count(0)


def test_what_was_thrown_away_is_taken_back_or_deleted_for_good(
    make_person: MakePerson,
):
    mina = make_person("mina")
    for name in ("one", "two", "three"):
        make_folder(mina, name)
    page = mina.open("data")
    page.get_by_role("checkbox", name="Choose one", exact=True).check()
    page.get_by_role("checkbox", name="Choose two", exact=True).check()
    page.get_by_role("button", name="Move to the trash").click()
    expect(link(page, "one")).to_have_count(0)

    # At once, by the notice …
    page.get_by_role("button", name="Undo").click()
    expect(link(page, "one")).to_be_visible()
    expect(link(page, "two")).to_be_visible()

    # … and later, out of the trash.
    page.get_by_role("checkbox", name="Choose everything", exact=False).check()
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_text("No folders yet")).to_be_visible()
    page.get_by_role("tab", name="Trash").click()
    expect(
        page.get_by_role("checkbox", name="Choose three", exact=True)
    ).to_be_visible()
    mina.check_looks("folders-trash")
    choose(page, "three", "Restore")
    expect(page.get_by_role("checkbox", name="Choose three", exact=True)).to_have_count(
        0
    )

    page.get_by_role("checkbox", name="Choose everything", exact=False).check()
    page.get_by_role("button", name="Delete forever").click()
    dialog = page.get_by_role("dialog", name="Delete 2 folders forever?")
    expect(dialog).to_contain_text("one")
    expect(dialog).to_contain_text("two")
    mina.check_looks("purge", "[role=dialog]")
    delete = dialog.get_by_role("button", name="Delete forever")
    expect(delete).to_have_attribute("aria-disabled", "true")
    expect(dialog).to_contain_text("Not typed yet")
    typed = dialog.get_by_label("Type “2 folders” to confirm")
    typed.fill("2 folder")
    typed.press("Enter")
    expect(delete).to_have_attribute("aria-disabled", "true")
    typed.fill("2 folders")
    delete.click()
    expect(dialog).to_have_count(0)
    for name in ("one", "two"):
        gone = page.get_by_role("row", name=f"Choose {name} ")
        expect(gone).to_contain_text("emoved")  # being removed, or removed
    page.get_by_role("tab", name="Active").click()
    expect(link(page, "three")).to_be_visible()
    expect(link(page, "one")).to_have_count(0)
