"""Looking at dialogs, one after the other: each opens, is seen, and is closed."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import AXE_RULES, COLOUR_RULES, Person

# In this order one thing changes at a time: first colours alone, then places, then
# colours again.
WINDOWS = (
    ("light", 1280, AXE_RULES),
    ("dark", 1280, COLOUR_RULES),
    ("dark", 360, AXE_RULES),
    ("light", 360, COLOUR_RULES),
)
DIALOG = "[role=dialog]"
# How far something sticks out of the window, or what is in it out of itself.
TOO_WIDE = """one => {
    const { left, right } = one.getBoundingClientRect()
    return Math.max(one.scrollWidth - one.clientWidth, -left, right - innerWidth)
}"""


class Dialogs:
    """What somebody finds wrong with the dialogs that they open."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.page: Page = person.page
        self.wrong: list[str] = []
        self.seen: list[str] = []

    def see(self, name: str, *ways: Callable[[], Locator]) -> Locator:
        """Follow *ways*, each a thing to press, and look at the dialog that opens."""
        for way in ways:
            way().click()
        dialog = self.page.get_by_role("dialog", name=re.compile(name))
        expect(dialog).to_be_visible()
        for scheme, width, rules in WINDOWS:
            self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            self.page.set_viewport_size({"width": width, "height": 860})
            where = f"{name}, {scheme}, {width} px"
            self.person.look(f"dialog-{len(self.seen):02}-{scheme}-{width}")
            found = self.person.find_barriers(DIALOG, rules)
            self.wrong.extend(f"{where}: {each}" for each in found)
            over = self.person.overflows()
            inner = int(dialog.evaluate(TOO_WIDE))
            if over > 0 or inner > 0:
                self.wrong.append(f"{where}: {max(over, inner)} px too wide")
        self.page.set_viewport_size({"width": 1280, "height": 860})
        self.page.emulate_media(color_scheme="light")
        self.seen.append(name)
        return dialog

    def see_menu(self, way: Callable[[], Locator]) -> None:
        """Open a menu on a narrow screen: all of what it says is to be read there."""
        self.page.set_viewport_size({"width": 360, "height": 860})
        way().click()
        for entry in self.page.get_by_role("menuitem").all():
            if entry.evaluate(TOO_WIDE) > 0:
                self.wrong.append(f"{entry.inner_text()}: runs out of the menu")
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_role("menu")).to_have_count(0)
        self.page.set_viewport_size({"width": 1280, "height": 860})

    def look(self, name: str, *ways: Callable[[], Locator]) -> None:
        """See a dialog, and leave it as it is."""
        dialog = self.see(name, *ways)
        self.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    def button(self, name: str, *, exact: bool = True) -> Callable[[], Locator]:
        """Name a button to be pressed."""
        return lambda: self.page.get_by_role("button", name=name, exact=exact).first

    def item(self, name: str) -> Callable[[], Locator]:
        """Name an entry of the menu that is open."""
        return lambda: self.page.get_by_role("menuitem", name=name, exact=True)

    def box(self, name: str) -> Callable[[], Locator]:
        """Name a row to be chosen."""
        return lambda: self.page.get_by_role("checkbox", name=name, exact=True)
