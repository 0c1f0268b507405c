"""What JupyterHub and sessions need of a proxy, whichever proxy stands in front.

The same stories are told of our router alone, and of npm's configurable-http-proxy
with our router as the gateway behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os

import aiohttp
import pytest
from aiohttp import WSMsgType
from multidict import CIMultiDict
from router_harness import (
    AUTHORIZED,
    SERVICE_TOKEN,
    TOKEN,
    Authority,
    Notebook,
    Ports,
    RoutesService,
    find_npm_proxy,
    routing,
    serving,
    until_open,
)

from backendai_hub.api.agents import Route

AGENT = "5b0e9ac1-52c8-4be5-9d0f-1f2f4d1c0c11"
PREFIX = "/user/ann/lab-1"


class Site:
    """A proxy in front of one session, and a client."""

    def __init__(self, ports: Ports, notebook: Notebook, client) -> None:
        self.ports = ports
        self.notebook = notebook
        self.client = client

    def url(self, path: str) -> str:
        return f"{self.ports.url}{PREFIX}{path}"

    def api(self, method: str, path: str = "", **kwargs):
        kwargs.setdefault("headers", AUTHORIZED)
        return self.client.request(method, f"{self.ports.api_url}{path}", **kwargs)


@contextlib.asynccontextmanager
async def npm_proxy(ports: Ports):
    process = await asyncio.create_subprocess_exec(
        find_npm_proxy(),
        *ports.arguments(),
        *("--log-level", "error"),
        env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": TOKEN},
    )
    try:
        await until_open(ports.public, ports.api)
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(params=["router", pytest.param("npm", marks=pytest.mark.node)])
async def site(request, tmp_path):
    authority = Authority(tmp_path / "keys")
    certificate, key = authority.issue("router.backendai.internal")
    token_file = tmp_path / "token"
    token_file.write_text(SERVICE_TOKEN)
    ports = Ports()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        notebook = Notebook()
        agent = await enter(
            serving(
                notebook,
                tls=authority.server_context(f"{AGENT}.agent.backendai.internal"),
            )
        )
        service = RoutesService(
            Route(
                prefix=f"{PREFIX}/",
                agent_id=AGENT,
                agent_url=f"https://127.0.0.1:{agent}",
                container="c1",
            )
        )
        service_port = await enter(serving(service))
        arguments = [
            *("--gateway", f"127.0.0.1:{ports.gateway}"),
            *("--routes-url", f"http://127.0.0.1:{service_port}/api/routes"),
            *("--routes-token-file", str(token_file)),
            *("--tls-ca", str(authority.file)),
            *("--tls-cert", str(certificate), "--tls-key", str(key)),
        ]
        if request.param == "npm":
            await enter(routing("--no-public", *arguments, ports=ports))
            await enter(npm_proxy(ports))
        else:
            await enter(routing(*arguments, ports=ports))
        client = await enter(aiohttp.ClientSession())
        site = Site(ports, notebook, client)
        target = {"target": ports.gateway_url, "jupyterhub": True, "user": "ann"}
        async with site.api("POST", PREFIX, json=target) as answer:
            assert answer.status == 201
        yield site


async def test_a_request_reaches_the_session_as_it_was_written(site):
    raw = "/files/a%2Fb%20c/%E2%82%AC;v=1?q=%zz&x=1+2&&empty="
    url = aiohttp.client.URL(site.url(raw), encoded=True)
    async with site.client.post(url, data=b"body", headers={"X-Mine": "1"}) as answer:
        seen = await answer.json()

    assert seen["path"] == PREFIX + raw
    assert seen["method"] == "POST"
    assert seen["body"] == "body"
    headers = CIMultiDict(seen["headers"])
    assert headers["X-Mine"] == "1"
    assert headers["Host"] == f"127.0.0.1:{site.ports.public}"
    assert site.notebook.containers == ["c1"]


async def test_events_arrive_when_they_are_sent(site):
    async with site.client.get(site.url("/stream")) as answer:
        first = await asyncio.wait_for(answer.content.readuntil(b"\n\n"), 60)
        site.notebook.go_on.set()
        rest = await answer.content.read()

    assert first == b"data: first\n\n"
    assert rest == b"data: second\n\n"
    assert answer.headers["Content-Type"] == "text/event-stream"


async def test_an_upload_arrives_while_it_is_sent(site):
    sent = asyncio.Event()

    async def body():
        yield b"first"
        await sent.wait()
        yield b"second" * 100_000

    async with asyncio.TaskGroup() as group:
        request = group.create_task(
            site.client.put(site.url("/upload"), data=body())._coro
        )
        assert await asyncio.wait_for(site.notebook.uploaded.get(), 60) == b"first"
        sent.set()
    async with request.result() as answer:
        assert (await answer.json())["size"] == 5 + 600_000


async def test_a_websocket_keeps_its_subprotocol_messages_and_close_code(site):
    wanted = ("v1.kernel.websocket.jupyter.org", "other")
    async with site.client.ws_connect(
        site.url("/channels"), protocols=wanted, max_msg_size=0
    ) as channel:
        assert channel.protocol == wanted[0]
        await channel.send_str("hello")
        assert (await channel.receive_str()) == "hello"
        large = os.urandom(5_000_000)
        await channel.send_bytes(large)
        assert (await channel.receive_bytes(timeout=60)) == large
        await channel.ping()
        await channel.send_str("close")
        message = await channel.receive()

    assert message.type is WSMsgType.CLOSE
    assert (message.data, message.extra) == (4321, "enough")


async def test_a_refused_websocket_says_why(site):
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await site.client.ws_connect(site.url("/early"))

    assert refused.value.status == 409


async def test_repeated_headers_stay_repeated_and_those_of_the_hop_stay_behind(site):
    async with site.client.get(site.url("/cookies")) as answer:
        headers = answer.headers

    assert headers.getall("Set-Cookie") == [
        "one=1; Path=/; HttpOnly",
        "two=2; Path=/hub/",
    ]
    assert "Keep-Alive" not in headers


async def test_a_length_that_is_known_stays_known(site):
    async with site.client.get(site.url("/download")) as answer:
        assert answer.headers["Content-Length"] == "3000000"
        assert len(await answer.read()) == 3_000_000


@pytest.mark.parametrize(("path", "status"), [("/empty", 204), ("/unchanged", 304)])
async def test_responses_without_a_body_have_none(site, path, status):
    for _ in range(2):  # the connection is still in step
        async with site.client.get(site.url(path)) as answer:
            assert answer.status == status
            assert await answer.read() == b""


async def test_head_tells_the_length_and_sends_nothing(site):
    async with site.client.head(site.url("/download")) as answer:
        assert answer.headers["Content-Length"] == "3000000"
        assert await answer.read() == b""


async def test_a_client_that_leaves_ends_the_work_upstream(site):
    async with site.client.get(site.url("/forever")) as answer:
        await answer.content.readexactly(1000)
        answer.close()

    await asyncio.wait_for(site.notebook.gone.wait(), 60)


async def test_compressed_bodies_pass_untouched(site):
    squeezed = bytes.fromhex("1f8b08") + b"not really gzip"
    headers = {"Content-Encoding": "gzip"}
    async with site.client.post(
        site.url("/x"), data=squeezed, headers=headers
    ) as answer:
        assert (await answer.json())["body"] == squeezed.decode("latin-1")


async def test_the_table_shows_what_was_added(site):
    async with site.api("GET") as answer:
        table = await answer.json()
    async with site.api("GET", PREFIX) as answer:
        alone = await answer.json()

    assert table == {PREFIX: alone}
    assert alone["target"] == site.ports.gateway_url
    assert alone["user"] == "ann"
    assert alone["last_activity"].endswith("Z")


async def test_routes_come_and_go(site):
    async with site.api(
        "POST", "/user/ann%40x/", json={"target": "http://a:1"}
    ) as made:
        assert made.status == 201
    async with site.api("GET", "/user/ann@x") as answer:
        assert (await answer.json())["target"] == "http://a:1"
    async with site.api("DELETE", "/user/ann%40x") as gone:
        assert gone.status == 204
    async with site.api("DELETE", "/user/ann%40x") as gone:
        assert gone.status == 404
    async with site.api("GET", "/user/ann@x") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/x", "not json", 400),
        ("POST", "/x", json.dumps({"no": "target"}), 400),
        ("PUT", "/x", "{}", 405),
        ("GET", "?inactive_since=yesterday", None, 400),
    ],
)
async def test_nonsense_is_refused(site, method, path, body, status):
    async with site.api(method, path, data=body) as answer:
        assert answer.status == status


@pytest.mark.parametrize("token", ["", "token wrong", "Basic abc", f"{TOKEN}"])
async def test_the_api_is_closed_to_strangers(site, token):
    async with site.api("GET", headers={"Authorization": token}) as answer:
        assert answer.status == 403


async def test_use_is_noticed_and_disuse_can_be_asked_for(site):
    async with site.api("POST", "/idle", json={"target": "http://127.0.0.1:9"}):
        pass
    async with site.api("GET") as answer:
        before = await answer.json()
    async with site.client.get(site.url("/x")) as used:
        assert used.status == 200
    async with asyncio.timeout(60):
        while True:
            async with site.api("GET") as answer:
                after = await answer.json()
            if after[PREFIX]["last_activity"] > before[PREFIX]["last_activity"]:
                break
            async with site.client.get(site.url("/x")):
                pass
    since = after[PREFIX]["last_activity"]
    async with site.api("GET", params={"inactive_since": since}) as answer:
        idle = await answer.json()

    assert list(idle) == ["/idle"]


async def test_the_proxy_says_that_it_is_well(site):
    async with site.client.get(f"{site.ports.url}/_chp_healthz") as answer:
        assert await answer.json(content_type=None) == {"status": "OK"}


async def test_what_has_no_route_is_not_found(site):
    async with site.client.get(f"{site.ports.url}/nowhere") as answer:
        assert answer.status == 404


async def test_a_server_that_does_not_answer_is_unavailable(site):
    async with site.api("POST", "/dead", json={"target": "http://127.0.0.1:1"}):
        pass
    async with site.client.get(f"{site.ports.url}/dead/x") as answer:
        assert answer.status == 503
