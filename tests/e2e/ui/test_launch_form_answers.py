"""The form says what would become of it, and is sent, kept and copied as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.walking import ask
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# Others wait before everybody who comes: on a site that is left standing, some do.
WAITS_LAST = re.compile(r"Will wait, number (\d+) of \1\b")
JOB = 'echo "seed is $SEED"'


@pytest.fixture(scope="module")
def full(site: Platform) -> Iterator[Platform]:
    """The site, with half a processor left for everybody."""
    rest = float(site.free()["cpu"]) - 0.5
    others = site.start(name="of-others", slots={"cpu": str(rest)})
    yield site
    site.terminate(others, force=True)


def copied(page: Page, entry: str) -> str:
    """Copy the form, and return what is pasted."""
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("menuitem", name=entry).click()
    told = page.locator(".bai-toast", has_text="Copied")
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)
    return str(page.evaluate("navigator.clipboard.readText()"))


def own_access(person: Person) -> dict[str, str]:
    """Make a key under *My keys*, as somebody does for their scripts."""
    page = person.open("settings")
    page.get_by_role("tab", name="My keys").click()
    page.get_by_role("button", name="New key").click()
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    dialog = page.get_by_role("dialog", name="Your new key")
    shown = dialog.locator("code")
    expect(shown).to_have_count(2)
    key, secret = shown.all_inner_texts()
    dialog.get_by_role("button", name="I have kept it").click()
    return {
        "BACKENDAI_ENDPOINT": f"{person.url}services/backendai",
        "BACKENDAI_ACCESS_KEY": key,
        "BACKENDAI_SECRET_KEY": secret,
    }


def run(*argv: str, access: Mapping[str, str], folder: Path) -> str:
    """Run a program of this person's own, in a shell that knows `backendai`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        argv,
        env=os.environ | access | {"PATH": path, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wished(session: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody has asked for."""
    fields = ("name", "type", "image", "slots", "shmem", "project", "resource_group")
    return {field: session[field] for field in fields}


def has_printed(site: Platform, session: Mapping[str, Any], words: str) -> None:
    """Wait until the log of a job, which its node hands over, has these words."""
    url = f"{site.api}sessions/{session['id']}/log"
    until(lambda: words in site.web.get(url, timeout=30).text, f"{words} in its log")


def test_whoever_would_wait_is_told_why_and_what_would_start_now(
    make_person: MakePerson, full: Platform
):
    mina = make_person("mina")
    page = mina.open("launch")
    page.get_by_label("Memory", exact=True).fill("0.5")
    cpu = page.get_by_label("CPU", exact=True)
    cpu.fill("1")

    expect(page.get_by_text(WAITS_LAST)).to_be_visible()
    expect(page.get_by_text("It would start now")).to_contain_text("0.5")
    mina.check_looks("launch-waits")
    page.get_by_role("button", name="Apply").click()
    expect(cpu).to_have_value("0.5")
    expect(page.get_by_text("Starts now")).to_be_visible()
    # It is asked while one types, not when one has asked for the session.
    cpu.fill("0.6")
    expect(page.get_by_text(WAITS_LAST)).to_be_visible()
    cpu.fill("0.4")
    expect(page.get_by_text("Starts now")).to_be_visible()
    assert full.get("sessions?owner=*&search=mina")["items"] == []


def test_the_form_is_sent_kept_and_pasted_as_it_stands(
    make_person: MakePerson, full: Platform, tmp_path: Path
):
    mina = make_person("mina")
    access = own_access(mina)
    mina.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = mina.open("launch?type=batch")
    page.get_by_label("Memory", exact=True).fill("0.5")
    page.get_by_label("CPU", exact=True).fill("0.5")
    page.get_by_label("Command").fill(JOB)
    page.get_by_text("More options").click()
    page.get_by_label("Session name").fill("seeded")
    page.get_by_text("Environment, dependencies and limits").click()
    page.get_by_label("Environment variables").fill("SEED=41")
    expect(page.get_by_text("Starts now")).to_be_visible()

    page.get_by_role("button", name="Keep as a template").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("my seed")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Templates")).to_contain_text("my seed")

    # Its address opens the same form in a second tab; so does what is kept.
    link = copied(page, "Copy the link to this form")
    python = copied(page, "Copy as Python")
    command = copied(page, "Copy as a command")
    second = mina.context.new_page()
    mina.listen(second)
    for come in (
        lambda: second.goto(link),
        lambda: second.get_by_role("button", name="my seed", exact=True).click(),
    ):
        come()
        expect(second.get_by_label("CPU", exact=True)).to_have_value("0.5")
        expect(second.get_by_label("Memory", exact=True)).to_have_value("0.5")
        expect(second.get_by_label("Command")).to_have_value(JOB)
        expect(second.get_by_label("Session name")).to_have_value("seeded")
        expect(second.get_by_label("Environment variables")).to_have_value("SEED=41")
        expect(second.get_by_text("Starts now")).to_be_visible()
        second.goto(f"{mina.url}services/backendai/launch")
    second.close()

    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/sessions/*")
    asked = ask(mina, "GET", f"sessions/{page.url.rsplit('/', 1)[1]}")
    full.reach(asked, "TERMINATED")
    has_printed(full, asked, "seed is 41")

    printed = run(sys.executable, "-c", python, access=access, folder=tmp_path)
    pasted = full.reach({"id": printed.split()[0]}, "TERMINATED", seconds=120)
    assert pasted["owner"] == mina.name
    assert wished(pasted) == wished(asked)
    has_printed(full, pasted, "seed is 41")

    printed = run("sh", "-c", command, access=access, folder=tmp_path)
    assert "seed is 41" in printed
    newest = ask(mina, "GET", "sessions?status=TERMINATED&order=-created_at")["items"][
        0
    ]
    assert newest["id"] not in {asked["id"], pasted["id"]}
    assert wished(newest) == wished(asked)
