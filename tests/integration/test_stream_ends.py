"""A stream of events ends when its reader may not read it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from backendai_hub.client.agents import AgentClient
from backendai_hub.core.access import Caller
from backendai_hub.core.nouns import Noun, noun_of
from backendai_hub.db.signals import Signals
from backendai_hub.handlers import streams
from backendai_hub.handlers.base import APIHandler, Credentials, Service
from backendai_hub.handlers.routes import patterns
from backendai_hub.handlers.streams import EventsHandler
from backendai_hub.operations.nouns import change_noun, create_noun, list_nouns
from backendai_hub.operations.platform import Platform
from tests.admin import basic
from tests.factories import principal_of
from tests.integration.test_joining import configured, make

ENDS_WITHIN = 60.0
"""Much more than the stream takes that asks again ten times a second."""


@pytest.fixture
def site(platform: Platform) -> Platform:
    return configured(platform)


@pytest.fixture
async def stream(
    site: Platform, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[aiohttp.ClientResponse]:
    """What somebody reads with a keypair, from a service that asks again often."""
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(streams, "IDENTIFY_SECONDS", 0.0)
    async with serve_stream(site) as ask, ask("") as answer:
        assert answer.status == 200, await answer.text()
        yield answer


Ask = Callable[[str], AbstractAsyncContextManager[aiohttp.ClientResponse]]


@asynccontextmanager
async def serve_stream(site: Platform) -> AsyncIterator[Ask]:
    """Serve the stream, to be asked for by ada of the domain lab, with a query."""
    await make(site, "domain", name="lab")
    await make(site, "user", name="ada", domain="lab")
    async with serve(site, EventsHandler) as ask:
        yield lambda query: ask(f"api/events{query}")


@asynccontextmanager
async def serve(
    site: Platform, *handlers: type[APIHandler], nodes: AgentClient | None = None
) -> AsyncIterator[Ask]:
    """Serve some routes, to be asked for by ada with a keypair."""
    keypair = noun_of("keypair")
    ada = await principal_of(site, "ada", Caller.USER)
    key = await create_noun(site, ada, keypair, keypair.create_type(user="ada"))
    service = Service(
        platform=site,
        signals=Signals(),
        credentials=Credentials(spawner="spawners", router="routers"),
        prefix="/x/",
        nodes=nodes,
    )
    routes = patterns(handlers, "/x/")
    application = Application(routes, service=service, log_function=lambda _: None)
    server = HTTPServer(application)
    socket, port = bind_unused_port()
    server.add_socket(socket)
    login = {"Authorization": basic(key.name, key.secret)}
    try:
        async with aiohttp.ClientSession(headers=login) as session:
            url = f"http://127.0.0.1:{port}/x"
            yield lambda path: session.get(f"{url}/{path}")
    finally:
        service.stopping.append(True)
        service.signals.wake_all()
        server.stop()
        await server.close_all_connections()


async def change(site: Platform, noun: Noun, name: str, **fields: object) -> None:
    root = await principal_of(site, "root", Caller.SUPERADMIN)
    await change_noun(site, root, noun, name, noun.change_type(**fields))


async def read_on(stream: aiohttp.ClientResponse) -> None:
    """Read until the reader has been asked for again a few times."""
    for _ in range(10):
        await asyncio.wait_for(stream.content.readline(), ENDS_WITHIN)


@pytest.mark.parametrize(
    ("noun", "fields"),
    [("user", {"status": "inactive"}), ("domain", {"is_active": False})],
)
async def test_the_stream_of_who_is_disabled_ends(
    site: Platform,
    stream: aiohttp.ClientResponse,
    noun: str,
    fields: dict[str, object],
):
    await read_on(stream)

    name = "ada" if noun == "user" else "lab"
    await change(site, noun_of(noun), name, **fields)

    await asyncio.wait_for(stream.read(), ENDS_WITHIN)


async def test_so_does_that_of_a_disabled_keypair(
    site: Platform, stream: aiohttp.ClientResponse
):
    await read_on(stream)
    keypair = noun_of("keypair")
    ada = await principal_of(site, "ada", Caller.USER)
    keys, _ = await list_nouns(site, ada, keypair, {})
    for key in keys:
        await change(site, keypair, key.name, is_active=False)

    await asyncio.wait_for(stream.read(), ENDS_WITHIN)


async def test_the_stream_of_who_may_read_it_goes_on(stream: aiohttp.ClientResponse):
    beats = 0
    async with asyncio.timeout(ENDS_WITHIN):
        async for line in stream.content:
            beats += line.startswith(b": keep-alive")
            if beats == 3:
                break
    assert beats == 3
