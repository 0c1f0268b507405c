"""Who reads a log is told when there is more, and waits for it at its node once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from backendai_agent import server
from backendai_hub.db.signals import Signals
from backendai_hub.operations import log_desk
from backendai_hub.operations.log_desk import (
    PAUSE_SECONDS,
    LogDesk,
    LogReader,
    Place,
    name_of,
)
from tests.agent_hub import AGENT_ID
from tests.harness import until
from tests.log_node import LogNode, open_log_node

PATIENCE = 60.0
SECOND = 10**9
LATER = 1e12
"""A clock by which everything may be told that there is to tell."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[LogNode]:
    async with open_log_node(tmp_path) as node:
        yield node


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def desk(signals: Signals, node: LogNode) -> LogDesk:
    return LogDesk(signals, node.client)


async def make_place(node: LogNode, session: str = "a session") -> Place:
    container = str(uuid4())
    await node.run(container)
    return Place(session, container, AGENT_ID, node.url)


async def read(node: LogNode, place: Place) -> int:
    """Read a log; returns when that was."""
    text = await node.client.read_log(
        place.agent_id, place.url, container=place.container, tail=10
    )
    assert text.moment is not None
    return text.moment


async def hear(signals: Signals, reader: LogReader) -> list[str]:
    """Wait until *reader* has something to tell."""
    name = name_of(reader.person)
    while True:
        ticket = signals.ticket(name)
        if told := reader.take(LATER):
            return told
        assert await signals.wait(name, ticket, PATIENCE), "nobody told it"


async def test_a_reader_is_told_that_there_is_more(
    desk: LogDesk, node: LogNode, signals: Signals
):
    place = await make_place(node)
    with desk.reading("ada") as reader:
        assert desk.follow("ada", place, await read(node, place))
        await until(lambda: node.waiting == 1, "somebody waits at the node")
        assert reader.take(LATER) == []
        node.print(place.container, "more")
        assert await hear(signals, reader) == ["a session"]
    assert desk.followed == 0, "with that it is done, until one asks again"


async def test_nothing_is_missed_between_reading_and_following(
    desk: LogDesk, node: LogNode, signals: Signals
):
    place = await make_place(node)
    now = await read(node, place)
    node.print(place.container, "more", ago=10)
    with desk.reading("ada") as ada, desk.reading("bob") as bob:
        desk.follow("bob", place, now)
        await until(lambda: node.waiting == 1, "somebody waits at the node")
        assert bob.take(LATER) == [], "it is in what bob has read"
        desk.follow("ada", place, now - 20 * SECOND)
        assert await hear(signals, ada) == ["a session"]
        assert await hear(signals, bob) == ["a session"]


async def test_a_thousand_readers_of_one_log_wait_once(
    desk: LogDesk, node: LogNode, signals: Signals
):
    place = await make_place(node)
    moment = await read(node, place)
    people = [f"person-{number}" for number in range(1000)]
    with contextlib.ExitStack() as open_streams:
        readers = [open_streams.enter_context(desk.reading(each)) for each in people]
        assert all(desk.follow(each, place, moment) for each in people)
        await until(lambda: node.waiting == 1, "somebody waits at the node")
        for number in range(1000):
            node.print(place.container, f"line {number}")
        for reader in readers:
            assert await hear(signals, reader) == ["a session"]
    assert node.asked == 1, "however many read, and however much is printed"


async def test_without_a_stream_nobody_is_told_and_so_nothing_is_followed(
    desk: LogDesk, node: LogNode
):
    place = await make_place(node)
    moment = await read(node, place)
    with desk.reading("bob"):
        assert not desk.follow("ada", place, moment)
    assert not desk.follow("bob", place, moment)
    assert desk.followed == 0


async def test_a_node_that_cannot_tell_of_more_is_not_asked_to(
    desk: LogDesk, node: LogNode
):
    place = await make_place(node)
    with desk.reading("ada"):
        assert not desk.follow("ada", place, None)


