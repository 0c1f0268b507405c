"""Words of people that would like to be programs, wherever the pages repeat them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.walking import Walk, ask
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

RUN = "document.documentElement.dataset.ran=1"
IMAGE = f'<img src=x onerror="{RUN}">'
SCRIPT = (
    f"</td></script><script>{RUN}</script>{{{{constructor.constructor('{RUN}')()}}}}"
)
FORMULAS = ("=1+1", "+1+1", "-2+3", "@SUM(1)", "\t=1+1", '=HYPERLINK("//x","y")')
LATER = {
    "image": "jupyterlab",
    "type": "batch",
    "starts_at": "2099-01-01T00:00:00Z",
}


def check(walk: Walk, what: str, *words: str) -> None:
    """The words are there to be read, and nothing was made of them."""
    page = walk.page
    for each in words:
        expect(page.locator("main").get_by_text(each).first).to_be_visible()
    read_through(page, what)
    assert walk.person.errors == [], what


def read_through(page: Page, what: str) -> None:
    assert page.locator("html").get_attribute("data-ran") is None, what
    assert page.locator("img[src=x], main script").count() == 0, what
    assert page.locator("a[href^='javascript' i], a[href^='data' i]").count() == 0, what


def add_nouns(admin: Person) -> list[tuple[str, str, tuple[str, ...]]]:
    """Make what has words of its own; tells where each of them is listed and shown."""
    last = admin.name.rsplit("-", 1)[-1]
    nouns: list[tuple[str, str, dict[str, Any]]] = [
        ("users", "users", {"full_name": IMAGE, "description": SCRIPT}),
        ("projects", "projects", {"domain": "default", "description": IMAGE}),
        ("domains", "domains", {"description": IMAGE}),
        ("keypair-policies", "policies/keypair", {"description": IMAGE}),
        (
            "resource-groups",
            "groups",
            {"description": IMAGE, "wsproxy_addr": f"javascript:{RUN}"},
        ),
    ]
    made = []
    for kind, place, words in nouns:
        row = ask(admin, "POST", kind, {"name": f"mallory-{last}", **words})
        shown = tuple(str(word) for key, word in words.items() if key != "domain")
        made.append((place, str(row["id"]), shown))
    return made


def test_words_of_administration_are_only_read(site: Platform, make_person: MakePerson):
    admin = make_person("root", role="superadmin")
    hostile = f"{IMAGE} {admin.name}"
    admin.open("")
    person = ask(admin, "POST", "users", {"name": hostile})
    made = add_nouns(admin)
    walk = Walk(admin)
    for place, _, words in made:
        walk.go(f"/admin/{place}?search=mallory-")
        check(walk, f"{place}, listed")
        link = (
            walk.page.locator("main tbody").get_by_role("link", name="mallory-").first
        )
        link.click()
        expect(walk.page.locator("main h1")).to_contain_text("mallory-")
        check(walk, f"{place}, shown", *words)
        walk.go(f"{walk.page.url.split('/services/backendai')[1]}/edit")
        check(walk, f"{place}, in its form")

    # Somebody's very name, in a heading, a toast, a dialog and the record of it all.
    walk.go(f"/admin/users/{person['id']}")
    check(walk, "a name as a heading", hostile)
    more = walk.page.get_by_role("button", name=f"More for {hostile}")
    more.click()
    deed = walk.page.get_by_role("menuitem", name="Deactivate")
    deed.click()
    expect(walk.page.get_by_text(f"{hostile}: inactive now").first).to_be_visible()
    read_through(walk.page, "a name in a toast")
    more.click()
    walk.page.get_by_role("menuitem", name="Delete for good").click()
    asked = walk.page.get_by_role("dialog", name=f"Delete {hostile} for good?")
    expect(asked).to_be_visible()
    read_through(walk.page, "a name in a dialog")
    walk.page.keyboard.press("Escape")
    walk.go("/admin/audit")
    check(walk, "the record", IMAGE)


def test_words_of_sessions_are_only_read(make_person: MakePerson):
    eve = make_person("eve")
    eve.open("")
    words = {"startup_command": IMAGE, "environ": {"WORDS": SCRIPT}}
    first = ask(eve, "POST", "sessions", {**LATER, **words, "name": "a", "tag": IMAGE})
    walk = Walk(eve)
    walk.go("/sessions?search=img")
    check(walk, "a list")
    walk.go(f"/sessions/{first['id']}")
    check(walk, "a session", IMAGE)
    for tab in walk.page.get_by_role("tab").all():
        tab.click()
        read_through(walk.page, tab.inner_text())
    walk.go(
        f"/launch?type=batch&name={IMAGE}&startup_command={IMAGE}&tag={IMAGE}&env=A"
    )
    expect(walk.page.get_by_label("Command")).to_have_value(IMAGE)
    walk.page.get_by_role("button", name="Submit job").click()
    read_through(walk.page, "an address")
    walk.go(f"/{IMAGE}")
    read_through(walk.page, "an address that leads nowhere")


def test_no_cell_of_an_exported_list_is_a_formula(
    make_person: MakePerson, tmp_path: Path
):
    admin = make_person("root", role="superadmin")
    admin.open("")
    group = f"x{admin.name.rsplit('-', 1)[-1]}x"
    for number, formula in enumerate(FORMULAS):
        words = {"full_name": formula, "description": formula}
        ask(admin, "POST", "users", {"name": f"{group}{number}", **words})
    page = admin.open(f"admin/users?search={group}")
    expect(page.get_by_role("row")).to_have_count(len(FORMULAS) + 1)
    with page.expect_download() as begun:
        page.get_by_role("button", name="Export as CSV").click()
    begun.value.save_as(tmp_path / "users.csv")
    text = (tmp_path / "users.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(FORMULAS)
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t"}]
    for formula in FORMULAS:
        assert any(cell.lstrip("'\t") == formula.strip() for cell in cells), formula
