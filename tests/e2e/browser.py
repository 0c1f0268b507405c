"""A person in front of a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

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
PASSWORD = "correct horse battery staple 1"


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

    def __init__(self, browser: Browser, url: str, name: str) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 860})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW)
        self.url = url
        self.name = name
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

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
        self.page.goto(f"{self.url}services/backendai/")
        expect(self.page.get_by_role("heading", name="Sessions")).to_be_visible()
        return self.page
