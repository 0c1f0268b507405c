"""A superadmin sets up a tenant, and two of them change the same thing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def told(page: Page, words: str) -> None:
    expect(page.locator(".bai-toast", has_text=words)).to_be_visible()


def test_a_domain_its_project_and_its_people_are_set_up_by_hand(
    make_person: MakePerson, site: Platform
):
    root = make_person("root", role="superadmin")
    page = root.open("admin/domains")

    page.get_by_role("button", name="New domain").click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("Name: This is needed")
    page.get_by_label("Name (required)").fill("lab")
    limits = page.get_by_role("group", name="Resources at most")
    limits.get_by_role("button", name="Add").click()
    limits.get_by_label("CPU", exact=False).first.fill("64")
    page.get_by_role("checkbox", name="local", exact=True).last.check()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="lab", level=1)).to_be_visible()
    domain = site.get("domains/lab")
    assert domain["total_resource_slots"] == {"cpu": "64"}
    assert len(domain["allowed_vfolder_hosts"]["local"]) == 8
    root.check_looks("domain")

    page = root.open("admin/projects/new?domain=lab")
    page.get_by_label("Name (required)").fill("sight")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="sight", level=1)).to_be_visible()

    page = root.open("admin/users/new")
    page.get_by_label("Name (required)").fill("cleo")
    page.get_by_label("Domain", exact=True).select_option("lab")
    page.get_by_label("Usual project").select_option("lab:sight")
    root.check_looks("new-user")
    page.get_by_role("button", name="Create").click()
    dialog = page.get_by_role("dialog", name="One-time password for cleo")
    password = dialog.locator("code").inner_text()
    assert len(password) > 8
    root.check_looks("one-time-password")
    dialog.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_role("heading", name="cleo", level=1)).to_be_visible()
    expect(page.get_by_text("Has to choose a new one")).to_be_visible()
    assert site.get("users/cleo")["project"] == "sight"

    page.get_by_role("button", name="More for cleo").click()
    page.get_by_role("menuitem", name="Deactivate").click()
    told(page, "cleo: inactive now")
    page.get_by_role("button", name="Undo").click()
    until(lambda: site.get("users/cleo")["status"] == "active", "it is taken back")

    page.get_by_role("button", name="More for cleo").click()
    expect(page.get_by_role("menuitem", name="Delete for good")).to_have_count(0)
    page.get_by_role("menuitem", name="Deactivate").click()
    until(lambda: site.get("users/cleo")["status"] == "inactive", "cleo is inactive")
    expect(page.locator("main")).to_contain_text("Inactive")
    page.get_by_role("button", name="More for cleo").click()
    page.get_by_role("menuitem", name="Delete for good").click()
    page.get_by_label("Type cleo to confirm").fill("cleo")
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    told(page, "cleo: deleted")
    expect(page.get_by_role("heading", name="Users", level=1)).to_be_visible()


def test_two_who_change_the_same_are_both_told(make_person: MakePerson, site: Platform):
    root = make_person("root", role="superadmin")
    body = {"name": "rival", "resource_slots": {"cpu": "1"}, "description": "First"}
    made = site.web.post(f"{site.api}presets", json=body, timeout=20).json()
    page = root.open(f"admin/presets/{made['id']}/edit")
    page.get_by_label("Description").fill("Mine")

    page.get_by_role("link", name="Data", exact=True).click()
    expect(page.get_by_role("dialog", name="Leave without saving?")).to_be_visible()
    page.get_by_role("button", name="Stay here").click()
    theirs = {"description": "Theirs"}
    url = f"{site.api}presets/{made['id']}"
    assert site.web.patch(url, json=theirs, timeout=20).ok
    page.get_by_role("button", name="Save").click()

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Somebody else has changed this meanwhile")
    expect(alert.get_by_role("row", name="Description")).to_contain_text("Theirs")
    root.check_looks("conflict")
    page.get_by_role("button", name="Keep my changes").click()
    page.get_by_role("button", name="Save").click()
    told(page, "rival is saved")
    assert site.get(f"presets/{made['id']}")["description"] == "Mine"
