"""Two people, each in a browser of their own, share a folder."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import make_folder, row

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_what_one_offers_another_takes_and_uses_as_far_as_permitted(
    make_person: MakePerson,
):
    grace, mina = make_person("grace"), make_person("mina")
    mina.open("data")
    expect(mina.page.get_by_role("region", name="Invitations")).to_have_count(0)

    make_folder(grace, "results")
    page = grace.page
    page.locator("input[data-picks=files]").set_input_files(
        {"name": "run.md", "mimeType": "text/markdown", "buffer": b"# Run 1\n"}
    )
    expect(row(page, "run.md")).to_be_visible()
    page.get_by_role("button", name="Show what is known of the folder").click()
    page.get_by_role("tab", name="Sharing").click()
    page.get_by_label("Invite people").fill(f"nobody-at-all {mina.name}")
    page.get_by_label("They may").select_option("rw")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_text("there is nobody 'nobody-at-all'")).to_be_visible()
    expect(page.get_by_label("Invite people")).to_have_value("nobody-at-all")
    expect(page.get_by_label(f"Permission of {mina.name}")).to_have_value("rw")
    grace.check_looks("sharing")

    # It comes by itself, and is told on every page.
    offer = mina.page.get_by_role("region", name="Invitations")
    expect(offer).to_contain_text(f"results from {grace.name}")
    expect(mina.page.get_by_role("link", name="Data 1")).to_be_visible()
    mina.check_looks("invitation")
    offer.get_by_role("button", name="Accept results").click()
    expect(offer).to_have_count(0)
    mina.page.get_by_role("link", name="results", exact=True).click()
    expect(row(mina.page, "run.md")).to_be_visible()
    expect(
        page.get_by_role("button", name=f"Stop sharing with {mina.name}")
    ).to_be_visible()

    # Both write the same text: the second is asked before anything is lost.
    for person, words in ((mina, "# By Mina\n"), (grace, "# By Grace\n")):
        row(person.page, "run.md").get_by_role("link").click()
        person.page.get_by_role("button", name="Edit").click()
        text = person.page.get_by_role("textbox", name="Content")
        expect(text).to_have_value("# Run 1\n")
        text.fill(words)
    grace.page.get_by_role("button", name="Save").click()
    expect(grace.page.get_by_role("region", name="Content")).to_contain_text("By Grace")
    mina.page.get_by_role("button", name="Save").click()
    asked = mina.page.get_by_role("dialog", name="Changed by somebody else")
    expect(asked).to_be_visible()
    mina.check_looks("conflict", "[role=dialog]")
    asked.get_by_role("button", name="Load theirs").click()
    expect(mina.page.get_by_role("textbox", name="Content")).to_have_value(
        "# By Grace\n"
    )
    mina.page.get_by_role("button", name="Cancel").click()
    mina.page.get_by_role("button", name="Close the preview").click()

    # What may not be done is there to be asked about: it says why.
    choose = row(mina.page, "run.md").get_by_role("button", name="Actions for")
    choose.click()
    trash = mina.page.get_by_role("menuitem", name="Move to the trash")
    expect(trash).to_have_attribute("aria-disabled", "true")
    expect(trash).to_contain_text("but not delete")
    mina.page.keyboard.press("Escape")

    page.get_by_role("button", name="Close the preview").click()
    page.get_by_role("button", name="Show what is known of the folder").click()
    page.get_by_role("tab", name="Sharing").click()
    page.get_by_label(f"Permission of {mina.name}").select_option("ro")
    upload = mina.page.get_by_role("button", name="Upload")
    expect(upload).to_have_attribute("aria-disabled", "true")
    upload.focus()
    mina.page.keyboard.press("Enter")
    expect(
        mina.page.get_by_text("The folder is read-only for you").last
    ).to_be_visible()

    page.get_by_role("button", name=f"Stop sharing with {mina.name}").click()
    expect(mina.page.get_by_text("No such folder").first).to_be_visible()
    mina.check_looks("folder-gone")
