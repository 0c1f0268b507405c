"""The way to apps inside containers, with real TLS, sockets and servers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSMsgType, web
from yarl import URL

from backendai_agent.apps import Apps
from backendai_agent.folders import container_folder
from backendai_agent.forwarding import make_server
from backendai_agent.outbox import Outbox, pack
from backendai_agent.runtimes.base import ContainerPatch, Endpoint
from backendai_agent.runtimes.fake import FakeRuntime
from backendai_agent.server import DataPlane
from tests.agent_hub import AGENT_ID, HUB, ROUTER, Authority
from tests.integration.agent_process import make_spec

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"
AGENT = f"{AGENT_ID}.agent.backendai.internal"
LOG = logging.getLogger("test")


class PointingRuntime(FakeRuntime):
    """A fake runtime whose containers' apps are the test's own servers."""

    target: Endpoint | None = None
    leaves = ""
    """What containers have printed that are removed while somebody reads that."""

    async def endpoint(self, container_id, app):
        return self.target if (container_id, app) == (CONTAINER, "lab") else None

    async def logs(self, container_id, tail):
        text = await super().logs(container_id, tail)
        if self.leaves:
            Outbox(Path(self.data_dir)).put(pack(container_id, self.leaves))
        return text


class Lab:
    """What stands for JupyterLab: it records, streams, echoes and refuses."""

    def __init__(self):
        self.seen: list[web.Request] = []
        self.gone = asyncio.Event()
        self.go_on = asyncio.Event()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/user/a/ws", self.echo)
        app.router.add_get("/user/a/refuse", self.refuse)
        app.router.add_get("/user/a/stream", self.stream)
        app.router.add_get("/user/a/break", self.break_off)
        app.router.add_post("/user/a/upload", self.upload)
        app.router.add_route("*", "/{path:.*}", self.mirror)
        self.runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )

    async def mirror(self, request):
        self.seen.append(request)
        response = web.Response(text=request.raw_path)
        response.headers.add("Set-Cookie", "a=1")
        response.headers.add("Set-Cookie", "b=2")
        return response

    async def upload(self, request):
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        return web.Response(text=str(size))

    async def stream(self, request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        try:
            await self.go_on.wait()
            await response.write(b"data: 2\n\n")
        except asyncio.CancelledError:
            self.gone.set()
            raise
        return response

    async def break_off(self, request):
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.abort()
        return response

    async def refuse(self, request):
        raise web.HTTPForbidden

    async def echo(self, request):
        self.seen.append(request)
        ws = web.WebSocketResponse(
            protocols=["v1.kernel.websocket.jupyter.org"], max_msg_size=0
        )
        await ws.prepare(request)
        async for message in ws:
            if message.type is WSMsgType.TEXT and message.data == "bye":
                await ws.close(code=4001, message=b"told to")
            elif message.type is WSMsgType.TEXT:
                await ws.send_str(message.data)
            else:
                await ws.send_bytes(message.data)
        self.gone.set()
        return ws


@pytest.fixture
async def lab():
    lab = Lab()
    await lab.runner.setup()
    yield lab
    await lab.runner.cleanup()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


@pytest.fixture
async def runtime(tmp_path, lab):
    site = web.TCPSite(lab.runner, "127.0.0.1", 0)
    await site.start()
    runtime = PointingRuntime(data_dir=str(tmp_path))
    runtime.target = Endpoint(host="127.0.0.1", port=lab.runner.addresses[0][1])
    await runtime.open()
    yield runtime
    await runtime.close()


@pytest.fixture
async def apps(runtime):
    apps = Apps(runtime)
    yield apps
    await apps.close()


@pytest.fixture
async def origin(runtime, apps, authority):
    plane = DataPlane(runtime, apps, Outbox(Path(runtime.data_dir)), log=LOG)
    context = authority.server_context(AGENT, "agent")
    context.verify_mode = ssl.CERT_REQUIRED
    runner = web.ServerRunner(make_server(plane.handle), shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@contextlib.asynccontextmanager
async def peer(authority, name=ROUTER):
    """A client that shows a certificate for *name*."""
    connector = aiohttp.TCPConnector(ssl=authority.client_context(name, "peer"))
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as it:
        yield it


@pytest.fixture
async def router(authority):
    async with peer(authority) as session:
        yield session


def at(origin, path):
    return URL(f"{origin}/containers/{CONTAINER}/apps/lab{path}", encoded=True)


def named(**more):
    return {"server_hostname": AGENT, **more}


async def test_requests_arrive_as_they_were_sent(origin, router, lab):
    path = "/user/a/x%2Fy%20z/%C3%BC?q=%2F&q=2&empty="
    headers = {"Host": "hub.example:8000", "Connection": "X-Hop", "X-Hop": "1"}
    async with router.get(at(origin, path), headers=headers, **named()) as answer:
        assert await answer.text() == path
        assert answer.headers.getall("Set-Cookie") == ["a=1", "b=2"]
    [request] = lab.seen
    assert request.host == "hub.example:8000"
    assert "X-Hop" not in request.headers


async def test_the_agent_adds_no_headers_of_its_own(origin, authority, lab):
    connector = aiohttp.TCPConnector(ssl=authority.client_context(ROUTER, "peer"))
    async with (
        aiohttp.ClientSession(
            connector=connector, skip_auto_headers=["Accept-Encoding", "Accept"]
        ) as bare,
        bare.get(at(origin, "/user/a/"), **named()) as answer,
    ):
        assert answer.status == 200
    assert not {"Accept-Encoding", "Accept"} & set(lab.seen[0].headers)


async def test_events_come_through_at_once(origin, router, lab):
    async with router.get(at(origin, "/user/a/stream"), **named()) as answer:
        assert await answer.content.readany() == b"data: 1\n\n"
        lab.go_on.set()
        assert await answer.content.read() == b"data: 2\n\n"


async def test_a_reader_that_leaves_is_noticed_inside(origin, router, lab):
    answer = await router.get(at(origin, "/user/a/stream"), **named())
    await answer.content.readany()
    answer.close()
    await asyncio.wait_for(lab.gone.wait(), 60)


async def test_large_bodies_are_streamed(origin, router):
    async def body():
        for _ in range(256):
            yield bytes(256 * 1024)

    async with router.post(
        at(origin, "/user/a/upload"), data=body(), **named()
    ) as answer:
        assert await answer.text() == str(64 << 20)


async def test_an_answer_that_breaks_off_is_seen_to_break_off(origin, router):
    with pytest.raises(aiohttp.ClientPayloadError):
        async with router.get(at(origin, "/user/a/break"), **named()) as answer:
            await answer.read()


async def test_websockets_with_subprotocols_and_messages_of_any_size(
    origin, router, lab
):
    offered = ["other", "v1.kernel.websocket.jupyter.org"]
    async with router.ws_connect(
        at(origin, "/user/a/ws"), protocols=offered, max_msg_size=0, **named()
    ) as ws:
        assert ws.protocol == "v1.kernel.websocket.jupyter.org"
        await ws.send_str("hello")
        assert await ws.receive_str() == "hello"
        large = bytes(20 << 20)
        await ws.send_bytes(large)
        assert await ws.receive_bytes() == large
    await asyncio.wait_for(lab.gone.wait(), 60)


async def test_websockets_close_as_the_app_closes_them(origin, router):
    async with router.ws_connect(at(origin, "/user/a/ws"), **named()) as ws:
        await ws.send_str("bye")
        message = await ws.receive()
        assert message.type is WSMsgType.CLOSE
        assert (ws.close_code, message.extra) == (4001, "told to")


async def test_a_browser_that_vanishes_ends_the_apps_websocket(origin, router, lab):
    ws = await router.ws_connect(at(origin, "/user/a/ws"), **named())
    ws._response.connection.transport.abort()
    await asyncio.wait_for(lab.gone.wait(), 60)
    await ws.close()


async def test_a_websocket_nobody_reads_holds_its_sender_back(origin, router, runtime):
    """Without back-pressure the node's memory would hold what is not read."""
    sent = 0
    done = asyncio.Event()

    async def pour(request):
        nonlocal sent
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        with contextlib.suppress(ConnectionError, TimeoutError):
            for _ in range(1000):
                async with asyncio.timeout(1):
                    await ws.send_bytes(bytes(256 * 1024))
                sent += 1
        done.set()
        return ws

    app = web.Application()
    app.router.add_get("/pour", pour)
    server = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    runtime.target = Endpoint(host="127.0.0.1", port=server.addresses[0][1])
    ws = await router.ws_connect(at(origin, "/pour"), **named())
    await asyncio.wait_for(done.wait(), 60)
    assert sent < 200  # of 1000: the rest was never taken from the app
    ws._response.connection.transport.abort()
    await ws.close()
    await server.cleanup()


