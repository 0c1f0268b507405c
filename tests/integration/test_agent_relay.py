"""A session's way to the platform, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import stat
from pathlib import Path

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
        timeout=aiohttp.ClientTimeout(total=60),
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


async def test_services_may_have_a_host_of_their_own(folder, platform):
    other = Platform()
    await other.runner.setup()
    await web.TCPSite(other.runner, "127.0.0.1", 0).start()
    port, service = (p.runner.addresses[0][1] for p in (platform, other))
    relays = Relays(
        f"http://127.0.0.1:{port}/base/", f"http://127.0.0.1:{service}/", log=LOG
    )
    await relays.open(CONTAINER, folder)
    async with session() as client:
        for path in ("hub/api/user", "services/backendai/api/me"):
            async with client.get(f"http://x/base/{path}") as answer:
                assert answer.status == 200
    assert [r.path for r in platform.seen] == ["/base/hub/api/user"]
    assert [r.path for r in other.seen] == ["/base/services/backendai/api/me"]
    await relays.close()
    await other.runner.cleanup()


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
        await asyncio.wait_for(platform.gone.wait(), 60)


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


# -- what one session cannot do to the others ---------------------------------------


@pytest.fixture
async def narrow(platform):
    """Relays with little room and little patience."""
    port = platform.runner.addresses[0][1]
    url = f"http://127.0.0.1:{port}/base/"
    relays = Relays(url, log=LOG, connections=2, patience=0.3)
    yield relays
    await relays.close()


async def ask_plainly(path="/base/hub/api/user"):
    """Ask at once: whoever takes long to finish a request is let go."""
    reader, writer = await asyncio.open_unix_connection("hub.sock")
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return reader, writer


async def let_go(writer):
    writer.close()
    await writer.wait_closed()


async def test_more_connections_than_allowed_wait_until_there_is_room(narrow, folder):
    await narrow.open(CONTAINER, folder)
    events = "/base/services/backendai/api/events"
    streams = [await ask_plainly(events) for _ in range(2)]
    for reader, _ in streams:
        await reader.readuntil(b"id: 1")
    reader, writer = await ask_plainly()
    with pytest.raises(TimeoutError):  # quiet streams stay, and count
        await asyncio.wait_for(reader.read(1), 1.0)
    await let_go(streams[0][1])
    assert b" 200 " in await asyncio.wait_for(reader.readline(), 60)
    await let_go(streams[1][1])
    await let_go(writer)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /base/hub/api/user HT",
        b"POST /base/hub/api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
    ],
)
async def test_whoever_does_not_finish_a_request_is_let_go(narrow, folder, sent):
    await narrow.open(CONTAINER, folder)
    reader, writer = await asyncio.open_unix_connection("hub.sock")
    writer.write(sent)
    await asyncio.wait_for(reader.read(), 60)
    await let_go(writer)


async def test_what_is_not_http_leaves_nothing_in_the_log(relays, folder, caplog):
    await relays.open(CONTAINER, folder)
    with caplog.at_level(logging.INFO):
        reader, writer = await asyncio.open_unix_connection("hub.sock")
        writer.write(b"canary-4711 \x01\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 60)
        await let_go(writer)
    assert b" 400 " in answer
    assert b"canary" not in answer
    assert caplog.records == []


async def test_a_lack_of_descriptors_is_logged_once_and_passes(relays, folder, caplog):
    await relays.open(CONTAINER, folder)
    callers = [await ask_plainly() for _ in range(20)]
    for reader, _ in callers:
        assert b" 200 " in await reader.readline()
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use - 5, hard))
    try:
        for caller in waiting:
            caller.connect("hub.sock")
        async with asyncio.timeout(60):
            while not caplog.records:
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.2)  # the next attempt fails too
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for caller in waiting:
            caller.close()
    for _, writer in callers:
        await let_go(writer)
    [record] = caplog.records
    assert record.exc_info is None
    async with session() as client, client.get(USER) as answer:
        assert answer.status == 200
