"""What a browser fetches that has nothing yet, until the first page is there."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

MOST_BYTES = 200_000
SESSIONS = "/api/sessions?"
OFFERS = "/api/invitations"


def fetch_first_page(person: Person, language: str) -> dict[str, int]:
    """Return the bytes on the wire of all that comes without a cache, by address."""
    page = person.context.new_page()
    cdp = person.context.new_cdp_session(page)
    addresses: dict[str, str] = {}
    fetched: dict[str, int] = {}

    def begin(event: dict[str, Any]) -> None:
        addresses[event["requestId"]] = event["response"]["url"]

    def end(event: dict[str, Any]) -> None:
        address = addresses[event["requestId"]]
        fetched[address] = fetched.get(address, 0) + int(event["encodedDataLength"])

    cdp.on("Network.responseReceived", begin)
    cdp.on("Network.loadingFinished", end)
    cdp.send("Network.enable")
    cdp.send("Network.setCacheDisabled", {"cacheDisabled": True})
    # Every browser takes this; most take less where the connection is encrypted.
    headers = {"Accept-Encoding": "gzip"}
    cdp.send("Network.setExtraHTTPHeaders", {"headers": headers})
    page.add_init_script(f"localStorage.setItem('bai-language', '{language}')")
    with (
        page.expect_event("requestfinished", lambda asked: SESSIONS in asked.url),
        page.expect_event("requestfinished", lambda asked: OFFERS in asked.url),
    ):
        page.goto(f"{person.url}services/backendai/")
    expect(page.locator(f"html[lang={language}] main h2").first).to_be_visible()
    page.close()
    return fetched


def test_the_first_page_is_small_in_every_language(make_person: MakePerson):
    mina = make_person("mina")

    for language in ("en", "ko", "ja", "th"):
        fetched = fetch_first_page(mina, language)

        sizes = sorted(((size, name) for name, size in fetched.items()), reverse=True)
        assert {"vendor", "first", "StartPage"} <= {code(name) for name in fetched}
        assert sum(fetched.values()) <= MOST_BYTES, (language, sizes)


def code(address: str) -> str:
    """Return the name of a file of the pages, without its number."""
    return address.rpartition("/")[2].partition("-")[0]
