"""Who shows a log hears over their stream when there is more, and asks then alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backendai_hub.core.measures import Sample
from backendai_hub.core.sessions import Session
from backendai_hub.handlers import streams
from backendai_hub.handlers.sessions import SessionLogHandler
from backendai_hub.handlers.streams import EventsHandler
from backendai_hub.operations.platform import Platform
from tests.factories import Node, add_node, make_device, submit
from tests.factories import start as place
from tests.harness import until
from tests.integration.test_joining import configured
from tests.integration.test_stream_changes import begin, counting, hear, measure
from tests.integration.test_stream_ends import Ask, serve
from tests.jobs import State, containers_of, stop, tell
from tests.log_node import LogNode, open_log_node


class Site:
    """A service and a node, where a session of ada's may print."""

    def __init__(self, platform: Platform, ask: Ask, node: Node, its: LogNode) -> None:
        self.platform = platform
        self.ask = ask
        self.node = node
        self.its = its

    async def launch(self, state: State = State.RUNNING) -> Session:
        session = await place(self.platform, "ada")
        await self.its.run(await self.container(session))
        await tell(self.platform, self.node, session, state)
        return session

    async def container(self, session: Session) -> str:
        return (await containers_of(self.platform, session))[-1]

    async def print(self, session: Session, line: str) -> None:
        self.its.print(await self.container(session), line)

    async def read(self, session: Session, query: str = "?follow=true") -> Any:
        async with self.ask(f"api/sessions/{session.id}/log{query}") as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


@pytest.fixture
async def site(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    monkeypatch.setattr(streams, "BEAT_SECONDS", 0.02)
    platform = configured(platform)
    node = await add_node(platform, devices=[make_device()])
    async with (
        open_log_node(tmp_path / "node", node.id) as its,
        serve(platform, EventsHandler, SessionLogHandler, nodes=its.client) as ask,
    ):
        node.url = its.url
        await node.report()
        yield Site(platform, ask, node, its)


async def announced(events: AsyncIterator[Any]) -> dict[str, Any]:
    """Return the next that the stream announces."""
    while True:
        name, content = await hear(events)
        if name == "changed":
            return content


async def logs_of(events: AsyncIterator[Any]) -> list[str]:
    """Return of which logs the stream tells next."""
    while True:
        if logs := (await announced(events)).get("logs"):
            return logs


async def test_who_shows_a_log_is_told_that_there_is_more_and_reads_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    for clock in ("BEAT_SECONDS", "KEEP_ALIVE_SECONDS"):
        monkeypatch.setattr(streams, clock, 1e6)  # nothing comes but what is told
    session = await site.launch()
    async with site.ask("api/events?changes=1") as answer:
        events = await begin(answer)
        shown = await site.read(session)
        assert (shown["followed"], shown["live"]) == (True, True)
        await site.print(session, "step 1")
        assert await logs_of(events) == [session.id]
        assert (await site.read(session))["text"].endswith("step 1\n")
        await site.print(session, "step 2")
        assert await logs_of(events) == [session.id]
        assert (await site.read(session))["text"].endswith("step 2\n")
    await until(lambda: site.its.waiting == 0, "the node was let go")


async def test_a_quiet_log_costs_neither_the_database_nor_the_node_anything(site: Site):
    session = await site.launch()
    async with site.ask("api/events?changes=1&usage=1") as answer:
        events = await begin(answer)
        await measure(site.platform, 0.0)
        await site.read(session)
        await until(lambda: site.its.waiting == 1, "somebody waits at the node")
        before = site.its.read, site.its.asked
        with counting(site.platform) as asked:
            for cpu in range(1, 6):
                moment = site.platform.database.clock().timestamp()
                site.platform.usage.keeper.note(moment, Sample(id="c", cpu=cpu))
                while (await hear(events))[0] != "usage":
                    pass
        assert (site.its.read, site.its.asked) == before
        assert asked == []
        await site.print(session, "at last")
        assert await logs_of(events) == [session.id]


async def test_whose_stream_does_not_announce_changes_has_to_ask(site: Site):
    session = await site.launch()
    assert not (await site.read(session))["followed"]
    async with site.ask("api/events?usage=1") as answer:
        await begin(answer)
        assert not (await site.read(session))["followed"]
    async with site.ask("api/events?changes=1") as answer:
        await begin(answer)
        assert not (await site.read(session, ""))["followed"], "who does not ask for it"
    assert site.its.waiting == 0


async def test_nothing_waits_for_what_has_ended_or_does_not_print_yet(site: Site):
    session = await site.launch(State.PULLING)
    async with site.ask("api/events?changes=1") as answer:
        await begin(answer)
        waiting = await site.read(session)
        assert (waiting["followed"], waiting["live"]) == (True, True), "its start tells"
        await tell(site.platform, site.node, session, State.RUNNING)
        await stop(site.platform, session, force=True)
        ended = await site.read(session)
        assert (ended["followed"], ended["live"]) == (False, False)
    assert site.its.asked == 0


async def test_before_the_first_attempt_the_start_will_tell(site: Site):
    session = (await submit(site.platform, "ada")).session
    async with site.ask("api/events?changes=1") as answer:
        await begin(answer)
        assert (await site.read(session))["followed"]
