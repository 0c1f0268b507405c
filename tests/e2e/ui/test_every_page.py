"""Every page that there is, as each role finds it.

`pages.json` lists them; a test of the front end keeps it complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.dialogs import WINDOWS
from tests.e2e.ui.walking import CONSOLE, Walk, ask
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAGES: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("pages.json").read_text("utf-8")
)
PARTS = {"/admin/scheduler/:part": ("shares", "preemption", "simulate")}
# What concerns the whole site, beside parts that whoever finds the page may see.
NOT_FOR = {
    ("domain-admin", "/admin/scheduler/preemption"),
    ("domain-admin", "/admin/scheduler/simulate"),
}
# Beside a page, where its address asks for it.
BESIDE = {"/data/:id": "?side=details"}
TABS = "main [role=tab], main .bai-list-beside input[type=radio]"
IS_CHOSEN = "one => one.checked || one.getAttribute('aria-selected') === 'true'"
# Who logs in elsewhere has no account here, which is asked about anyhow.
UNKNOWN = re.compile(r"404 .*/api/accounts/[^/]*/state")
CLOSED = ("Not for your role", "There is no such page.")
Windows = Sequence[tuple[str, int, list[str]]]
NOBODY = "00000000-0000-0000-0000-000000000000"
NOWHERE = ("/nowhere", "/sessions/a/b", "/admin/scheduler/nothing", "/admin/users/a/b")
GONE = (f"/sessions/{NOBODY}", f"/data/{NOBODY}", "/admin/users/nobody", "/nodes/none")


def furnish(person: Person) -> None:
    """Give somebody a session that waits and a folder, to be looked at."""
    person.open("sessions")
    batch = {
        "name": "later",
        "type": "batch",
        "image": "jupyterlab",
        "startup_command": "true",
        "starts_at": "2099-01-01T00:00:00Z",
    }
    ask(person, "POST", "sessions", batch)
    ask(person, "POST", "folders", {"name": f"data-of-{person.name}"})


def furnish_site(site: Platform) -> None:
    """Give the site one of each thing that a new one has none of."""
    for path, body in (
        ("registries", {"name": "every", "url": "https://registry.invalid"}),
        ("presets", {"name": "every", "resource_slots": {"cpu": "1", "mem": "1g"}}),
        (
            "reservations",
            {
                "name": "every",
                "resource_group": "default",
                "amounts": {"cpu": "1"},
                "kind": "maintenance",
                "begins_at": "2099-01-01T00:00:00Z",
                "ends_at": "2099-01-02T00:00:00Z",
            },
        ),
    ):
        answer = site.web.post(f"{site.api}{path}", json=body, timeout=20)
        assert answer.ok or answer.status_code == 409, answer.text


def check(walk: Walk, what: str, windows: Windows) -> list[str]:
    """See a page as it stands: named, complete, and in nobody's way.

    Returns what is wrong with it.
    """
    person, page = walk.person, walk.page
    failed = [line for line in walk.take_failed() if not UNKNOWN.fullmatch(line)]
    wrong = [f"{what}: asked {line}" for line in failed]
    if page.locator("h1").count() != 1:
        wrong.append(f"{what}: not one h1")
    if page.title() != f"{walk.heading} · Backend.AI Hub":
        wrong.append(f"{what}: called {page.title()}")
    for scheme, width, rules in windows:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 860})
        person.look(f"{what}-{scheme}-{width}")
        where = f"{what}, {scheme}, {width} px"
        if over := max(person.overflows(), 0):
            wrong.append(f"{where}: {over} px too wide")
        wrong.extend(f"{where}: {found}" for found in person.find_barriers(rules=rules))
    page.set_viewport_size({"width": 3840, "height": 2160})
    wrong.extend(f"{what}: too long a line: {line}" for line in person.long_lines())
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")
    return wrong


def check_tabs(walk: Walk, what: str, address: str) -> list[str]:
    """Choose each tab of a page, and come back to it by the address that it has.

    Returns what is wrong with it.
    """
    wrong: list[str] = []
    tabs = walk.go(address).locator(TABS)
    for at in range(tabs.count()):
        walk.go(address)
        tab = tabs.nth(at)
        if tab.evaluate(IS_CHOSEN):
            continue
        walk.press(tab)
        there = walk.page.url.partition(CONSOLE)[2]
        walk.go(address)
        walk.go(there)
        if there == address or not tab.evaluate(IS_CHOSEN):
            wrong.append(f"{address}: {there} is not its tab {at}")
        wrong += check(walk, f"{what}-{at}", WINDOWS[2:3])
    return wrong


def addresses(walk: Walk, path: str) -> Iterator[str]:
    """Name addresses that a page's pattern stands for, by what is there."""
    base, _, rest = path.partition("/:")
    if not rest:
        yield path
    elif path in PARTS:
        for part in PARTS[path]:
            yield f"{base}/{part}"
    else:
        walk.go(base)
        one = walk.find_link(base)
        assert one is not None, f"{base} lists nothing with a page of its own"
        yield one
        if path in BESIDE:
            yield one + BESIDE[path]
        if rest.endswith(":verb?"):
            yield f"{one}/edit"
            yield f"{base}/new"