async def test_nobody_waits_any_more_when_the_last_stream_has_ended(
    desk: LogDesk, node: LogNode
):
    place = await make_place(node)
    moment = await read(node, place)
    with desk.reading("ada"):
        with desk.reading("ada"), desk.reading("bob"):
            desk.follow("ada", place, moment)
            desk.follow("bob", place, moment)
            await until(lambda: node.waiting == 1, "somebody waits at the node")
        assert desk.followed == 1, "ada has another window"
    assert desk.followed == 0
    await until(lambda: node.waiting == 0, "the node was let go")


async def test_what_does_not_print_yet_is_waited_for(
    desk: LogDesk, node: LogNode, signals: Signals, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "ABSENT_SECONDS", 0.01)
    place = Place("a session", str(uuid4()), AGENT_ID, node.url)
    with desk.reading("ada") as reader:
        assert desk.follow("ada", place, await read(node, place))
        await until(lambda: node.waiting == 1, "somebody waits at the node")
        await node.run(place.container)
        node.print(place.container, "at last")
        assert await hear(signals, reader) == ["a session"]


async def test_that_a_log_has_ended_is_told_once(
    desk: LogDesk, node: LogNode, signals: Signals
):
    place = await make_place(node)
    with desk.reading("ada") as reader:
        desk.follow("ada", place, await read(node, place))
        await until(lambda: node.waiting == 1, "somebody waits at the node")
        await node.end(place.container)
        assert await hear(signals, reader) == ["a session"]
        assert desk.follow("ada", place, await read(node, place)), "no need to ask"
        assert desk.followed == 0


async def test_what_one_opened_first_makes_room_and_is_told_so(
    desk: LogDesk, node: LogNode, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_desk, "MOST_EACH", 2)
    first, second, third = [await make_place(node, name) for name in "123"]
    with desk.reading("ada") as ada, desk.reading("bob") as bob:
        for place in (first, second, first, third):
            assert desk.follow("ada", place, await read(node, place))
        assert desk.follow("bob", third, await read(node, third))
        assert ada.take(LATER) == ["2"], "it was asked for longest ago"
        assert desk.followed == 2
        assert bob.take(LATER) == []


async def test_what_has_been_told_takes_no_room(
    desk: LogDesk, node: LogNode, signals: Signals, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_desk, "MOST_EACH", 1)
    first, second = [await make_place(node, name) for name in "12"]
    with desk.reading("ada") as reader:
        desk.follow("ada", first, await read(node, first))
        node.print(first.container, "more")
        assert await hear(signals, reader) == ["1"]
        desk.follow("ada", second, await read(node, second))
        assert reader.take(LATER) == []
        assert desk.followed == 1


async def test_beyond_the_most_one_is_told_to_ask_oneself(
    desk: LogDesk, node: LogNode, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_desk, "MOST", 1)
    first, second = await make_place(node), await make_place(node)
    with desk.reading("ada"), desk.reading("bob"):
        assert desk.follow("ada", first, await read(node, first))
        assert not desk.follow("ada", second, await read(node, second))
        assert desk.follow("bob", first, await read(node, first)), "it costs nothing"
        assert desk.followed == 1


async def test_readers_ask_themselves_when_the_node_does_not_answer(
    desk: LogDesk, node: LogNode, signals: Signals, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_desk, "AGAIN_SECONDS", 0.01)
    place = await make_place(node)
    moment = await read(node, place)
    with desk.reading("ada") as reader:
        desk.follow("ada", place._replace(url="https://127.0.0.1:9"), moment)
        assert await asyncio.wait_for(hear(signals, reader), PATIENCE) == ["a session"]


def test_a_reader_is_told_at_once_and_then_at_intervals():
    reader = LogReader("ada")
    assert reader.take(0.0) == []
    reader.note("b")
    assert reader.take(1.0) == ["b"]
    reader.note("b")
    reader.note("a")
    reader.note("b")
    assert reader.take(1.1) == []
    assert reader.due == 1.0 + PAUSE_SECONDS
    assert reader.take(reader.due) == ["a", "b"]
    assert reader.take(LATER) == []
