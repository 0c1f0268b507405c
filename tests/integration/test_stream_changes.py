"""The stream announces changes to who asks for it, and quiet streams cost little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
from sqlalchemy import event

from backendai_hub.client.sse import ServerSentEvent, read_events
from backendai_hub.core.access import Caller
from backendai_hub.core.live_usage import UsageTotals
from backendai_hub.core.measures import Sample
from backendai_hub.core.usage_keeper import Subject
from backendai_hub.handlers import streams
from backendai_hub.operations.platform import Platform
from tests.factories import add_node, make_device, principal_of
from tests.integration.test_joining import configured
from tests.integration.test_stream_ends import Ask, serve_stream

PATIENCE = 60.0


@pytest.fixture
def site(platform: Platform) -> Platform:
    return configured(platform)


@pytest.fixture
async def ask(site: Platform, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ask]:
    """The stream of a service whose heart beats fast."""
    monkeypatch.setattr(streams, "BEAT_SECONDS", 0.02)
    async with serve_stream(site) as asking:
        yield asking


async def hear(events: AsyncIterator[ServerSentEvent]) -> tuple[str, Any]:
    """Return the name of the next event, and what it carries."""
    heard = await asyncio.wait_for(anext(events), PATIENCE)
    return heard.event, json.loads(heard.text)


async def begin(answer: aiohttp.ClientResponse) -> AsyncIterator[ServerSentEvent]:
    """Wait until a stream follows what happens."""
    assert answer.status == 200, await answer.text()
    await asyncio.wait_for(answer.content.readline(), PATIENCE)
    return read_events(answer.content)


async def measure(site: Platform, cpu: float) -> None:
    """Have a node measure a session of ada's."""
    ada = await principal_of(site, "ada", Caller.USER)
    keeper = site.usage.keeper
    if keeper.subject("c") is None:
        subject = Subject(
            id="c",
            session_id="s",
            agent_id="node",
            owner_id=ada.id,
            domain_id=ada.domain_id,
        )
        keeper.learn(subject, UsageTotals())
    keeper.note(site.database.clock().timestamp(), Sample(id="c", cpu=cpu))


@contextmanager
def counting(site: Platform) -> Iterator[list[str]]:
    """Count what is asked of the database."""
    asked: list[str] = []

    def note(*call: Any) -> None:
        asked.append(call[2])

    engines = {site.database.engine, site.database._glancing, site.database._spared}
    for engine in engines:
        event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        for engine in engines:
            event.remove(engine.sync_engine, "before_cursor_execute", note)


async def test_who_asks_is_told_by_kind_alone_and_nonsense_is_refused(
    site: Platform, ask: Ask
):
    async with ask("?changes=1") as answer:
        events = await begin(answer)
        await add_node(site, devices=[make_device()])
        heard = await hear(events)
    async with ask("?changes=nonsense") as refused:
        status = refused.status

    # Its device is of a kind that the site did not have, which all may read about.
    kinds = {"kinds": ["resources", "slot-types"]}
    assert heard == ("changed", kinds), "neither nodes nor ids"
    assert status == 400


async def test_who_does_not_ask_is_told_nothing_of_it(site: Platform, ask: Ask):
    async with ask("?usage=1") as answer:
        events = await begin(answer)
        await add_node(site, devices=[make_device()])
        await measure(site, 0.5)
        name, _ = await hear(events)

    assert name == "usage"


async def test_a_beat_asks_the_database_for_nothing(site: Platform, ask: Ask):
    async with ask("?usage=1&changes=1") as answer:
        events = await begin(answer)
        await measure(site, 0.0)
        while (await hear(events))[0] != "usage":
            pass
        with counting(site) as asked:
            for cpu in range(1, 6):
                site.usage.keeper.note(
                    site.database.clock().timestamp(), Sample(id="c", cpu=cpu)
                )
                while (await hear(events))[0] != "usage":
                    pass

    assert asked == []
