"""Panels and tabs in a real JupyterLab, started by our spawner in somebody's hub.

The Hub has a base URL of its own and a domain for each of its users.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, expect

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

    # Nothing of ours is asked for before it is seen, and no token is in the page.
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.locator("#jp-main-statusbar")).to_contain_text("first · 1 running")
    assert "token" not in page.evaluate("JSON.stringify(document.body.dataset)")
    assert not [url for url in asked if "/api/events" in url]

    open_panel(page, "sessions")
    panel = page.locator("#backendai-sessions")
    expect(panel.get_by_role("button", name="first", exact=True)).to_be_visible()
    expect(panel).to_contain_text("Running")
    expect(panel).to_contain_text("Live")
    grace.look("lab-sessions")
    assert grace.find_barriers("#backendai-sessions") == []
    assert len([url for url in asked if "/api/events" in url]) == 1

    # A second panel and a tab hear the same stream and ask the same cache.
    open_panel(page, "data")
    page.get_by_role("button", name="New folder").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("papers")
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator("#backendai-data")).to_contain_text("papers")
    grace.look("lab-data")
    open_panel(page, "sessions")
    # JupyterLab writes down what is open a little while after it was opened.
    with page.expect_response(keeps_sessions_page):
        panel.get_by_role("button", name="first", exact=True).click()
    tab = page.locator(".bai-tab:visible")
    expect(tab.get_by_role("heading", name="first", level=1)).to_be_visible()
    grace.look("lab-session")
    assert grace.find_barriers(".bai-tab:not([hidden])") == []
    assert len([url for url in asked if "/api/events" in url]) == 1

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
    assert ada.errors == []
