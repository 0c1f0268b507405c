"""Every dialog that there is, in light and dark, wide and narrow.

Those that show what others did meanwhile, such as conflicts, are looked at in the
stories that lead to them.
"""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.dialogs import Dialogs
from tests.e2e.ui.explorer import make_folder, row
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LATER = {
    "name": "later",
    "type": "batch",
    "image": "jupyterlab",
    "startup_command": "true",
    "starts_at": "2099-01-01T00:00:00Z",
}
LAUNCHED = [
    {
        "id": "one",
        "at": "2026-01-01T00:00:00Z",
        "title": "train",
        "wish": {"image": "jupyterlab", "slots": {"cpu": "1"}},
        "kept": True,
    }
]


def test_dialogs_about_sessions_keep_nobody_out(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("sessions")
    session = ask(mina, "POST", "sessions", LATER)
    see = Dialogs(mina)
    mina.open("sessions?search=later")
    see.look("Stop later", see.button("Stop later"))
    see.look("Stop 1", see.box("Choose later"), see.button("Stop session"))
    see.look("Save these", see.button("Saved filters"), see.item("Save these filters…"))

    mina.open(f"sessions/{session['id']}")
    more = see.button("More actions")
    see.look("Rename the session", more, see.item("Rename…"))
    see.look("Keep it from starting", more, see.item("Hold"))
    see.look("Change priority", more, see.item("Change priority…"))

    page.evaluate(
        "([key, text]) => localStorage.setItem(key, text)",
        [f"bai.launches:{mina.name}", json.dumps(LAUNCHED)],
    )
    mina.open("launch")
    see.look("Keep as a template", see.button("Keep as a template…"))
    see.look("Rename", see.button("Actions for train"), see.item("Rename…"))
    page.keyboard.press("]")
    see.look("Notifications")
    assert see.wrong == []
    ask(mina, "POST", f"sessions/{session['id']}/terminate", {})


def test_dialogs_about_folders_and_ones_own_keep_nobody_out(make_person: MakePerson):
    mina = make_person("mina")
    make_folder(mina, "desk")
    page = mina.page
    see = Dialogs(mina)
    page.locator("input[data-picks=files]").set_input_files(
        [
            {"name": name, "mimeType": "text/plain", "buffer": b"text\n"}
            for name in ("a.txt", "b.txt")
        ]
    )
    expect(row(page, "b.txt")).to_be_visible()
    see.look("New folder", see.button("New folder"))
    of_file = see.button("Actions for a.txt")
    see.look("Move to", of_file, see.item("Move"))
    see.look("Copy to", of_file, see.item("Copy"))
    of_file().click()
    see.item("Move to the trash")().click()
    expect(row(page, "a.txt")).to_have_count(0)
    mina.open(page.url.split("/services/backendai/")[1].split("?")[0] + "?side=trash")
    see.look("Delete forever", see.button("Empty the trash"))
    row(page, "b.txt").get_by_role("link").click()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("textbox", name="Content").fill("other")
    see.look("Leave without saving", see.button("Close the preview"))
    see.see("Leave without saving", see.button("Cancel"))
    page.get_by_role("button", name="Leave", exact=True).click()

    mina.open("data?upload=1")
    see.look("Upload data")
    mina.open("data")
    see.look("New folder", see.button("New folder"))
    of_desk = see.button("Actions for desk")
    see.see_menu(of_desk)
    see.see("Change desk", of_desk, see.item("Rename and options"))
    page.get_by_role("dialog").get_by_label("May be copied").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    sharing = see.see("Share desk", of_desk, see.item("Share"))
    sharing.get_by_role("button", name="Close").click()
    expect(sharing).to_have_count(0)
    see.look("Copy desk", of_desk, see.item("Copy folder"))
    of_desk().click()
    see.item("Move to the trash")().click()
    expect(page.get_by_role("link", name="desk", exact=True)).to_have_count(0)
    page.get_by_role("tab", name="Trash").click()
    see.look("Restore desk", of_desk, see.item("Restore by another name"))
    see.look("Delete desk forever", of_desk, see.item("Delete forever"))

    mina.open("settings?tab=keys")
    see.look("New keypair|New key", see.button("New key"))
    see.look("A new secret for", see.button("New secret for", exact=False))
    assert see.wrong == []


def test_dialogs_of_those_who_run_the_site_keep_nobody_out(
    make_person: MakePerson, site: Platform
):
    root = make_person("root", role="superadmin")
    guest = make_person("guest")
    make_folder(guest, "held")
    see = Dialogs(root)
    page = root.open("admin/users?search=guest")
    see.look("Several users at once", see.button("Several at once"))
    chosen = see.box(f"Choose {guest.name}")
    see.look("Change 1 user", chosen, see.button("Change fields…"))
    see.see("Change 1 user", see.button("Change fields…"))
    page.get_by_role("checkbox", name="Change “Description”").check()
    page.get_by_label("Description", exact=True).fill("A guest")
    page.get_by_role("button", name="Change", exact=True).click()
    see.look("1 changed, 0 not")
    until(
        lambda: site.get(f"users/{guest.name}")["description"] == "A guest",
        "they are changed",
    )

    root.open(f"admin/users/{site.get(f'users/{guest.name}')['id']}")
    see.look("A new one-time password", see.button("New one-time password"))
    see.see("A new one-time password", see.button("New one-time password"))
    page.get_by_role("dialog").get_by_role("button").last.click()
    once = see.see("One-time password for")
    page.keyboard.press("Escape")  # which does not say that it was kept
    once.get_by_role("button", name="I have kept it").click()
    expect(once).to_have_count(0)
    gone = site.web.post(
        f"{site.api}accounts", json={"name": f"gone-{guest.name}"}, timeout=20
    )
    assert gone.ok, gone.text
    url = f"{site.api}users/gone-{guest.name}"
    assert site.web.patch(url, json={"status": "inactive"}, timeout=20).ok
    root.open(f"admin/users?tab=inactive&search=gone-{guest.name}")
    of_gone = see.button(f"Actions for gone-{guest.name}")
    see.look("Delete gone", of_gone, see.item("Delete for good"))
    assert see.wrong == []


def test_the_ways_on_a_narrow_screen_keep_nobody_out(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("sessions")
    page.set_viewport_size({"width": 360, "height": 860})
    opener = page.get_by_role("button", name="Open menu")
    drawer = page.get_by_role("dialog", name="Main")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        opener.focus()
        page.keyboard.press("Enter")
        expect(drawer.get_by_role("link", name="Data", exact=True)).to_be_visible()
        mina.look(f"ways-{scheme}")
        assert mina.find_barriers("[role=dialog]") == [], scheme
        assert mina.overflows() <= 0, scheme
        page.keyboard.press("Escape")
        expect(drawer).to_have_count(0)
        expect(opener).to_be_focused()
