"""Somebody with two projects and two resource groups chooses among them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform, running

pytestmark = [pytest.mark.browser, pytest.mark.bwrap, pytest.mark.timeout(600)]


def post(platform: Platform, path: str, **body: Any) -> None:
    answer = platform.web.post(f"{platform.api}{path}", json=body, timeout=60)
    assert answer.ok, answer.text


def offer_choices(platform: Platform) -> None:
    """Give the administrator a second project and resource group, and a preset."""
    post(platform, "projects", name="vision", domain="default")
    post(platform, "projects/vision/members", add=["admin"])
    post(platform, "resource-groups", name="spare")
    everybody = {"kind": "domain", "name": "default"}
    post(platform, "resource-groups/spare/access", allow=[everybody])
    tiny = {"cpu": "0.5", "mem": "512m"}
    post(platform, "presets", name="tiny", resource_slots=tiny, shared_memory="96m")


def test_a_session_gets_the_project_group_and_preset_that_were_chosen() -> None:
    with running("process") as platform, chromium() as browser:
        offer_choices(platform)
        person = Person(browser, platform.url, "admin")
        person.log_in(platform.told["password"])
        page = person.page
        page.goto(f"{platform.url}hub/spawn")

        page.get_by_label("Project", exact=True).select_option("vision")
        page.get_by_label("Resource group").select_option("spare")
        # That group has no nodes.
        expect(page.get_by_text("No node is connected")).to_be_visible()
        page.get_by_label("Resource group").select_option("default")
        page.get_by_role("button", name="tiny").click()
        expect(page.get_by_text("Starts now")).to_be_visible()
        person.look("choices")
        page.locator("form#spawn_form [type=submit]").first.click()
        page.wait_for_url("**/lab**")

        session = platform.get("sessions?status=live")["items"][0]
        assert session["project"] == "vision"
        assert session["resource_group"] == "default"
        assert session["slots"] == {"cpu": "0.5", "mem": "512m"}
        assert session["shmem"] == "96m"
        assert person.errors == []