async def test_a_websocket_the_app_refuses_is_refused(origin, router):
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await router.ws_connect(at(origin, "/user/a/refuse"), **named())
    assert caught.value.status == 403


@pytest.mark.parametrize("name", [AGENT, "other.backendai.internal"])
async def test_peers_that_are_neither_router_nor_hub_are_refused(
    origin, authority, lab, name
):
    async with (
        peer(authority, name) as session,
        session.get(at(origin, "/user/a/"), **named()) as answer,
    ):
        assert answer.status == 403
    assert lab.seen == []


async def test_the_hub_may_read_logs_and_health(origin, authority, runtime):
    spec = make_spec()
    container_folder(runtime.data_dir, spec.id).make()
    await runtime.start(spec, ContainerPatch())
    async with peer(authority, HUB) as session:
        url = f"{origin}/containers/{spec.id}/logs?tail=5"
        async with session.get(url, **named()) as answer:
            assert await answer.text() == "fake started for alice\n"
        async with session.get(f"{origin}/healthz", **named()) as answer:
            assert answer.status == 200
        gone = f"{origin}/containers/{CONTAINER}/logs"
        async with session.get(gone, **named()) as answer:
            assert (answer.status, await answer.text()) == (200, ""), "it says nothing"
        for path, status in {
            f"/containers/{spec.id}/logs?tail=x": 400,
            f"/containers/{spec.id}/logs/news": 400,
            f"/containers/{spec.id}/logs/news?after=0&wait=x": 400,
            f"/containers/{spec.id}/logs/news?after=0": 200,
            "/containers/../logs": 404,
            "/elsewhere": 404,
        }.items():
            url = URL(origin + path, encoded=True)
            async with session.get(url, **named()) as answer:
                assert answer.status == status


