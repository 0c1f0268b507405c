"""A session's way to the platform, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import stat

import aiohttp
import pytest
from aiohttp import web

from backendai_agent.folders import container_folder
from backendai_agent.relay import Relays

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"
USER = "http://x/base/hub/api/user"
LOG = logging.getLogger("test")


class Platform:
    """What stands for the platform's public address."""

    def __init__(self):
        self.seen: list[web.Request] = []
        self.gone = asyncio.Event()
        app = web.Application()
        app.router.add_get("/base/services/backendai/api/events", self.events)
        app.router.add_route("*", "/{path:.*}", self.mirror)
        self.runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )

    async def mirror(self, request):
        self.seen.append(request)
        return web.Response(text=f"{request.method} {await request.text()}")

    async def events(self, request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"id: 1\n\n")
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()


@pytest.fixture
async def platform():
    platform = Platform()
    await platform.runner.setup()
    await web.TCPSite(platform.runner, "127.0.0.1", 0).start()
    yield platform
    await platform.runner.cleanup()


@pytest.fixture
async def relays(platform):
    port = platform.runner.addresses[0][1]
    relays = Relays(f"http://127.0.0.1:{port}/base/", log=LOG)
    yield relays
    await relays.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The container's folder, seen from inside: as in one, the path is short."""
    folder = container_folder(tmp_path, CONTAINER)
    folder.make()
    monkeypatch.chdir(folder.run)
    return folder


def session():
    return aiohttp.ClientSession(
        connector=aiohttp.UnixConnector("hub.sock"),
        timeout=aiohttp.ClientTimeout(total=20),
    )


async def test_calls_reach_the_platform_with_nothing_spoofed(relays, folder, platform):
    await relays.open(CONTAINER, folder)
    async with (
        session() as client,
        client.post(
            "http://x/base/hub/api/users/alice/activity",
            data="{}",
            headers={
                "Authorization": "token t",
                "X-Forwarded-For": "10.0.0.1",
                "X-Backendai-Act-For": "bob",
            },
        ) as answer,
    ):
        assert await answer.text() == "POST {}"
    [request] = platform.seen
    assert request.headers["Authorization"] == "token t"
    assert not {"X-Forwarded-For", "X-Backendai-Act-For"} & set(request.headers)
    assert request.host.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "path",
    ["/", "/base/hub/login", "/base/user/bob/api/contents", "/hub/api/user"],
)
async def test_other_addresses_are_refused(relays, folder, platform, path):
    await relays.open(CONTAINER, folder)
    async with session() as client, client.get(f"http://x{path}") as answer:
        assert answer.status == 403
    assert platform.seen == []


async def test_addresses_that_go_up_are_refused_as_they_are_on_the_wire(
    relays, folder, platform
):
    await relays.open(CONTAINER, folder)
    for target in ("/base/hub/api/../login", "/base/hub/api/%2e%2e/login"):
        reader, writer = await asyncio.open_unix_connection("hub.sock")
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 403 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
    assert platform.seen == []


async def test_websockets_are_refused(relays, folder):
    await relays.open(CONTAINER, folder)
    async with session() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect("http://x/base/hub/api/user")


async def test_event_streams_flow_and_end_with_their_reader(relays, folder, platform):
    await relays.open(CONTAINER, folder)
    async with session() as client:
        answer = await client.get("http://x/base/services/backendai/api/events")
        assert await answer.content.readany() == b"id: 1\n\n"
        answer.close()
        await asyncio.wait_for(platform.gone.wait(), 10)


async def test_a_platform_that_is_down_is_a_502(relays, folder, platform):
    await relays.open(CONTAINER, folder)
    await platform.runner.cleanup()
    async with session() as client, client.get(USER) as answer:
        assert answer.status == 502


async def test_the_socket_is_for_whoever_is_inside_and_replaces_what_was_there(
    relays, folder, tmp_path
):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    victim.chmod(0o600)
    folder.hub_socket.symlink_to(victim)  # the session's user may write here

    await relays.open(CONTAINER, folder)

    mode = folder.hub_socket.lstat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o666
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


async def test_opening_twice_and_dropping_twice_is_fine(relays, folder):
    await asyncio.gather(*(relays.open(CONTAINER, folder) for _ in range(3)))
    async with session() as client, client.get(USER) as answer:
        assert answer.status == 200
    await relays.drop(CONTAINER)
    await relays.drop(CONTAINER)
    with pytest.raises(OSError, match=r"refused|No such file"):
        await asyncio.open_unix_connection("hub.sock")
