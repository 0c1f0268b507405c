"""A person in front of a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.e2e.up import until
from tests.requirement_marks import find_chromium

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = 60_000
expect.set_options(timeout=30_000)
ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "labextension/node_modules/axe-core/axe.min.js"
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""All that colours change."""
PASSWORD = "correct horse battery staple 1"
END_TRANSITIONS = """document.getAnimations()
    .filter(one => Number.isFinite(one.effect.getComputedTiming().endTime))
    .forEach(one => one.finish())"""
LINE = 80
"""More letters on one line are hard to read (WCAG 1.4.8)."""
LONG_LINES = """most => {
    const texts = document.createTreeWalker(document.querySelector('main'), 4)
    const found = []
    const range = document.createRange()
    while (texts.nextNode()) {
        const text = texts.currentNode.data.trim()
        range.selectNodeContents(texts.currentNode)
        const widths = [...range.getClientRects()].map(line => line.width)
        const all = widths.reduce((sum, width) => sum + width, 0)
        if (text.length * Math.max(...widths) > most * all
            && !texts.currentNode.parentElement.closest('pre, code, option'))
            found.push(text)
    }
    return found
}"""
# What a browser refused because of the page's policy, also where it says nothing of it.
TELL_VIOLATIONS = """addEventListener('securitypolicyviolation', event =>
    console.error('Content Security Policy: ' + event.effectiveDirective
        + ' refused ' + (event.blockedURI || event.sample) + ' in ' + location))"""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS
        )
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody with a browser of their own."""

    def __init__(
        self,
        browser: Browser,
        url: str,
        name: str,
        *,
        language: str = "en-GB",
        scheme: Literal["light", "dark"] = "light",
        width: int = 1280,
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 860},
            locale=language,
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        self.context.add_init_script(TELL_VIOLATIONS)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW)
        self.url = url
        self.name = name
        self.errors: list[str] = []
        self.listen(self.page)

    def listen(self, page: Page) -> None:
        """Keep what goes wrong in a page, or is refused there by its policy."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def open(self, path: str) -> Page:
        """Open one of the console's pages, such as ``sessions``."""
        self.page.goto(f"{self.url}services/backendai/{path}")
        expect(self.page.locator("main h1")).to_be_visible()
        return self.page

    def find_barriers(
        self, root: str = "body", rules: list[str] = AXE_RULES
    ) -> list[str]:
        """Return what axe finds that keeps people out (WCAG 2.2 AA), as it stands."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        # Half-way between two colours nothing is as it shall be.
        self.page.evaluate(END_TRANSITIONS)
        found = self.page.evaluate(
            """([root, rules]) => axe.run(root, {
                runOnly: rules, resultTypes: ['violations'], preload: false
            }).then(done => done.violations.flatMap(v => v.nodes.map(
                    n => `${v.id}: ${n.target.join(' ')} ${n.failureSummary}`)))""",
            [root, rules],
        )
        return list(found)

    def overflows(self) -> int:
        """Return how many pixels the page is wider than the window."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - window.innerWidth"
            )
        )

    def long_lines(self) -> list[str]:
        """Return what has more letters on one line than people like to read."""
        found: list[str] = self.page.evaluate(LONG_LINES, LINE)
        return found

    def check_looks(self, what: str, root: str = "body") -> None:
        """See the page as it stands in light and dark, wide and narrow.

        Nothing may keep anybody out, nor make the page scroll sideways.
        """
        wide = self.page.viewport_size
        for scheme, rules in (("light", AXE_RULES), ("dark", COLOUR_RULES)):
            self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for width in (1280, 360):
                self.page.set_viewport_size({"width": width, "height": 860})
                self.look(f"{what}-{scheme}-{width}")
                found = self.find_barriers(root, rules)
                assert found == [], (what, scheme, width, found)
                assert self.overflows() <= 0, (what, scheme, width)
        self.page.emulate_media(color_scheme="light")
        if wide is not None:
            self.page.set_viewport_size(wide)

    def look(self, what: str) -> None:
        """Keep a picture, where somebody has asked for pictures."""
        folder = os.environ.get("BACKENDAI_TEST_PICTURES")
        if folder:
            self.page.screenshot(path=str(Path(folder) / f"{self.name}-{what}.png"))

    def log_in(self, once: str) -> None:
        """Log in with a one-time password, and choose a password when asked to."""
        page = self.page
        page.goto(self.url)
        page.get_by_label("Username").fill(self.name)
        page.locator("input[name=password]").fill(once)
        page.locator("#login_submit").click()
        page.locator("input[name=new_password]").wait_for()
        page.locator("input[name=password]").fill(once)
        page.locator("input[name=new_password]").fill(PASSWORD)
        page.locator("input[name=new_password_again]").fill(PASSWORD)
        self.look("choose-password")
        page.locator("#login_submit").click()
        page.wait_for_url("**/hub/**")
        expect(page.locator("input[name=new_password]")).to_have_count(0)

    def launch(self, name: str) -> None:
        """Ask for a session with the form, and wait until JupyterLab is open."""
        page = self.page
        page.goto(f"{self.url}hub/spawn")
        page.get_by_label("CPU", exact=True).fill("0.5")
        page.get_by_label("Memory", exact=True).fill("0.5")
        page.get_by_text("More options").click()
        page.get_by_label("name", exact=False).last.fill(name)
        expect(page.get_by_text("Starts now")).to_be_visible()
        self.look("form")
        page.locator("form#spawn_form [type=submit]").first.click()
        page.wait_for_url("**/lab**")
        expect(page.locator(".jp-Launcher")).to_be_visible(timeout=SLOW)
        self.look("lab")

    def run_cell(self, code: str, prints: str) -> None:
        """Open a notebook, run a cell and read what it prints."""
        page = self.page
        page.locator(".jp-LauncherCard", has_text="Python 3").first.click()
        cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
        cell.wait_for()
        expect(page.locator(".jp-NotebookPanel-toolbar")).to_contain_text(
            "Python 3", timeout=SLOW
        )
        expect(page.locator("#jp-bottom-panel")).to_contain_text("Idle", timeout=SLOW)
        cell.click()
        page.keyboard.type(code)
        page.keyboard.press("Shift+Enter")
        self.look("ran")
        output = page.locator(".jp-OutputArea-output").first
        expect(output).to_contain_text(prints, timeout=SLOW)
        self.look("cell")

    def type_in_terminal(self, command: str) -> str:
        """Open a terminal, run a command, and return what it printed.

        The screen is a canvas, so what is printed also goes to a file in the home
        folder, which is then read through the server.
        """
        page = self.page
        page.locator(".lm-MenuBar-item", has_text="File").click()
        page.locator(".lm-Menu-item", has_text="New").first.hover()
        page.locator(".lm-Menu-item", has_text="Terminal").click()
        screen = page.locator(".jp-Terminal:visible .xterm-screen").first
        screen.wait_for()
        screen.click()
        page.keyboard.type(f"({command}) 2>&1 | tee ~/typed; touch ~/typed-done\n")
        base = page.url.split("/lab")[0]
        until(
            lambda: page.request.get(f"{base}/api/contents/typed-done").ok,
            "the terminal has run the command",
        )
        self.look("terminal")
        printed = page.request.get(f"{base}/api/contents/typed?content=1").json()
        page.request.delete(
            f"{base}/api/contents/typed-done",
            headers={"X-XSRFToken": self._cookie("_xsrf", base)},
        )
        return str(printed["content"])

    def _cookie(self, name: str, url: str) -> str:
        for cookie in self.context.cookies(f"{url}/"):
            if cookie["name"] == name:
                return cookie["value"]
        return ""

    def open_console(self) -> Page:
        """Open the console's list of sessions."""
        page = self.open("sessions")
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
        return page
