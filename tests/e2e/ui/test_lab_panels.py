"""Panels and tabs in a real JupyterLab, started by our spawner in somebody's hub.

The Hub has a base URL of its own and a domain for each of its users.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, Response, expect

from tests.e2e.browser import Person
from tests.e2e.existing_hub import Site, existing_hub

pytestmark = [pytest.mark.browser, pytest.mark.bwrap, pytest.mark.timeout(600)]


def keeps_sessions_page(response: Response) -> bool:
    """Tell whether JupyterLab has stored that a session's page is open."""
    asked = response.request
    stores = "/api/workspaces/" in asked.url and asked.method == "PUT"
    return stores and "/sessions/" in (asked.post_data or "")


@pytest.fixture(scope="module")
def hub() -> Iterator[Site]:
    with existing_hub(base="/science/", subdomains=True) as up:
        yield up


def log_in(person: Person) -> None:
    page = person.page
    page.goto(person.url)
    page.get_by_label("Username").fill(person.name)
    page.locator("input[name=password]").fill("any")
    page.locator("#login_submit").click()
    page.wait_for_url("**/hub/**")


def hear_streams(page: Page) -> set[Request]:
    """The event streams that are open, now and whenever one looks at them again."""
    open_now: set[Request] = set()

    def begin(request: Request) -> None:
        if "/api/events" in request.url:
            open_now.add(request)

    def end(request: Request) -> None:
        open_now.discard(request)

    page.on("request", begin)
    page.on("requestfinished", end)
    page.on("requestfailed", end)
    page.reload()
    return open_now


def open_panel(page: Page, name: str) -> None:
    page.locator(f'.jp-SideBar [data-id="backendai-{name}"]').click()
    expect(page.locator(f"#backendai-{name} h2")).to_be_visible()


def test_sessions_and_folders_are_at_hand_beside_a_notebook(
    hub: Site, browser: Browser
):
    grace = Person(browser, hub.url, "grace")
    log_in(grace)
    grace.launch("first")
    page = grace.page
    assert page.url.startswith("http://grace.hub.localhost:")

    # Whatever is seen later hears the stream of the start; no token is in the page.
    streams = hear_streams(page)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("first · 1 running")
    config = json.loads(page.locator("#jupyter-config-data").text_content() or "")
    assert (config["hubUser"], config["token"]) == ("grace", "")
    assert len(streams) == 1

    open_panel(page, "sessions")
    panel = page.locator("#backendai-sessions")
    expect(panel.get_by_role("button", name="first", exact=True)).to_be_visible()
    expect(panel).to_contain_text("Running")
    expect(panel).to_contain_text("Live")
    grace.look("lab-sessions")
    assert grace.find_barriers("#backendai-sessions") == []
    assert len(streams) == 1

    # A second panel and a tab hear the same stream and ask the same cache.
    open_panel(page, "data")
    page.get_by_role("button", name="New folder").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("papers")
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator("#backendai-data")).to_contain_text("papers")
    grace.look("lab-data")
    assert grace.find_barriers("#backendai-data") == []
    open_panel(page, "sessions")
    # JupyterLab writes down what is open a little while after it was opened.
    with page.expect_response(keeps_sessions_page):
        panel.get_by_role("button", name="first", exact=True).click()
    tab = page.locator(".bai-tab:visible")
    expect(tab.get_by_role("heading", name="first", level=1)).to_be_visible()
    grace.look("lab-session")
    assert grace.find_barriers(".bai-tab:not([hidden])") == []
    assert len(streams) == 1

    # What was open is open again after the page was loaded anew.
    page.reload()
    expect(page.locator(".lm-TabBar-tab.lm-mod-current")).to_contain_text(
        ["first"], timeout=60_000
    )
    expect(panel.get_by_role("button", name="first", exact=True)).to_be_visible()

    # Theme and language follow JupyterLab and its settings.
    page.locator(".lm-MenuBar-item", has_text="Settings").click()
    page.locator(".lm-Menu-item", has_text="Theme").first.hover()
    page.get_by_role("menuitem", name="JupyterLab Dark", exact=True).click()
    expect(page.locator("[data-bai-scheme=dark]").first).to_be_attached()
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)
    expect(panel).to_contain_text("Live")
    grace.look("lab-dark")
    assert grace.find_barriers("#backendai-sessions") == []
    assert grace.find_barriers(".bai-tab:not([hidden])") == []
    open_panel(page, "data")
    assert grace.find_barriers("#backendai-data") == []
    speak_thai(grace)
    way = page.locator('.jp-SideBar [data-id="backendai-data"]')
    expect(way).to_have_attribute("title", "โฟลเดอร์ Backend.AI")
    assert grace.errors == []