def name_of(address: str, pattern: str) -> str:
    address, _, beside = address.partition("?")
    kind = address.rsplit("/", 1)[-1] if address.endswith(("/edit", "/new")) else "one"
    words = pattern.split("/:", maxsplit=1)[0].strip("/").replace("/", "-") or "start"
    part = address.rsplit("/", 1)[-1] if pattern in PARTS else kind
    name = f"{words}-{part}" if "/:" in pattern else words
    return f"{name}-beside" if beside else name


@pytest.mark.parametrize("role", ["superadmin", "domain-admin", "monitor", "user"])
def test_pages_are_sound_for_whoever_finds_them_and_closed_to_others(
    site: Platform, make_person: MakePerson, role: str
):
    furnish_site(site)
    person = make_person("walker", role=role)
    furnish(make_person("owner") if role == "monitor" else person)
    # Others see less of the same pages: two windows show their colours and places.
    windows = WINDOWS if role == "superadmin" else WINDOWS[::2]
    if role == "monitor":  # who sees what the superadmin does, with fewer buttons
        windows = WINDOWS[2:3]
    walk = Walk(person)
    seen: list[str] = []
    wrong: list[str] = []
    for pattern, roles in PAGES.items():
        if role not in roles:
            walk.go(pattern.partition("/:")[0])
            assert walk.heading == "Not for your role", pattern
            assert walk.page.get_by_role("link", name="Go to the start").is_visible()
            continue
        for address in addresses(walk, pattern):
            walk.go(address)
            if (role, address) in NOT_FOR:
                assert walk.heading == "Not for your role", address
                continue
            if walk.heading in CLOSED and not address.endswith(("/new", "/edit")):
                wrong.append(f"{address}: {walk.heading}")
            name = name_of(address, pattern)
            wrong += check(walk, name, windows)
            if role == "superadmin" or pattern == "/settings":
                wrong += check_tabs(walk, name, address)
            seen.append(address)
    assert len(seen) >= len([roles for roles in PAGES.values() if role in roles])

    for address in NOWHERE if role == "superadmin" else NOWHERE[:1]:
        walk.go(address)
        assert walk.heading == "There is no such page.", address
        assert walk.page.get_by_role("link", name="Go to the start").is_visible()
    wrong += check(walk, "nowhere", windows)
    assert not wrong, "\n".join(wrong)

    for address in GONE if role == "superadmin" else GONE[:2]:
        walk.go(address)
        text = walk.page.locator("main").inner_text()
        assert "no such" in text.lower() or "not yours" in text, (address, text)
    assert {line.split(" ", 1)[0] for line in walk.take_failed()} <= {"404"}
