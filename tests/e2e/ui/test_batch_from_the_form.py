"""Somebody asks for a job with the form, reads what it printed, and asks again."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.ui.conftest import MakePerson

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

JOB = 'echo "seed is $SEED"; echo done'


def test_a_job_is_asked_for_with_the_form_and_its_log_is_read(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("")
    expect(page.get_by_role("heading", name=f"Hello, {mina.name}")).to_be_visible()
    mina.check_looks("start")
    page.get_by_role("link", name="Run a batch job").click()

    expect(page.get_by_role("heading", name="New session", level=1)).to_be_visible()
    page.get_by_label("Memory", exact=True).fill("0.5")
    page.get_by_label("CPU", exact=True).fill("0.5")
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_text("Say what to run.")).to_be_visible()

    page.get_by_label("Command").fill(JOB)
    page.get_by_text("Environment, dependencies and limits").click()
    page.get_by_label("Environment variables").fill("SEED=41")
    expect(page.get_by_text("Starts now")).to_be_visible()
    # What the address says is the form: it may be reloaded, or sent to somebody.
    page.wait_for_url("**env=SEED%3D41**")
    page.reload()
    expect(page.get_by_label("Environment variables")).to_have_value("SEED=41")
    expect(page.get_by_text("Starts now")).to_be_visible()
    mina.check_looks("launch-batch")
    page.get_by_role("button", name="Submit job").click()

    page.wait_for_url("**/sessions/*")
    expect(page.get_by_text("Succeeded").first).to_be_visible(timeout=120_000)
    # Whoever looks elsewhere is told in passing.
    told = page.locator(".bai-toast", has_text=": Succeeded")
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    mina.check_looks("session")
    page.get_by_role("tab", name="Log").click()
    log = page.get_by_role("region", name="Log")
    expect(log).to_contain_text("seed is 41")
    page.get_by_label("Search the log").fill("DONE")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    expect(log).not_to_contain_text("seed is 41")
    mina.check_looks("session-log")
    for tab in ("Utilisation", "Scheduling"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).not_to_be_empty()
        mina.check_looks(f"session-{tab.lower()}")

    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Start another like it").click()
    expect(page.get_by_label("CPU", exact=True)).to_have_value("0.5")
    recent = page.get_by_role("region", name="Recent")
    recent.get_by_role("button", name=JOB, exact=True).click()
    expect(page.get_by_label("Command")).to_have_value(
        'echo "seed is $SEED"; echo done'
    )
