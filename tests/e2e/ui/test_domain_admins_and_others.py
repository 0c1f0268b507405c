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


def test_a_monitor_finds_the_way_to_every_page_and_nothing_to_change(
    make_person: MakePerson, site: Platform
):
    waiting = site.create(name="looked-at", slots={"cpu": "0.1"})
    eve = make_person("eve", role="monitor")

    page = eve.open("admin/users")
    beside = page.get_by_role("navigation", name="Belongs together")
    beside.get_by_role("link", name="Credentials").click()
    expect(page.get_by_role("heading", name="Credentials", level=1)).to_be_visible()
    page = eve.open("nodes")
    beside.get_by_role("link", name="Storage").click()
    page.get_by_role("link", name="local", exact=True).click()
    expect(page.get_by_role("heading", name="local", level=1)).to_be_visible()
    grants = page.get_by_role("table", name="Who may do what")
    expect(grants.get_by_role("row", name="default")).to_contain_text("Everything")
    eve.check_looks("storage-host")
    grants.get_by_role("link", name="default").click()
    expect(page.get_by_role("heading", name="default", level=1)).to_be_visible()

    page = eve.open("sessions?all=1")
    row = page.get_by_role("row", name="looked-at")
    expect(row).to_be_visible()
    expect(row.get_by_role("button")).to_have_count(0)
    expect(row.get_by_role("checkbox")).to_have_count(0)
    page = eve.open("data")
    expect(page.get_by_role("button", name="New folder")).to_have_count(0)
    page = eve.open("settings")
    expect(page.get_by_role("tab", name="General")).to_be_visible()
    expect(page.get_by_role("tab", name="My keys")).to_have_count(0)
    site.terminate(waiting)


def test_what_is_tried_out_for_the_whole_site_is_not_for_a_domain_admin(
    make_person: MakePerson,
):
    dean = make_person("dean", role="domain-admin")
    for part in ("preemption", "simulate"):
        page = dean.open(f"admin/scheduler/{part}")
        expect(page.get_by_text("This page is for administrators")).to_be_visible()
