"""Columns that somebody chose, filters that they kept, and the list as a file."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.test_every_dialog import LATER
from tests.e2e.ui.walking import ask

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TRAINED = [f"train-{number:02}" for number in range(23)]


def columns_of(page: Page) -> list[str]:
    heads = page.get_by_role("table").get_by_role("columnheader")
    return [text.strip() for text in heads.all_inner_texts() if text.strip()]


def choose_columns(page: Page, *names: str) -> None:
    page.get_by_role("button", name="Columns", exact=True).click()
    for name in names:
        page.get_by_role("menuitemcheckbox", name=name, exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)


def choose_saved(page: Page, entry: str) -> None:
    page.get_by_role("button", name="Saved filters").click()
    page.get_by_role("menuitem", name=entry, exact=True).click()


def cells_of(page: Page) -> list[tuple[str, str, str]]:
    """Read the names, states and environments on this page of the list."""
    return [
        tuple(row)
        for row in page.get_by_role("table").evaluate(
            """table => [...table.tBodies[0].rows].map(row => {
                const cell = key =>
                    row.querySelector(`[data-column=${key}] > .bai-cell`);
                return [cell('name').querySelector('a').textContent,
                    cell('status').textContent, cell('image').textContent];
            })"""
        )
    ]


def choose_some_columns(mina: Person) -> None:
    """They are still there after a reload, and so are the usual ones."""
    page = mina.open("sessions")
    expect(page.get_by_role("rowheader")).to_have_count(20)
    usual = columns_of(page)
    assert "Priority" not in usual

    choose_columns(page, "Priority", "Environment")
    chosen = columns_of(page)
    assert set(chosen) ^ set(usual) == {"Priority", "Environment"}
    mina.check_looks("sessions-columns")
    page.reload()
    expect(page.get_by_role("rowheader")).to_have_count(20)
    assert columns_of(page) == chosen
    page.get_by_role("button", name="Columns", exact=True).click()
    priority = page.get_by_role("menuitemcheckbox", name="Priority", exact=True)
    expect(priority).to_have_attribute("aria-checked", "true")
    assert mina.find_barriers("[role=presentation]:has([role=menu])") == []
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Show the usual columns").click()
    assert columns_of(page) == usual
    page.reload()
    expect(page.get_by_role("rowheader")).to_have_count(20)
    assert columns_of(page) == usual
    expect(page.get_by_role("button", name="Show the usual columns")).to_have_count(0)


def keep_filters(mina: Person) -> None:
    """They are kept by a name, used again after a reload, and taken away."""
    page = mina.open("sessions")
    expect(page.get_by_role("rowheader")).to_have_count(20)
    page.get_by_role("button", name="Saved filters").click()
    nothing = page.get_by_role("menuitem", name="Save these filters…")
    expect(nothing).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Escape")

    page.get_by_label("Search by name, tag or identifier").fill("train-0")
    expect(page.get_by_role("rowheader")).to_have_count(10)
    page.get_by_role("button", name="Name", exact=True).click()
    expect(page.get_by_role("rowheader").first).to_contain_text("train-00")
    choose_saved(page, "Save these filters…")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("First ten")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_role("rowheader")).to_have_count(20)

    mina.open("sessions")
    expect(page.get_by_role("rowheader")).to_have_count(20)
    choose_saved(page, "First ten")
    expect(page.get_by_role("rowheader")).to_have_count(10)
    expect(page.get_by_role("rowheader").first).to_contain_text("train-00")
    expect(page).to_have_url(re.compile("search=train-0&order=name"))

    choose_saved(page, "Remove “First ten”")
    expect(
        page.get_by_text("The saved filters “First ten” are removed.")
    ).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.reload()
    expect(page.get_by_role("rowheader")).to_have_count(10)
    choose_saved(page, "Remove “First ten”")
    page.reload()
    expect(page.get_by_role("rowheader")).to_have_count(10)
    page.get_by_role("button", name="Saved filters").click()
    expect(page.get_by_role("menuitem")).to_have_count(1)


def save_as_file(mina: Person) -> None:
    """The file has what the list shows, page after page."""
    page = mina.open("sessions?search=train&order=name")
    expect(page.get_by_role("rowheader")).to_have_count(20)
    shown = cells_of(page)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("rowheader")).to_have_count(3)
    shown += cells_of(page)

    # From wherever one stands in it, and with columns that are not shown.
    with page.expect_download() as told:
        page.get_by_role("button", name="Export as CSV").click()
    assert re.fullmatch(r"sessions-\d{4}-\d\d-\d\d\.csv", told.value.suggested_filename)
    text = Path(told.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["Name"] for row in rows] == TRAINED == [name for name, *_ in shown]
    assert {row["Type"] for row in rows} == {"batch"}
    for row, (_, status, environment) in zip(rows, shown, strict=True):
        assert row["Environment"] == environment
        assert (row["Status"], status.startswith("Waiting")) == ("PENDING", True)
        assert row["Owner"] == mina.name
        told_of = ask(mina, "GET", f"sessions/{row['Identifier']}")
        assert told_of["name"] == row["Name"]


def test_a_list_is_as_one_likes_it_and_becomes_the_same_as_a_file(
    make_person: MakePerson,
):
    mina = make_person("mina")
    mina.open("sessions")
    # More than are shown on one page.
    waiting = [
        ask(mina, "POST", "sessions", {**LATER, "name": name})["id"]
        for name in (*TRAINED, "report")
    ]
    choose_some_columns(mina)
    keep_filters(mina)
    save_as_file(mina)
    ask(mina, "POST", "sessions/terminate", {"sessions": waiting})
