"""Takes the pictures in the documentation from a platform of its own.

``python docs/screenshots.py [--chromium /usr/bin/chromium]`` brings a platform up in
a temporary folder, walks through it as its first administrator, and takes it down
again. Needs Chromium, and whatever sessions run in on this machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pictures import make_small
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

PICTURES: Final = Path(__file__).parent / "source" / "_static" / "screenshots"
BACKENDAI: Final = str(Path(sys.executable).with_name("backendai"))
ARGUMENTS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]
WINDOW: Final = ViewportSize(width=1280, height=760)
PASSWORD: Final = "correct horse battery staple 1"  # noqa: S105 - thrown away
CELL: Final = 'import os\n[os.environ["BACKENDAI_SESSION_NAME"], 6 * 7]'
WIDGET: Final = "from backendai_lab import sessions\nsessions"
QUIET: Final = ".Toastify { display: none }"  # JupyterLab's questions to newcomers
PATIENCE: Final = 60_000


@contextmanager
def platform() -> Iterator[dict[str, Any]]:
    """Run a platform in a folder of its own; yields what ``up --json`` says."""
    with tempfile.TemporaryDirectory(prefix="backendai-pictures-") as folder:
        data_dir = f"--data-dir={folder}"
        try:
            up = [BACKENDAI, "up", data_dir, "--detach", "--json"]
            done = subprocess.run(up, check=True, stdout=subprocess.PIPE)  # noqa: S603
            yield json.loads(done.stdout)
        finally:
            down = [BACKENDAI, "down", data_dir, "--sessions"]
            subprocess.run(down, check=True, stdout=sys.stderr)  # noqa: S603


def take(page: Page, name: str, *, whole: bool = True) -> None:
    """Take the picture called *name*, of the whole page or of what a screen shows."""
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path, full_page=whole, style=QUIET)
    make_small(path)


def sign_in(page: Page, ready: dict[str, Any]) -> None:
    """Sign in with the one-time password, and choose another."""
    page.goto(ready["url"])
    page.fill("input[name=username]", ready["admin"])
    page.fill("input[name=password]", ready["password"])
    page.click("[type=submit]")
    page.wait_for_selector("input[name=new_password]")
    page.wait_for_load_state("networkidle")
    take(page, "new-password")
    page.fill("input[name=password]", ready["password"])
    page.fill("input[name=new_password]", PASSWORD)
    page.fill("input[name=new_password_again]", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/hub/spawn*")


def launch(page: Page, ready: dict[str, Any]) -> None:
    """Fill the launch form, start the session, and run a cell in it."""
    page.goto(f"{ready['url']}hub/spawn/{ready['admin']}/first")
    page.get_by_role("textbox", name="CPU").first.fill("0.5")
    page.get_by_role("textbox", name="Memory").first.fill("1")
    page.get_by_text("More options").click()
    page.get_by_role("textbox", name="Name").fill("first")
    expect(page.get_by_text("Starts now")).to_be_visible()
    page.wait_for_load_state("networkidle")
    take(page, "launch-form")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/user/**/lab**", timeout=PATIENCE)
    page.get_by_text("Python 3 (ipykernel)").first.click(timeout=PATIENCE)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=PATIENCE)
    cell = page.locator(".jp-Notebook .cm-content").first
    cell.click(timeout=PATIENCE)
    page.keyboard.insert_text(CELL)
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text(
        "42", timeout=PATIENCE
    )
    take(page, "notebook")


def ask(page: Page, ready: dict[str, Any], name: str, slots: dict[str, str]) -> None:
    """Ask JupyterHub for another session, without waiting for it."""
    answer = page.request.post(
        f"{ready['url']}hub/api/users/{ready['admin']}/servers/{name}",
        headers={"Authorization": f"token {ready['token']}"},
        data={"name": name, "slots": slots},
    )
    expect(answer).to_be_ok()


def show_console(page: Page, ready: dict[str, Any]) -> None:
    """Show the console with sessions that run and one that waits."""
    ask(page, ready, "train-1", {"cpu": "1", "mem": "2g"})
    ask(page, ready, "sweep-2", {"cpu": "1", "mem": "4g"})
    page.goto(f"{ready['url']}services/backendai/sessions")
    rows = page.locator("main tbody")
    expect(rows.get_by_text("Running", exact=True)).to_have_count(2, timeout=PATIENCE)
    expect(rows.get_by_text("Waiting", exact=True)).to_have_count(1, timeout=PATIENCE)
    expect(rows.get_by_text("Memory", exact=True)).to_have_count(2, timeout=PATIENCE)
    take(page, "console", whole=False)
    page.goto(f"{ready['url']}services/backendai/nodes")
    page.locator("main tbody a").first.click()
    page.get_by_text("docker").or_(page.get_by_text("process")).first.wait_for()
    take(page, "first-node", whole=False)


def show_lab(page: Page, ready: dict[str, Any]) -> None:
    """Show the same sessions in JupyterLab: in its panel, and in a notebook."""
    page.goto(f"{ready['url']}user/{ready['admin']}/first/lab")
    cell = page.locator(".jp-Notebook .cm-content").last
    cell.click(timeout=PATIENCE)
    page.keyboard.insert_text(WIDGET)
    page.keyboard.press("Shift+Enter")
    shown = page.locator(".jp-OutputArea-output .backendai-sessions")
    expect(shown).to_contain_text("sweep-2", timeout=PATIENCE)
    page.locator('.jp-SideBar [data-id="backendai-sessions"]').click()
    panel = page.locator("#backendai-sessions")
    expect(panel).to_contain_text("sweep-2", timeout=PATIENCE)
    expect(shown.get_by_role("meter", name="Memory").first).to_be_visible(
        timeout=PATIENCE
    )
    take(page, "lab", whole=False)


def walk(browser: Browser, ready: dict[str, Any]) -> None:
    """Take every picture."""
    context = browser.new_context(viewport=WINDOW, locale="en-GB")
    page = context.new_page()
    sign_in(page, ready)
    launch(page, ready)
    show_console(page, ready)
    show_lab(page, ready)
    context.close()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    options = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    with platform() as ready, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=ARGUMENTS
        )
        walk(browser, ready)
        browser.close()


if __name__ == "__main__":
    main()
