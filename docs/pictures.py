"""Takes the pictures of every page from a made-up research group.

``python docs/pictures.py [--chromium /usr/bin/chromium] [--only WORDS]`` brings a
platform up in a temporary folder, puts people, folders and sessions into it, walks
through the pages, and takes everything down again. Needs Chromium; nothing runs. With
Pillow installed the pictures have a palette of their own and are a third as large.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from picture_site import Site, made_up_site
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

PICTURES: Final = Path(__file__).parent / "source" / "_static" / "screenshots"
ARGUMENTS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--force-color-profile=srgb",
]
WIDE: Final = ViewportSize(width=1440, height=900)
NARROW: Final = ViewportSize(width=360, height=780)
PASSWORD: Final = "correct horse battery staple 1"  # noqa: S105 - thrown away
PATIENCE: Final = 60_000
expect.set_options(timeout=PATIENCE)
COLOURS: Final = 128
SESSION: Final = "/sessions/{segment-512}"
FOLDER: Final = "/data/{satellite-tiles}"
LAUNCH: Final = "/launch?image=pytorch&name=train-2&slot=cpu%3D8&slot=mem%3D2g"


class Picture(NamedTuple):
    """A page to take a picture of; words in braces are names of things on it."""

    name: str
    path: str
    person: str = "mina"
    prepare: Callable[[Page], None] | None = None
    language: str = "en-GB"
    dark: bool = False
    narrow: bool = False


def open_tab(name: str) -> Callable[[Page], None]:
    """Choose one of the parts of a page."""

    def prepare(page: Page) -> None:
        page.get_by_role("tab", name=name).click()

    return prepare


def open_link(name: str) -> Callable[[Page], None]:
    """Follow a link of a list."""

    def prepare(page: Page) -> None:
        page.locator("main").get_by_role("link", name=name, exact=True).first.click()

    return prepare


def simulate(page: Page) -> None:
    """Ask what would be without a node, and look at the answer."""
    page.get_by_role("checkbox", name="gpu-01").first.check()
    page.get_by_role("button", name="Simulate", exact=True).click()
    charts = page.locator("main figure")
    expect(charts.first).to_be_visible()
    charts.last.scroll_into_view_if_needed()


def measure(page: Page) -> None:
    """Wait until charts show what is used now beside what was used before."""
    page.wait_for_timeout(6_000)


def has_charts(picture: Picture) -> bool:
    """Tell whether a picture shows what was used over time."""
    shows_use = picture.path == SESSION and picture.prepare is not None
    return shows_use or picture.prepare is measure


USERS: Final = [
    Picture("start", "/"),
    Picture("dashboard", "/dashboard", prepare=measure),
    Picture("sessions", "/sessions"),
    Picture("sessions-ended", "/sessions?status=ended"),
    Picture("launch", f"{LAUNCH}&slot=cuda.device%3D1"),
    Picture("launch-waits", f"{LAUNCH}&slot=cuda.device%3D6"),
    Picture("launch-batch", "/launch?type=batch&startup_command=python+train.py"),
    Picture("session", SESSION),
    Picture("session-use", SESSION, prepare=open_tab("Utilisation")),
    Picture("session-waits", "/sessions/{sweep-lr}"),
    Picture("session-ended", "/sessions/{export-onnx}"),
    Picture("data", "/data"),
    Picture("folder", FOLDER),
    Picture("folder-file", f"{FOLDER}?show=labels.csv"),
    Picture("folder-sharing", f"{FOLDER}?side=sharing"),
    Picture("agent-summary", "/agent-summary"),
    Picture("settings", "/settings"),
    Picture("ssh-key", "/settings?tab=ssh"),
]
ADMINISTRATORS: Final = [
    Picture(name, path, "sora", prepare)
    for name, path, prepare in (
        ("dashboard-site", "/dashboard", measure),
        ("sessions-everybody", "/sessions?all=1", None),
        ("users", "/admin/users", None),
        ("user", "/admin/users/mina", None),
        ("user-form", "/admin/users/mina/edit", None),
        ("keypairs", "/admin/keypairs", None),
        ("projects", "/admin/projects", None),
        ("project", "/admin/projects", open_link("vision")),
        ("domains", "/admin/domains", None),
        ("images", "/admin/images", None),
        ("presets", "/admin/presets", None),
        ("registries", "/admin/registries", None),
        ("queue", "/admin/scheduler", None),
        ("shares", "/admin/scheduler/shares", None),
        ("preemption", "/admin/scheduler/preemption", None),
        ("simulate", "/admin/scheduler/simulate", None),
        ("simulate-result", "/admin/scheduler/simulate", simulate),
        ("reservations", "/admin/reservations", None),
        ("policies", "/admin/policies/keypair", None),
        ("policy-form", "/admin/policies/keypair/students/edit", None),
        ("nodes", "/nodes", None),
        ("node", "/nodes", open_link("gpu-01")),
        ("groups", "/admin/groups", None),
        ("slot-types", "/admin/slot-types", None),
        ("storage", "/admin/storage", None),
        ("storage-host", "/admin/storage/local", None),
        ("maintenance", "/admin/maintenance", None),
        ("audit", "/admin/audit", None),
        ("about", "/admin/about", None),
    )
]
LOOKS: Final = [
    Picture("forbidden", "/admin/users"),
    Picture("dashboard-dark", "/dashboard", prepare=measure, dark=True),
    Picture("session-dark", SESSION, prepare=open_tab("Utilisation"), dark=True),
    Picture("start-narrow", "/", narrow=True),
    Picture("sessions-narrow", "/sessions", narrow=True, dark=True),
    Picture("folder-narrow", FOLDER, narrow=True),
    Picture("launch-korean", f"{LAUNCH}&slot=cuda.device%3D1", language="ko-KR"),
    Picture("sessions-japanese", "/sessions", language="ja-JP"),
    Picture("data-thai", "/data", language="th-TH"),
]


def make_small(path: Path) -> None:
    """Give a picture the colours that it has, if somebody can."""
    try:
        Image: Any = importlib.import_module("PIL.Image")  # noqa: N806 - as it is called
    except ImportError:
        return
    with Image.open(path) as taken:
        picture = taken.convert("RGB")
    # What is often keeps its colour; what is seldom, as a green dot, gets one like it.
    pixels = np.asarray(picture).reshape(-1, 3).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    known, place, often = np.unique(pixels, return_inverse=True, return_counts=True)
    seldom = picture.quantize(COLOURS // 2, method=Image.Quantize.MAXCOVERAGE)
    colours = np.stack([known >> 16, known >> 8 & 255, known & 255], axis=1)
    frequent = colours[np.argsort(-often)[: COLOURS // 2]]
    others = np.array(seldom.getpalette()[: 3 * (COLOURS // 2)]).reshape(-1, 3)
    chosen = np.concatenate([frequent, others])
    nearest = ((colours[:, None] - chosen[None]) ** 2).sum(2).argmin(1).astype(np.uint8)
    few = Image.fromarray(nearest[place].reshape(picture.height, picture.width))
    few.putpalette(chosen.ravel().tolist())
    few.save(path, optimize=True)


class Walk:
    """Somebody's way through the pages."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self._browser = browser
        self._site = site
        self._logins: dict[str, Any] = {}

    def _log_in(self, person: str) -> Any:
        if person not in self._logins:
            with self._page({"locale": "en-GB"}) as page:
                self._sign_in(page, person)
                self._logins[person] = page.context.storage_state()
        return self._logins[person]

    def _sign_in(self, page: Page, person: str) -> None:
        once = self._site.passwords[person]
        page.goto(self._site.ready["url"])
        page.fill("input[name=username]", person)
        page.fill("input[name=password]", once)
        page.click("#login_submit")
        page.wait_for_selector("input[name=new_password]")
        page.fill("input[name=password]", once)
        page.fill("input[name=new_password]", PASSWORD)
        page.fill("input[name=new_password_again]", PASSWORD)
        page.click("#login_submit")
        expect(page.locator("input[name=new_password]")).to_have_count(0)
        # The console's own login, so that no picture begins with a way round.
        page.goto(f"{self._site.ready['url']}services/backendai/")
        expect(page.locator("main h1")).to_be_visible()

    @contextmanager
    def _page(self, looks: dict[str, Any]) -> Iterator[Page]:
        context = self._browser.new_context(**{"viewport": WIDE, **looks})
        try:
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            yield page
        finally:
            context.close()

    def take(self, picture: Picture) -> Path:
        """Take one picture."""
        looks = {
            "locale": picture.language,
            "color_scheme": "dark" if picture.dark else "light",
            "viewport": NARROW if picture.narrow else WIDE,
            "storage_state": self._log_in(picture.person),
            "reduced_motion": "reduce",
        }
        path = picture.path
        for name, identifier in self._site.ids.items():
            path = path.replace(f"{{{name}}}", identifier)
        with self._page(looks) as page:
            page.goto(f"{self._site.ready['url']}services/backendai{path}")
            settle(page)
            if picture.prepare:
                picture.prepare(page)
                settle(page)
            taken = PICTURES / f"{picture.name}.png"
            page.screenshot(path=taken)
        make_small(taken)
        return taken


def settle(page: Page) -> None:
    """Wait until a page shows everything that it asks for."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .bai-skeleton")).to_have_count(0)
    page.wait_for_timeout(1500)  # charts are drawn once they are measured
    expect(page.locator("main .bai-skeleton")).to_have_count(0)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--only", nargs="*", help="names of the pictures to take")
    options = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    wanted = [
        picture
        for picture in (*ADMINISTRATORS, *USERS, *LOOKS)
        if not options.only or picture.name in options.only
    ]
    wanted.sort(key=has_charts)  # they show the past, and want one
    with made_up_site() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=ARGUMENTS
        )
        walk = Walk(browser, site)
        for picture in wanted:
            taken = walk.take(picture)
            print(taken.name, taken.stat().st_size)  # noqa: T201 - tells how far it is
        browser.close()


if __name__ == "__main__":
    main()