def test_a_notebook_shows_widgets_that_work(hub: Site, browser: Browser):
    ada = Person(browser, hub.url, "ada")
    log_in(ada)
    ada.launch("desk")
    ada.run_cell("from backendai_lab import sessions; sessions", "desk")
    page = ada.page
    shown = page.locator(".jp-OutputArea-output .backendai-sessions")
    expect(shown).to_contain_text("Running")
    expect(shown).to_contain_text("live")
    expect(shown.get_by_role("button", name="Stop")).to_be_visible()
    expect(shown.get_by_role("meter", name="Memory")).to_be_visible()
    ada.look("lab-widgets")
    fill_form_while_a_cell_runs(ada, shown)
    be_told_beside_a_notebook(ada)
    assert ada.errors == []


def fill_form_while_a_cell_runs(person: Person, panel: Locator) -> None:
    """The cell runs until it has seen that the panel has heard of a click."""
    keyboard = person.page.keyboard
    keyboard.type(_UNTIL_FILLED)
    keyboard.press("Shift+Enter")
    expect(person.page.locator("#jp-bottom-panel")).to_contain_text("Busy")
    panel.get_by_text("New session").click()
    environment = panel.get_by_label("Environment")
    expect(environment.get_by_role("option")).not_to_have_count(0)
    printed = person.page.locator(".jp-OutputArea-output").last
    expect(printed).to_have_text("filled meanwhile")
    person.look("lab-widgets-while-busy")


_UNTIL_FILLED = """from time import sleep
while not sessions._panel.form.image.options: sleep(0.1)
print("filled meanwhile")"""


def be_told_beside_a_notebook(person: Person) -> None:
    """What runs and what has ended is told though nothing else of ours is open."""
    page = person.page
    status = page.locator("#jp-main-statusbar")
    expect(status).to_contain_text("desk · 1 running")
    job = {"image": "jupyterlab", "type": "batch", "slots": {"cpu": "0.1"}}

    told = page.locator(".Toastify__toast")
    page.evaluate(_REMEMBER_TOLD)
    long = ask(page, "POST", "sessions", {**job, "startup_command": "sleep 600"})
    expect(status).to_contain_text("desk · 2 running")
    ask(page, "POST", f"sessions/{long['id']}/terminate", {"force": False})
    expect(status).to_contain_text("desk · 1 running")
    page.wait_for_function(_HAS_ENDED, arg=api_of(page, f"sessions/{long['id']}"))

    short = {**job, "name": "too-short", "startup_command": "exit 3"}
    ask(page, "POST", "sessions", short)
    expect(told).to_have_text("too-short: Failed")
    # Whoever stops something knows it: what ended before would have been told before.
    assert page.evaluate("[...window.told]") == ["too-short: Failed"]
    expect(page.locator(".bai-root")).to_have_count(0)
    person.look("lab-told-beside-a-notebook")


_REMEMBER_TOLD = """() => {
    window.told = new Set();
    new MutationObserver(() => {
        for (const toast of document.querySelectorAll('.Toastify__toast')) {
            window.told.add(toast.textContent);
        }
    }).observe(document.body, {childList: true, subtree: true});
}"""
_HAS_ENDED = "url => fetch(url).then(answer => answer.json()).then(s => s.ended_at)"


def api_of(page: Page, path: str) -> str:
    """Return where the platform answers pages in this JupyterLab."""
    return f"{page.url.split('/lab')[0]}/backendai/api/{path}"


