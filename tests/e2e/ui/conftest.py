"""One real platform and one browser for all stories of the pages.

The platform keeps its rows in PostgreSQL and runs sessions in Docker. On a machine
without them something simpler stands in, which the end of the run says; in CI it is a
failure. Each story makes people, folders and sessions of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.databases import new_database
from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform, running
from tests.requirement_marks import find_lack, prefer

MakePerson = Callable[..., Person]


def pytest_runtest_setup(item: pytest.Function) -> None:
    """Let no story of the platform pass in CI on less than it is told about."""
    if "site" in item.fixturenames:
        prefer(item, "postgres", "docker")


@pytest.fixture(scope="package")
def database() -> Iterator[str | None]:
    """Where the platform keeps its rows; None: in a file of its own."""
    if find_lack("postgres"):
        yield None
        return
    with new_database() as url:
        yield url


@pytest.fixture(scope="package")
def site(database: str | None) -> Iterator[Platform]:
    """A platform that is left standing from story to story."""
    runtime = "process" if find_lack("docker") else "docker"
    config = f"c.HubService.db_url = {database!r}\n" if database else ""
    with running(runtime, config) as up:
        yield up


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the stories of one file.

    Playwright keeps an event loop running as long as it is open, beside which nothing
    asynchronous can be tested.
    """
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def _numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def make_person(
    site: Platform, browser: Browser, _numbers: Iterator[int]
) -> Iterator[MakePerson]:
    """Make people who have logged in, each in a browser of their own.

    ``make_person("mina")`` is somebody new with a name like ``mina-3``; ``role`` is a
    role of the platform, ``language`` and ``scheme`` are what their browser asks for.
    """
    people: list[Person] = []

    def make(name: str = "mina", role: str = "user", **looks: str) -> Person:
        unique = f"{name}-{next(_numbers)}"
        once = site.add_user(unique)
        if role != "user":
            site.give_role(unique, role)
        person = Person(browser, site.url, unique, **looks)
        people.append(person)
        person.log_in(once)
        return person

    yield make
    errors = {person.name: person.errors for person in people if person.errors}
    for person in people:
        person.context.close()
    assert errors == {}
