"""What people do with folders and files on the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import Person


def make_folder(person: Person, name: str) -> str:
    """Make a folder with the form, and return its id."""
    page = person.open("data")
    page.get_by_role("button", name="New folder").first.click()
    form = page.get_by_role("dialog", name="New folder")
    form.get_by_label("Name").fill(name)
    form.get_by_role("button", name="Create").click()
    expect(form).to_have_count(0)
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    return page.url.split("?", maxsplit=1)[0].rsplit("/", maxsplit=1)[-1]


def row(page: Page, name: str) -> Locator:
    """Find the row of one file, or folder in the folder."""
    return page.get_by_role("row").filter(
        has=page.get_by_role("rowheader").get_by_text(name, exact=True)
    )


def tray(page: Page) -> Locator:
    """Find what is being uploaded."""
    return page.get_by_role("region", name="Uploads", exact=True)


def choose(page: Page, entry: Locator, deed: str) -> None:
    """Do something of a row's menu."""
    entry.get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name=deed).click()


class Drag:
    """Files on their way from somebody's desk into the page, by the mouse."""

    def __init__(self, page: Page, over: Locator, *paths: Path) -> None:
        self._cdp = page.context.new_cdp_session(page)
        box = over.bounding_box()
        assert box is not None
        self._place = (box["x"] + box["width"] / 2, box["y"] + 60)
        self._files = [str(path) for path in paths]

    def _send(self, kind: str) -> None:
        x, y = self._place
        carried: dict[str, Any] = {
            "items": [],
            "files": self._files,
            "dragOperationsMask": 1,
        }
        self._cdp.send(
            "Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": carried}
        )

    def enter(self) -> None:
        """Come over the page, and stay there."""
        self._send("dragEnter")
        self._send("dragOver")

    def drop(self) -> None:
        """Let go."""
        self._send("drop")
        self._cdp.detach()
