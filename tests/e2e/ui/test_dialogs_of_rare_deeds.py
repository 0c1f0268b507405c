"""What is done now and then, to its end: each dialog is looked at on the way."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from sqlalchemy import NullPool, create_engine, update

from backendai_hub.db.migrate import sync_url
from backendai_hub.db.tables.folders import RemainRow
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.dialogs import Dialogs
from tests.e2e.ui.explorer import make_folder, row
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform, until
from tests.registry import Registry, running_registry

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture
def registry(site: Platform, tmp_path: Path) -> Iterator[Registry]:
    """A registry with two images, which the site has read."""
    with running_registry(tmp_path) as running:
        for tag in ("1", "2"):
            running.push_image("rare/lab", tag)
        body = {"name": "rare", "url": running.url}
        made = site.web.post(f"{site.api}registries", json=body, timeout=20).json()
        path = f"{site.api}registries/{made['id']}/rescan"
        assert site.web.post(path, json={}, timeout=20).ok
        until(lambda: len(images_of(site)) == 2, "both images are known")
        yield running


def images_of(site: Platform, status: str = "ALIVE") -> dict[str, dict[str, Any]]:
    found = site.get(f"images?registry=rare&status={status}")["items"]
    return {image["tag"]: image for image in found}


@pytest.mark.registry
def test_an_image_is_fetched_taken_off_offer_and_its_tag_removed(
    site: Platform, make_person: MakePerson, registry: Registry
):
    root = make_person("root", role="superadmin")
    see = Dialogs(root)
    one, two = (images_of(site)[tag] for tag in ("1", "2"))

    page = root.open(f"admin/images/{one['id']}")
    heading = page.get_by_role("heading", name="On nodes")
    on_nodes = page.locator("section").filter(has=heading)
    on_nodes.get_by_label("Resource group").select_option("default")
    on_nodes.get_by_role("button", name="Fetch").click()
    if site.runtime == "docker":
        held = on_nodes.get_by_role("row").last
        expect(held).to_contain_text("Is there")
        root.check_looks("image-on-nodes")
        on_nodes.get_by_role("button", name="Remove", exact=True).click()
        expect(held).to_contain_text("Removed")
    else:
        expect(page.locator(".bai-toast")).to_contain_text("docker")

    more = see.button(f"More for {one['name']}")
    see.look("Take .* off offer", more, see.item("Take off offer"))
    dialog = see.see("Take .* off offer", more, see.item("Take off offer"))
    dialog.get_by_label("Type 1 to confirm").fill("1")
    dialog.get_by_role("button", name="Take off offer").click()
    expect(dialog).to_have_count(0)
    assert set(images_of(site, "DELETED")) == {"1"}

    root.open(f"admin/images/{two['id']}")
    more = see.button(f"More for {two['name']}")
    dialog = see.see("Remove the tag of", more, see.item("Remove the tag"))
    remove = dialog.get_by_role("button", name="Remove the tag")
    dialog.get_by_label("Type 2 to confirm").fill("1")
    expect(remove).to_have_attribute("aria-disabled", "true")
    dialog.get_by_label("Type 2 to confirm").fill("2")
    remove.click()
    expect(dialog).to_have_count(0)
    tags = registry.send("GET", "/v2/rare/lab/tags/list").json()["tags"]
    assert tags == ["1"]
    root.open("admin/images?tab=gone&registry=rare")
    expect(page.get_by_role("rowheader")).to_have_count(2)
    assert see.wrong == []


def test_nodes_are_reserved_for_a_class_and_free_again(
    site: Platform, make_person: MakePerson
):
    root = make_person("root", role="superadmin")
    see = Dialogs(root)
    page = root.open("admin/reservations")
    page.get_by_role("button", name="New reservation").click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("Name: This is needed")
    page.get_by_label("Name (required)").fill("course")
    page.get_by_label("Resource group (required)").select_option("default")
    page.get_by_label("Begins (required)").fill("2099-03-01T09:00")
    page.get_by_label("Ends (required)").fill("2099-03-01T12:00")
    amounts = page.get_by_role("group", name="Amounts")
    amounts.get_by_role("button", name="Add").click()
    amounts.get_by_label("CPU", exact=False).first.fill("1")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("a class is for somebody")
    page.get_by_role("group", name="Users").get_by_label(root.name).check()
    root.check_looks("new-reservation")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="course", level=1)).to_be_visible()
    assert site.get("reservations/course")["amounts"] == {"cpu": "1"}

    more = see.button("More for course")
    dialog = see.see("Delete course for good", more, see.item("Delete for good"))
    dialog.get_by_label("Type course to confirm").fill("course")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("heading", name="Reservations", level=1)).to_be_visible()
    assert site.get("reservations?search=course")["items"] == []
    assert see.wrong == []


def let_days_pass(site: Platform, database: str | None) -> None:
    """Have the platform believe that what it has found lies there for long."""
    own = f"sqlite:///{site.folder.databases / 'backendai.sqlite'}"
    engine = create_engine(sync_url(database or own), poolclass=NullPool)
    with engine.begin() as connection:
        long_ago = datetime(2026, 1, 1, tzinfo=UTC)
        connection.execute(update(RemainRow).values(found_at=long_ago))


def test_what_belongs_to_nobody_is_cleaned_up_once_it_has_had_its_time(
    site: Platform, database: str | None, make_person: MakePerson
):
    root = make_person("root", role="superadmin")
    see = Dialogs(root)
    folder = make_folder(root, "kept").replace("-", "")
    kept = next(site.folder.root.glob(f"**/{folder[4:]}"))
    name = uuid.uuid4()
    lost = kept.parents[2] / name.hex[:2] / name.hex[2:4] / name.hex[4:]
    lost.mkdir(parents=True)

    page = root.open("admin/maintenance")
    storage = page.get_by_role("region", name="Storage")
    storage.get_by_role("button", name="Look now").click()
    expect(storage.get_by_role("row").filter(has_text=str(name))).to_be_visible()
    expect(storage.get_by_role("button", name="Clean up")).to_have_count(0)
    let_days_pass(site, database)
    page.reload()
    dialog = see.see("Remove .* remain", see.button("Clean up"))
    typed = dialog.get_by_role("textbox")
    typed.fill(typed.get_attribute("placeholder") or "")
    dialog.get_by_role("button", name="Clean up").click()
    expect(dialog).to_have_count(0)
    expect(storage).to_contain_text("removed")
    assert (lost.exists(), kept.exists()) == (False, True)
    root.check_looks("storage-clean")
    assert see.wrong == []


def test_many_people_come_and_go_at_once(site: Platform, make_person: MakePerson):
    root = make_person("root", role="superadmin")
    see = Dialogs(root)
    page = root.open("admin/users")
    dialog = see.see("Several users", see.button("Several at once"))
    dialog.get_by_role("radio", name="From a table").check()
    see.see("Several users")
    dialog.get_by_label("Table as CSV").fill("name,role\ncohort-a,user\n,user\n")
    dialog.get_by_role("button", name="Create them").click()
    dialog = see.see("Created: 1, failed: 1")
    dialog.get_by_role("button", name="I have kept it").click()
    dialog = see.see("Several users", see.button("Several at once"))
    dialog.get_by_label("Beginning of the name").fill("cohort-b")
    dialog.get_by_label("How many").fill("2")
    dialog.get_by_role("button", name="Create them").click()
    dialog = see.see("Created: 2, failed: 0")
    dialog.get_by_role("button", name="I have kept it").click()

    root.open("admin/users?search=cohort")
    expect(page.get_by_role("rowheader")).to_have_count(3)
    page.get_by_role("checkbox", name="Choose everything on this page").check()
    bar = page.get_by_role("region", name="With what is chosen")
    root.check_looks("users-chosen")
    bar.get_by_role("button", name="Deactivate").click()
    told = page.locator(".bai-toast", has_text="3 users: inactive now")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    told.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("rowheader")).to_have_count(3)
    page.get_by_role("checkbox", name="Choose everything on this page").check()
    bar.get_by_role("button", name="Deactivate").click()
    expect(page.get_by_text("Nothing found")).to_be_visible()

    page.get_by_role("radio", name="Inactive").check()
    expect(page.get_by_role("rowheader")).to_have_count(3)
    page.get_by_role("checkbox", name="Choose everything on this page").check()
    delete = bar.get_by_role("button", name="Delete for good").click
    delete()
    dialog = see.see("Delete 3 users for good")
    expect(dialog).to_contain_text("cohort-a, ")
    dialog.get_by_label("Type 3 to confirm").fill("3")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    assert site.get("users?search=cohort&status=inactive")["items"] == []
    assert see.wrong == []


def test_several_files_are_moved_and_copied_together(make_person: MakePerson):
    mina = make_person("mina")
    folder = make_folder(mina, "desk")
    page = mina.page
    see = Dialogs(mina)
    page.locator("input[data-picks=files]").set_input_files(
        [
            {"name": name, "mimeType": "text/plain", "buffer": b"text\n"}
            for name in ("a.txt", "b.txt", "c.txt")
        ]
    )
    expect(row(page, "c.txt")).to_be_visible()
    ask(mina, "POST", f"folders/{folder}/directories", {"path": "in"})
    taken = {"path": "b.txt", "target": "in/b.txt", "conflict": "fail"}
    ask(mina, "POST", f"folders/{folder}/copy", taken)
    row(page, "in").get_by_role("link").click()
    expect(row(page, "b.txt")).to_be_visible()
    page.go_back()

    expect(row(page, "c.txt")).to_be_visible()
    for name in ("a.txt", "b.txt", "c.txt"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    see.look(r"Copy to \(entries: 3\)", see.button("Copy"))
    dialog = see.see(r"Move to \(entries: 3\)", see.button("Move"))
    dialog.get_by_role("treeitem", name="in").click()
    dialog.get_by_role("button", name="Move", exact=True).click()
    # The first is moved; of the second the name is taken, and the third waits for it.
    dialog = see.see(r"Move to \(entries: 2\)")
    dialog.get_by_label("Where the name is taken").select_option("Keep both")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(row(page, "in")).to_be_visible()
    expect(page.get_by_text("Entries: 1", exact=True)).to_be_visible()
    row(page, "in").get_by_role("link").click()
    expect(page.get_by_text("Entries: 4", exact=True)).to_be_visible()

    page.get_by_role("checkbox", name="Select all", exact=True).check()
    dialog = see.see(r"Copy to \(entries: 4\)", see.button("Copy"))
    dialog.get_by_role("treeitem", name="desk").click()
    dialog.get_by_role("button", name="Copy", exact=True).click()
    expect(dialog).to_have_count(0)
    page.go_back()
    expect(page.get_by_text("Entries: 5", exact=True)).to_be_visible()
    assert see.wrong == []
