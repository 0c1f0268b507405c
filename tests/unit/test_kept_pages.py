"""What is kept of answers: for how long, how much of it, and until what changes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, delete, insert, select, text, update
from sqlalchemy.sql import visitors

from backendai_hub.core.access import Reach
from backendai_hub.core.times import format_time
from backendai_hub.db import session_views
from backendai_hub.db.tables import SessionRow
from backendai_hub.db.tables.base import Base
from backendai_hub.db.versions import (
    _NOBODYS,
    _OF_SESSIONS,
    _SHOWN_WITH_SESSIONS,
    Changes,
    Versions,
)
from backendai_hub.handlers.kept import Shelf
from backendai_hub.handlers.page_cache import SECONDS, PageCache, PageKey
from backendai_hub.operations.sessions import Sight

SOURCES = Path(__file__).resolve().parents[2] / "backendai_hub"
TABLES: dict[str, Table] = dict(SessionRow.metadata.tables)
ALICES = PageKey(Sight(Reach.OWN, "alice", "d"), "limit=20")


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def changed(statement: Any, owner: str | None = None) -> Versions:
    changes = Changes()
    changes.note(statement, owner)
    versions = Versions()
    versions.advance(changes)
    return versions


def test_a_change_of_ones_sessions_is_no_change_of_anothers():
    versions = changed(insert(TABLES["sessions"]), "alice")

    assert versions.of_sessions("alice") != 0
    assert versions.of_sessions("bob") == 0
    assert versions.of_sessions(None) != 0


@pytest.mark.parametrize("name", sorted(_OF_SESSIONS))
def test_who_does_not_say_whose_sessions_change_changes_everybodys(name: str):
    for statement in (
        insert(TABLES[name]),
        update(TABLES[name]),
        delete(TABLES[name]),
    ):
        assert changed(statement).of_sessions("bob") != 0


def test_reading_changes_nothing_and_a_text_may_change_everything():
    asked = changed(select(TABLES["sessions"]))
    assert (asked.of_sessions(None), asked.tenancy) == (0, 0)
    said = changed(text("DELETE FROM users"))
    assert said.of_sessions("bob") != 0
    assert said.tenancy != 0


def test_every_table_that_a_list_of_sessions_reads_is_followed():
    read = {
        t.name for t in visitors.iterate(session_views._VIEW) if isinstance(t, Table)
    }

    # What a session depends on is stored with it, and never changes.
    given_once = {"session_dependencies"}
    assert read - _OF_SESSIONS - _SHOWN_WITH_SESSIONS - given_once == {"agents"}


def test_every_table_is_about_tenancy_but_those_that_are_named():
    assert set(TABLES) >= _NOBODYS
    for name in sorted(set(TABLES) - _NOBODYS):
        assert changed(update(TABLES[name])).tenancy != 0, name
    assert changed(update(TABLES["agents"])).tenancy == 0


def test_a_page_lasts_five_seconds_from_before_it_was_read():
    clock, versions = Seconds(), Versions()
    pages = PageCache(clock=clock)
    reading = pages.begin("alice", versions)
    clock.now += 2  # so long it took
    pages.keep(ALICES, reading, b"[]")

    clock.now += SECONDS - 2.001
    assert pages.find(ALICES, versions) == b"[]"
    clock.now += 0.001
    assert pages.find(ALICES, versions) is None


def test_a_page_that_was_read_while_something_changed_is_never_shown():
    pages, versions, changes = PageCache(), Versions(), Changes()
    reading = pages.begin("alice", versions)
    changes.note(update(TABLES["sessions"]), "alice")
    versions.advance(changes)  # it committed, and the page may be from before
    pages.keep(ALICES, reading, b"[]")

    assert pages.find(ALICES, versions) is None


def test_a_page_is_for_those_who_see_the_same_and_ask_the_same():
    pages, versions = PageCache(), Versions()
    pages.keep(ALICES, pages.begin("alice", versions), b"[]")

    assert pages.find(ALICES, versions) == b"[]"
    for sight, query in (
        (Sight(Reach.OWN, "bob", "d"), "limit=20"),
        (Sight(Reach.ALL, "alice", "d"), "limit=20"),
        (Sight(Reach.OWN, "alice", "e"), "limit=20"),
        (Sight(Reach.OWN, "alice", "d"), "limit=21"),
    ):
        assert pages.find(PageKey(sight, query), versions) is None


def test_what_is_kept_stays_within_its_bounds_and_the_oldest_goes_first():
    shelf: Shelf[int, str] = Shelf(seconds=1, most=3, most_bytes=100, clock=Seconds())
    for key in range(4):
        shelf.put(key, "x", since=100, size=10)
    assert [shelf.find(k) for k in range(4)] == [None, "x", "x", "x"]
    assert shelf.find(1) == "x"  # used again: now the youngest
    shelf.put(9, "y", since=100, size=75)
    assert [shelf.find(k) for k in (1, 2, 3, 9)] == ["x", None, "x", "y"]
    shelf.put(8, "z", since=100, size=101)
    assert shelf.find(8) is None
    assert shelf.size == (3, 95)


def test_long_queries_are_not_kept():
    pages, versions = PageCache(), Versions()
    key = PageKey(ALICES.sight, "x" * 513)
    pages.keep(key, pages.begin("alice", versions), b"[]")

    assert pages.find(key, versions) is None


def test_times_are_told_to_the_millisecond():
    moment = datetime(2026, 1, 2, 3, 4, 5, 6789, tzinfo=UTC)
    assert format_time(moment) == "2026-01-02T03:04:05.006Z"


def test_what_is_followed_is_changed_through_the_transaction_only():
    """A statement given to the connection itself would not be seen."""
    past = re.compile(r"connection\.execute\(\s*(?:insert|update|delete)\((\w+)")
    own = {"EventRow", "AuditRow", "AuditHeadRow", "ImageRow", "ImageInstallRow"}
    found = set()
    for path in SOURCES.rglob("*.py"):
        found |= set(past.findall(path.read_text("utf-8")))

    names = {mapper.class_.__name__: mapper for mapper in Base.registry.mappers}
    assert found <= own
    assert {names[name].local_table.name for name in own} <= _NOBODYS
