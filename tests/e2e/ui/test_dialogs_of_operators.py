"""The dialogs of the queue, of nodes and storage, and of one's SSH key."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.dialogs import Dialogs
from tests.e2e.ui.explorer import make_folder
from tests.e2e.ui.test_every_dialog import LATER
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_dialogs_of_operators_keep_nobody_out(make_person: MakePerson, site: Platform):
    root = make_person("root", role="superadmin")
    mina = make_person("mina")
    make_folder(mina, "held")
    waiting = ask(mina, "POST", "sessions", {**LATER, "name": "queued-late"})
    see = Dialogs(root)

    node = site.get("agents")["items"][0]
    root.open(f"nodes/{node['id']}")
    see.look("Drain", see.button("Drain"))

    root.open("admin/scheduler")
    chosen = see.box("Choose queued-late")
    see.look("Priority of 1 session", chosen, see.button("Set priority"))
    see.look("Hold 1 session", see.button("Hold"))
    see.look("Freeze", see.button("Freeze"))

    root.open("admin/scheduler/shares")
    see.look("Edit default", see.button("Edit default"))

    root.open(f"admin/storage?search={mina.name}")
    see.look("Quota of", see.button(f"Quota of {mina.name}"))

    running = site.create(name="ends-hard", slots={"cpu": "0.1"})
    site.reach(running, "RUNNING")
    root.open(f"sessions/{running['id']}")
    see.look(
        "End ends-hard by force", see.button("More actions"), see.item("End by force")
    )
    assert see.wrong == []
    site.terminate(running)
    ask(mina, "POST", f"sessions/{waiting['id']}/terminate", {})


def test_dialogs_of_an_ssh_key_keep_nobody_out(make_person: MakePerson):
    mina = make_person("mina")
    see = Dialogs(mina)
    page = mina.open("settings?tab=ssh")
    see.look("Use a key that I have", see.button("Use my own"))
    see.see("Your new SSH key", see.button("Make a new key"))
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_text("SHA256:")).to_be_visible()
    mina.check_looks("ssh-key")
    see.look("A new SSH key", see.button("Make a new key"))
    see.look("Remove the SSH key", see.button("Remove it"))
    assert see.wrong == []
