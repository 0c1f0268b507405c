"""Somebody is about to lose what they have written, by every way out of the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import make_folder, row
from tests.e2e.up import until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def is_asked_by_the_browser(page: Page) -> bool:
    """Tell whether the browser asks before the page is left; it is not."""
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", answer)
    page.evaluate("() => { setTimeout(() => location.reload()); }")
    until(lambda: page.wait_for_timeout(20) or asked, "the browser asks")
    page.remove_listener("dialog", answer)
    return asked == ["beforeunload"]


def test_the_browsers_buttons_ask_like_every_link(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("sessions")
    page.get_by_role("link", name="Data", exact=True).click()
    expect(page.get_by_role("heading", name="Data", level=1)).to_be_visible()
    page.get_by_role("link", name="Settings").first.click()
    page.get_by_role("tab", name="Bootstrap script").click()
    script = page.get_by_role("textbox", name="Bootstrap script")
    script.fill("echo one\n")
    here = page.url
    question = page.get_by_role("dialog", name="Leave without saving?")

    page.evaluate("history.back()")
    expect(question).to_be_visible()
    assert page.url == here
    expect(
        page.get_by_role("textbox", name="Bootstrap script", include_hidden=True)
    ).to_have_value("echo one\n")
    page.get_by_role("button", name="Stay here").click()
    expect(question).to_have_count(0)
    page.evaluate("history.go(-2)")
    expect(question).to_be_visible()
    assert page.url == here
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()

    # Who has left goes on as ever, forwards as well.
    page.evaluate("history.forward()")
    expect(page.get_by_role("heading", name="Data", level=1)).to_be_visible()
    page.evaluate("history.forward()")
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    expect(question).to_have_count(0)


def test_a_text_is_not_lost_by_a_reload_a_link_or_the_way_back(
    make_person: MakePerson,
):
    mina = make_person("mina")
    make_folder(mina, "notes")
    page = mina.page
    page.locator("input[data-picks=files]").set_input_files(
        {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"old\n"}
    )
    row(page, "plan.md").get_by_role("link").click()
    page.get_by_role("button", name="Edit", exact=True).click()
    text = page.get_by_role("textbox", name="Content")
    expect(text).to_have_value("old\n")
    page.reload()  # nothing is written yet, and nothing is asked
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(text).to_have_value("old\n")
    text.fill("new\n")

    assert is_asked_by_the_browser(page)
    question = page.get_by_role("dialog", name="Leave without saving?")
    for way in ("back", "link", "close"):
        if way == "back":
            page.evaluate("history.back()")
        elif way == "link":
            page.get_by_role("link", name="Sessions").first.click()
        else:
            page.get_by_role("button", name="Close the preview").click()
        expect(question).to_be_visible()
        page.get_by_role("button", name="Stay here").click()
        expect(question).to_have_count(0)
        expect(text).to_have_value("new\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("region", name="Content")).to_contain_text("new")
    page.evaluate("history.back()")
    expect(page.get_by_role("region", name="Content")).to_have_count(0)
    expect(question).to_have_count(0)
