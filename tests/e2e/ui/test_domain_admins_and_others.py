"""Who administers a domain sees that domain; who administers nothing sees nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_domain_admin_has_the_pages_of_a_domain_and_no_others(
    make_person: MakePerson, site: Platform
):
    body = {"name": "elsewhere", "allowed_docker_registries": ["local"]}
    assert site.web.post(f"{site.api}domains", json=body, timeout=20).ok
    dean = make_person("dean", role="domain-admin")

    page = dean.open("admin/users")
    ways = page.get_by_role("navigation", name="Main")
    expect(ways.get_by_role("link", name="Users")).to_be_visible()
    for hidden in ("Environments", "Resource policy", "Resources", "Maintenance"):
        expect(ways.get_by_role("link", name=hidden)).to_have_count(0)
    page.get_by_role("button", name="New user").click()
    expect(page.get_by_label("sudo in sessions")).to_have_count(0)
    page.get_by_label("Name (required)").fill("pupil-of-dean")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_role("heading", name="pupil-of-dean", level=1)).to_be_visible()

    page = dean.open("admin/domains")
    expect(page.get_by_role("link", name="default", exact=True)).to_be_visible()
    expect(page.get_by_text("elsewhere")).to_have_count(0)
    expect(page.get_by_role("button", name="New domain")).to_have_count(0)
    dean.check_looks("domains")

    for forbidden in ("admin/images", "admin/maintenance", "admin/policies/keypair"):
        page = dean.open(forbidden)
        expect(page.get_by_text("This page is for administrators")).to_be_visible()


def test_a_user_finds_no_page_of_administration_and_the_service_refuses(
    make_person: MakePerson,
):
    mina = make_person("mina")

    page = mina.open("admin/users")
    expect(page.get_by_text("This page is for administrators")).to_be_visible()
    expect(page.get_by_text("Administration", exact=True)).to_have_count(0)
    mina.check_looks("forbidden")
    api = f"{mina.url}services/backendai/api/"
    assert page.request.get(f"{api}registries").status == 403
    assert page.request.get(f"{api}agents").status == 403
    people = page.request.get(f"{api}users").json()["items"]
    assert [person["name"] for person in people] == [mina.name]