def ask(page: Page, method: str, path: str, body: dict[str, object]) -> dict[str, str]:
    """Ask the platform as pages in this JupyterLab do."""
    answer: dict[str, str] = page.evaluate(
        """async ([url, method, body]) => {
            const token = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)[1];
            const answer = await fetch(url, {
                method,
                headers: {'X-XSRFToken': token, 'Content-Type': 'application/json'},
                body: JSON.stringify(body)
            });
            if (!answer.ok) { throw new Error(await answer.text()); }
            return answer.json();
        }""",
        [api_of(page, path), method, body],
    )
    return answer


def speak_thai(person: Person) -> None:
    """Choose it as the editor of settings does, and load JupyterLab again."""
    page = person.page
    base = page.url.split("/lab")[0]
    kept = page.evaluate(
        """([url, token, raw]) => fetch(url, {
            method: 'PUT',
            headers: {'X-XSRFToken': token, 'Content-Type': 'application/json'},
            body: JSON.stringify({raw})
        }).then(answer => answer.ok)""",
        [
            f"{base}/lab/api/settings/@backendai/lab:plugin",
            person._cookie("_xsrf", base),
            '{"language": "th"}',
        ],
    )
    assert kept
    page.reload()


def run_command(page: Page, words: str) -> None:
    """Run a command from the palette."""
    page.keyboard.press("Control+Shift+C")
    # A second field lies hidden in the top bar.
    page.locator(".lm-CommandPalette-input:visible").fill(words)
    item = page.locator(".lm-CommandPalette-item:visible", has_text=words)
    item.first.click()


def expect_page(page: Page, name: str) -> Locator:
    """Wait until a tab shows a page of ours; returns what is drawn in it."""
    tab = page.locator(".bai-tab:visible")
    expect(tab.get_by_role("heading", name=name, level=1)).to_be_visible()
    expect(tab_of(page, name)).to_have_attribute("aria-selected", "true")
    return tab


def tab_of(page: Page, name: str) -> Locator:
    bar = page.locator("#jp-main-dock-panel")
    return bar.get_by_role("tab", name=name, exact=True)


def keeps(*paths: str) -> Callable[[Response], bool]:
    """Tell when JupyterLab has stored that tabs with these pages are open."""

    def does(response: Response) -> bool:
        asked = response.request
        stores = "/api/workspaces/" in asked.url and asked.method == "PUT"
        return stores and all(path in (asked.post_data or "") for path in paths)

    return does