async def test_a_log_never_turns_empty_between_removal_and_delivery(
    origin, authority, runtime
):
    """What waits in the outbox is told although its container is gone."""
    Outbox(Path(runtime.data_dir)).put(pack(CONTAINER, "one\ntwo\nthree\n"))
    url = f"{origin}/containers/{CONTAINER}/logs?tail=2"
    async with (
        peer(authority, HUB) as session,
        session.get(url, **named()) as answer,
    ):
        assert await answer.text() == "two\nthree\n"


async def test_a_log_of_what_is_removed_while_it_is_read_is_not_empty(
    origin, authority, runtime
):
    runtime.leaves = "its last words\n"
    url = f"{origin}/containers/{CONTAINER}/logs"
    async with (
        peer(authority, HUB) as session,
        session.get(url, **named()) as answer,
    ):
        assert await answer.text() == "its last words\n"


async def test_without_a_certificate_nobody_gets_in(origin, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.file)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"{origin}/healthz", ssl=context, **named())


async def test_certificates_of_another_authority_do_not_count(
    origin, authority, tmp_path
):
    context = Authority(tmp_path / "other").client_context(ROUTER, "router")
    context.load_verify_locations(authority.file)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"{origin}/healthz", ssl=context, **named())


async def test_unknown_containers_and_dead_apps_are_told_apart(
    origin, router, runtime, lab
):
    other = str(at(origin, "/user/a/")).replace(CONTAINER, CONTAINER[:-1] + "2")
    async with router.get(other, **named()) as answer:
        assert answer.status == 404
    await lab.runner.cleanup()
    async with router.get(at(origin, "/user/a/"), **named()) as answer:
        assert answer.status == 502
    runtime.target = None
    async with router.get(at(origin, "/user/a/"), **named()) as answer:
        assert answer.status == 404


async def test_apps_on_unix_sockets_answer_however_long_the_path_is(
    origin, router, runtime, apps, lab, tmp_path
):
    folder = tmp_path / ("long-" * 30) / ("longer-" * 20)
    folder.mkdir(parents=True)
    path = folder / "lab.sock"
    for _ in range(2):  # the second time JupyterLab has made its socket anew
        listener = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        with contextlib.chdir(folder):
            listener.bind("lab.sock")
        site = web.SockSite(lab.runner, listener)
        await site.start()
        runtime.target = Endpoint(socket=path)
        answers = [await apps.answers(CONTAINER, "/user/a/api") for _ in range(2)]
        assert answers[-1]
        async with router.get(at(origin, "/user/a/"), **named()) as answer:
            assert answer.status == 200
        await site.stop()


async def test_a_link_in_place_of_the_socket_leads_nowhere(
    origin, router, runtime, lab, tmp_path
):
    real = tmp_path / "engine.sock"
    await web.UnixSite(lab.runner, str(real)).start()
    link = tmp_path / "lab.sock"
    link.symlink_to(real)
    runtime.target = Endpoint(socket=link)
    async with router.get(at(origin, "/user/a/"), **named()) as answer:
        assert answer.status == 502
    assert lab.seen == []