def test_pages_open_in_tabs_that_stay_and_are_not_closed_by_accident(
    hub: Site, browser: Browser
):
    alan = Person(browser, hub.url, "alan")
    log_in(alan)
    alan.launch("desk")
    page = alan.page

    section = page.locator(".jp-Launcher-section", has_text="Backend.AI")
    cards = section.locator(".jp-LauncherCard")
    expect(cards).to_have_count(2)
    cards.filter(has_text="New session").click()
    expect_page(page, "New session")
    alan.look("lab-launch")
    assert alan.find_barriers(".bai-tab:not([hidden])") == []
    tab_of(page, "Launcher").click()
    cards.filter(has_text="Folders and files").click()
    tab = expect_page(page, "Data")
    tab.get_by_role("button", name="New folder").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("notes")
    dialog.get_by_role("button", name="Create").click()
    tab.get_by_role("button", name="notes", exact=True).click()
    tab = expect_page(page, "notes")
    tab.locator("input[data-picks=files]").set_input_files(
        {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"old\n"}
    )
    plan = tab.get_by_role("button", name="plan.md", exact=True)
    expect(plan).to_be_visible()

    page.keyboard.press("Control+Shift+C")
    ours = page.locator(".lm-CommandPalette-item[data-command^='backendai:']:visible")
    page.locator(".lm-CommandPalette-input:visible").fill("Backend.AI")
    expect(ours).to_have_count(5)
    page.keyboard.press("Escape")
    for words, heading in (
        ("Dashboard", "Dashboard"),
        ("Settings of Backend.AI", "Settings"),
    ):
        run_command(page, words)
        expect_page(page, heading)
    run_command(page, "All sessions")
    tab = expect_page(page, "Sessions")
    with page.expect_response(keeps("/launch", "/dashboard", "/data/", '"desk"')):
        tab.get_by_role("button", name="desk", exact=True).click()
        expect_page(page, "desk")

    page.reload()
    for name in ("New session", "Dashboard", "Settings", "notes", "desk"):
        tab_of(page, name).click()
        expect_page(page, name)
    page.locator("#jp-main-statusbar").get_by_text("desk · 1 running").click()
    expect(page.locator("#backendai-sessions h2")).to_be_visible()

    # Neither its own button nor a command closes what has something unsaved in it.
    tab_of(page, "notes").click()
    tab = expect_page(page, "notes")
    plan.click()
    tab.get_by_role("button", name="Edit", exact=True).click()
    text = tab.get_by_role("textbox", name="Content")
    expect(text).to_have_value("old\n")
    text.fill("new\n")
    question = page.get_by_role("dialog", name="Leave without saving?")
    tab_of(page, "notes").locator(".lm-TabBar-tabCloseIcon").click()
    expect(question).to_be_visible()
    assert alan.find_barriers("[role=dialog]") == []
    page.get_by_role("button", name="Stay here").click()
    expect(question).to_have_count(0)
    expect(text).to_have_value("new\n")
    # Out of the field, where keys are text.
    tab.get_by_role("heading", name="notes", level=1).click()
    run_command(page, "Close Tab")
    expect(question).to_be_visible()
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(tab_of(page, "notes")).to_have_count(0)
    tab_of(page, "Settings").locator(".lm-TabBar-tabCloseIcon").click()
    expect(tab_of(page, "Settings")).to_have_count(0)

    drag_into_a_notebook(page)
    be_told_how_a_job_ended(alan)
    assert alan.errors == []


def drag_into_a_notebook(page: Page) -> None:
    """Where sessions have a folder or a file is written where it is dropped."""
    open_panel(page, "data")
    panel = page.locator("#backendai-data")
    row = panel.get_by_role("listitem").filter(has_text="notes")
    run_command(page, "New Launcher")
    page.locator(".jp-LauncherCard:visible", has_text="Python 3").first.click()
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    expect(cell).to_be_visible()
    row.drag_to(cell, source_position={"x": 8, "y": 8})
    expect(cell).to_have_text("/home/work/notes")

    # A file lies in a tab of its own, in front of the notebook until it is dropped.
    page.keyboard.press("Enter")
    panel.get_by_role("button", name="notes", exact=True).click()
    tab = expect_page(page, "notes")
    carried = page.evaluate_handle("new DataTransfer()")
    file = tab.get_by_role("row").filter(has_text="plan.md")
    file.dispatch_event("dragstart", {"dataTransfer": carried})
    page.locator("#jp-main-dock-panel").get_by_role(
        "tab", name="Untitled.ipynb"
    ).click()
    box = cell.bounding_box()
    assert box is not None
    place = {"clientX": box["x"] + 5, "clientY": box["y"] + box["height"] - 5}
    for kind in ("dragover", "drop"):
        cell.dispatch_event(kind, {"dataTransfer": carried, **place})
    expect(cell).to_contain_text("/home/work/notes/plan.md")


def be_told_how_a_job_ended(person: Person) -> None:
    """A notification tells it, whatever one looks at meanwhile."""
    page = person.page
    tab_of(page, "New session").click()
    tab = expect_page(page, "New session")
    tab.get_by_role("radio", name="Batch job").check()
    tab.get_by_label("Command").fill("exit 3")
    tab.get_by_label("CPU", exact=True).fill("0.1")
    tab.get_by_label("Memory", exact=True).fill("0.5")
    # What would become of it is asked for by the form at the same time.
    with page.expect_response(
        lambda told: told.request.method == "POST" and told.url.endswith("/sessions")
    ) as asked:
        tab.get_by_role("button", name="Submit job").click()
    name = asked.value.json()["name"]
    tab_of(page, "Untitled.ipynb").click()
    told = page.locator(".Toastify__toast", has_text=f"{name}: Failed")
    expect(told).to_be_visible()
    person.look("lab-told")
