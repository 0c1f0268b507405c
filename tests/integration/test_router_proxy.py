"""The router between a client one cannot trust and a server one must not confuse."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl

import aiohttp
import pytest
from aiohttp import web
from router_harness import (
    AUTHORIZED,
    TOKEN,
    Authority,
    Notebook,
    Ports,
    free_port,
    raw_exchange,
    router_process,
    routing,
    serving,
    until_open,
)

from backendai_hub.router.forward import Destination, Forwarder, ForwardRules
from backendai_hub.router.headers import HeaderRules, TrustedProxies
from backendai_hub.router.refusals import RefusalError
from backendai_hub.router.requests import Limits, read_address
from backendai_hub.router.targets import parse_target
from backendai_hub.router.upstreams import Upstreams, UpstreamSettings
from backendai_hub.router.websockets import Splices


@pytest.fixture
async def notebook():
    return Notebook()


@pytest.fixture
async def behind(notebook):
    async with serving(notebook) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def client():
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def router(behind):
    async with routing("--default-target", behind) as ports:
        yield ports


def head(*lines: str, method: str = "GET", target: str = "/x") -> bytes:
    text = "\r\n".join([f"{method} {target} HTTP/1.1", "Host: site.example", *lines])
    return f"{text}\r\n\r\n".encode("latin-1")


async def seen_headers(client, url: str, **headers: str) -> dict[str, str]:
    async with client.get(url, headers=headers) as answer:
        return dict((await answer.json())["headers"])


# Who the server behind us takes the client for


async def test_a_client_cannot_say_it_was_forwarded(router, client):
    headers = await seen_headers(
        client,
        f"{router.url}/x",
        **{
            "X-Forwarded-For": "10.9.9.9",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "evil.example",
            "X-Real-IP": "10.9.9.9",
            "X-Scheme": "https",
            "Forwarded": "for=10.9.9.9",
        },
    )

    assert headers["X-Forwarded-For"] == "127.0.0.1"
    assert headers["X-Forwarded-Proto"] == "http"
    assert headers["X-Forwarded-Host"] == f"127.0.0.1:{router.public}"
    assert headers["X-Forwarded-Port"] == str(router.public)
    assert not {"X-Real-IP", "X-Scheme", "Forwarded"} & set(headers)


async def test_a_trusted_proxy_is_believed_and_added_to(behind, client):
    arguments = ["--default-target", behind, "--trusted-proxies", "127.0.0.0/8"]
    async with routing(*arguments) as router:
        headers = await seen_headers(
            client,
            f"{router.url}/x",
            **{"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"},
        )

    assert headers["X-Forwarded-For"] == "192.0.2.7, 127.0.0.1"
    assert headers["X-Forwarded-Proto"] == "https"


async def test_forwarding_headers_can_be_left_out(behind, client):
    async with routing("--default-target", behind, "--no-x-forward") as router:
        headers = await seen_headers(
            client, f"{router.url}/x", **{"X-Forwarded-For": "10.9.9.9"}
        )

    assert not any(name.startswith("X-Forwarded") for name in headers)


async def test_headers_can_be_added_and_the_host_replaced(behind, client):
    async with routing(
        *("--default-target", behind, "--change-origin"),
        *("--custom-header", "X-One: 1", "--custom-header", "X-Two:2"),
    ) as router:
        headers = await seen_headers(client, f"{router.url}/x")

    assert (headers["X-One"], headers["X-Two"]) == ("1", "2")
    assert f"http://{headers['Host']}" == behind


# Requests that two servers could read in two ways


@pytest.mark.parametrize(
    "request_bytes",
    [
        head("Content-Length: 5", "Transfer-Encoding: chunked", method="POST")
        + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        head("Transfer-Encoding: chunked", "Content-Length: 5", method="POST")
        + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        head("Content-Length: 5", "Content-Length: 6", method="POST") + b"helloo",
        head("Content-Length: 5", "Content-Length: 5", method="POST") + b"hello",
        head("Content-Length: +5", method="POST") + b"hello",
        head("Content-Length: 5, 6", method="POST") + b"helloo",
        head("Transfer-Encoding: xchunked", method="POST") + b"0\r\n\r\n",
        head("Transfer-Encoding: chunked, identity", method="POST") + b"0\r\n\r\n",
        head("Transfer-Encoding : chunked", method="POST") + b"0\r\n\r\n",
        head("Transfer-Encoding:\x0bchunked", method="POST") + b"0\r\n\r\n",
        head("Host: other.example"),
        head("X: a\r\n folded"),
        head("X: a\x00b"),
        head("X: a\nTransfer-Encoding: chunked"),
        b"GET /x HTTP/1.1\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: a?b\r\n\r\n",
        b"GET x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
        head(target="/user/ann/../bob/x"),
        head(target="/user/ann/%2e%2E/bob/x"),
        head(target="/user/ann/..%2fbob/x"),
        head("Connection: Upgrade", "Upgrade: websocket", "Content-Length: 3") + b"abc",
    ],
)
async def test_an_ambiguous_request_is_refused(router, notebook, request_bytes):
    answer = await raw_exchange(router.public, request_bytes)

    assert answer.split()[1] == b"400", answer
    assert b"smuggled" not in answer
    assert notebook.hits == 0


async def test_a_chunked_body_with_garbage_in_it_does_not_go_on(router, notebook):
    answer = await raw_exchange(
        router.public,
        head("Transfer-Encoding: chunked", method="POST", target="/upload")
        + b"5\r\nhello\r\nZZ\r\n",
    )

    assert answer.startswith(b"HTTP/1.0 400 ")


async def test_what_follows_a_refused_request_is_not_read(router, notebook):
    answer = await raw_exchange(
        router.public,
        head(target="/a/../b") + head(target="/second"),
    )

    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer
    assert notebook.hits == 0


async def test_this_is_no_proxy_for_other_sites(router, notebook):
    answer = await raw_exchange(
        router.public, b"CONNECT other.example:443 HTTP/1.1\r\nHost: a\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 405 ")
    assert notebook.hits == 0


async def test_an_absolute_target_names_the_host(router, notebook):
    answer = await raw_exchange(
        router.public,
        b"GET http://named.example:81/y?z HTTP/1.1\r\nHost: other\r\n"
        b"Connection: close\r\n\r\n",
    )

    assert b'["Host", "named.example:81"]' in answer
    assert notebook.paths == ["/y?z"]


async def test_pipelined_requests_are_answered_in_order(router, notebook):
    first = head(target="/1")
    second = head("Connection: close", target="/2")
    reader, writer = await asyncio.open_connection("127.0.0.1", router.public)
    writer.write(first + second)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    await writer.wait_closed()

    assert answer.index(b'"path": "/1"') < answer.index(b'"path": "/2"')


async def test_an_old_client_gets_a_response_without_chunks(router, notebook):
    notebook.go_on.set()
    answer = await raw_exchange(
        router.public, b"GET /stream HTTP/1.0\r\nHost: a\r\n\r\n"
    )

    assert b"chunked" not in answer
    assert b"Connection: close" in answer


# Sizes


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        (["X: " + "a" * 40_000], "/x"),
        ([f"X{n}: " + "a" * 20_000 for n in range(4)], "/x"),
        ([f"X{n}: a" for n in range(200)], "/x"),
        ([], "/" + "a" * 20_000),
    ],
    ids=["one header", "all headers", "number of headers", "request line"],
)
async def test_an_oversize_head_is_refused(router, notebook, lines, target):
    answer = await raw_exchange(router.public, head(*lines, target=target))

    assert answer.split()[1] in {b"400", b"414", b"431"}
    assert notebook.hits == 0


async def test_large_cookies_of_a_hub_still_pass(router, client):
    cookies = {"Cookie": "a=" + "b" * 20_000}
    headers = await seen_headers(client, f"{router.url}/x", **cookies)

    assert len(headers["Cookie"]) == 20_002


async def test_a_body_has_no_limit_unless_one_is_set(behind, client):
    async def stream(size: int):
        for _ in range(size // 50_000):
            yield b"x" * 50_000

    async with (
        routing("--default-target", behind) as router,
        client.put(f"{router.url}/upload", data=stream(8_000_000)) as answer,
    ):
        assert (await answer.json())["size"] == 8_000_000
    limit = "--Router.max_body_size=1000000"
    async with routing("--default-target", behind, limit) as router:
        async with client.put(f"{router.url}/upload", data=b"x" * 999_999) as answer:
            assert answer.status == 200
        # The connection is closed on whoever does not stop sending.
        with contextlib.suppress(aiohttp.ClientError):
            async with client.put(
                f"{router.url}/upload", data=stream(8_000_000)
            ) as answer:
                assert answer.status == 413


# Time


async def test_a_response_begins_before_its_body_does(router, notebook, client):
    async with asyncio.timeout(60), client.get(f"{router.url}/quiet") as answer:
        notebook.go_on.set()
        assert answer.status == 200
        assert await answer.read() == b""


async def test_half_a_document_is_not_taken_for_a_whole_one(router, client):
    with pytest.raises(aiohttp.ClientError):
        async with client.get(f"{router.url}/broken") as answer:
            await answer.read()


async def test_an_answer_may_come_before_the_body_is_complete(router, client):
    unfinished = asyncio.Event()

    async def body():
        yield b"some"
        await unfinished.wait()

    async with asyncio.timeout(60):
        async with client.post(f"{router.url}/early", data=body()) as answer:
            assert answer.status == 409
            unfinished.set()


async def test_whoever_waits_for_continue_is_told_to(router, client):
    async with asyncio.timeout(60):
        async with client.post(
            f"{router.url}/upload", data=b"x" * 1000, expect100=True
        ) as answer:
            assert (await answer.json())["size"] == 1000


async def test_a_client_that_hangs_up_ends_a_request_still_unanswered(router, notebook):
    _, writer = await asyncio.open_connection("127.0.0.1", router.public)
    writer.write(head(target="/slow"))
    async with asyncio.timeout(60):
        while not notebook.hits:
            await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()

    await asyncio.wait_for(notebook.gone.wait(), 60)


async def test_a_slow_reader_holds_the_sender_back(router, notebook):
    reader, writer = await asyncio.open_connection("127.0.0.1", router.public)
    writer.write(head(target="/forever"))
    await reader.readexactly(1000)
    written = []
    async with asyncio.timeout(60):
        # What is in flight settles, because nobody takes it.
        while len(written) < 5 or len(set(written[-5:])) > 1:
            written.append(notebook.written)
            await asyncio.sleep(0.1)
    writer.close()
    await writer.wait_closed()
    await asyncio.wait_for(notebook.gone.wait(), 60)


async def test_a_websocket_that_nobody_reads_holds_the_sender_back(router):
    sent = 0
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{router.url}/channels", max_msg_size=0) as channel,
    ):
        # The notebook echoes; as we do not read, it must come to a stop.
        with contextlib.suppress(TimeoutError):
            while sent < 250_000_000:
                async with asyncio.timeout(2):
                    await channel.send_bytes(b"x" * 65536)
                sent += 65536
        received = 0
        async with asyncio.timeout(60):
            while received < sent:
                received += len((await channel.receive()).data)
    assert sent < 200_000_000


async def test_an_idle_connection_is_closed(behind):
    async with routing(
        "--default-target", behind, "--keep-alive-timeout", "100"
    ) as ports:
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.public)
        writer.write(b"GET /x HTT")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        await writer.wait_closed()


async def test_a_client_that_stalls_in_a_body_is_not_waited_for(behind, notebook):
    async with routing("--default-target", behind, "--timeout", "100") as ports:
        answer = await raw_exchange(
            ports.public,
            head("Content-Length: 10", method="POST", target="/upload") + b"half",
        )

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"Connection: close" in answer


async def test_a_silent_target_is_given_up(behind, client):
    async with (
        routing("--default-target", behind, "--proxy-timeout", "100") as ports,
        client.post(f"{ports.url}/slow") as answer,
    ):
        assert answer.status == 503


async def test_a_refused_connection_is_tried_once_more(client):
    """Nothing had been sent yet, so a server that is just restarting is not missed."""
    async with contextlib.AsyncExitStack() as stack:
        port = free_port()
        pauses = []

        async def restart_server(seconds: float) -> None:
            pauses.append(seconds)
            await stack.enter_async_context(serving(Notebook(), port=port))

        upstreams = Upstreams(UpstreamSettings())
        stack.push_async_callback(upstreams.close)
        forwarder = Forwarder(
            upstreams,
            ForwardRules(HeaderRules(TrustedProxies()), Limits()),
            Splices(),
            log=logging.getLogger(__name__),
            pause=restart_server,
        )
        target = parse_target(f"http://127.0.0.1:{port}")

        async def proxy(request):
            address = read_address(request, Limits())
            refusal = RefusalError(503, "none", "Nobody answers.")
            destination = Destination(target, address.raw, lambda: refusal)
            try:
                return await forwarder.forward(request, address, destination)
            except RefusalError as refused:
                return web.Response(status=refused.status)

        front = await stack.enter_async_context(serving(proxy))
        statuses = []
        for method in ("POST", "GET"):
            url = f"http://127.0.0.1:{front}/x"
            async with client.request(method, url) as answer:
                statuses.append(answer.status)

    assert statuses == [503, 200]
    assert len(pauses) == 1


async def test_open_exchanges_end_before_the_router_does(behind, notebook, client):
    ports = Ports()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(
            routing("--default-target", behind, ports=ports)
        )
        slow = asyncio.create_task(client.get(f"{ports.url}/slow")._coro)
        async with asyncio.timeout(60):
            while not notebook.hits:
                await asyncio.sleep(0.01)
        closing = asyncio.create_task(stack.pop_all().aclose())
        async with asyncio.timeout(60):
            while await is_open(ports.public):
                await asyncio.sleep(0.01)
        notebook.go_on.set()
        async with await slow as answer:
            assert await answer.text() == "done"
        await closing


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_websockets_do_not_hold_the_router_up(behind, client):
    async with asyncio.timeout(60):
        async with routing(
            "--default-target", behind, "--drain-timeout", "300"
        ) as ports:
            channel = await client.ws_connect(f"{ports.url}/channels")
        assert (await channel.receive()).type in {
            aiohttp.WSMsgType.CLOSED,
            aiohttp.WSMsgType.CLOSE,
            aiohttp.WSMsgType.ERROR,
        }
        await channel.close()


# Error pages


async def test_a_person_reads_a_page_and_a_program_json(client):
    async with routing() as router:
        url = f"{router.url}/<script>alert(1)</script>"
        async with client.get(url, headers={"Accept": "text/html"}) as page:
            text = await page.text()
        async with client.get(url) as answer:
            problem = await answer.json(content_type="application/problem+json")

    assert page.status == answer.status == problem["status"] == 404
    assert "There is nothing at this address." in text
    assert "<script>" not in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert problem["code"] == "no-route"


async def test_the_hub_is_asked_for_the_page(client):
    asked = []

    async def hub(request):
        asked.append(request.raw_path)
        return web.Response(text="<b>from the hub</b>", content_type="text/html")

    async with serving(hub) as port:
        target = f"http://127.0.0.1:{port}/hub/error"
        async with (
            routing("--error-target", target) as router,
            client.get(
                f"{router.url}/user/a?b=c&d", headers={"Accept": "text/html"}
            ) as answer,
        ):
            assert answer.status == 404
            assert await answer.text() == "<b>from the hub</b>"

    assert asked == ["/hub/error/404?url=%2Fuser%2Fa%3Fb%3Dc%26d"]


async def test_a_hub_that_is_down_cannot_take_the_page_away(client):
    dead = f"http://127.0.0.1:{free_port()}/hub/error"
    async with (
        routing("--error-target", dead) as router,
        client.get(router.url, headers={"Accept": "text/html"}) as answer,
    ):
        assert answer.status == 404
        assert "There is nothing at this address." in await answer.text()


async def test_pages_can_come_from_a_folder(tmp_path, client):
    (tmp_path / "404.html").write_text("<b>lost</b>")
    async with (
        routing("--error-path", str(tmp_path)) as router,
        client.get(router.url, headers={"Accept": "text/html"}) as answer,
    ):
        assert await answer.text() == "<b>lost</b>"


# Ways to put it up


async def test_hosts_have_routes_of_their_own(behind, notebook, client):
    async with routing("--host-routing") as router:
        for spec in ("/ann.site.example", "/bob.site.example/user/bob"):
            async with client.post(
                f"{router.api_url}{spec}", json={"target": behind}, headers=AUTHORIZED
            ) as answer:
                assert answer.status == 201
        statuses = []
        for host, path in [
            ("ann.site.example", "/x"),
            ("ANN.site.example:8000", "/x"),
            ("bob.site.example", "/user/bob/x"),
            ("bob.site.example", "/x"),
            ("eve.site.example", "/x"),
        ]:
            url = f"{router.url}{path}"
            async with client.get(url, headers={"Host": host}) as answer:
                statuses.append(answer.status)

    assert statuses == [200, 200, 200, 404, 404]


async def test_a_prefix_can_be_cut_off_and_a_path_put_before(behind, notebook, client):
    async with routing("--no-include-prefix") as router:
        async with client.post(
            f"{router.api_url}/a%20b/c",
            json={"target": f"{behind}/base/"},
            headers=AUTHORIZED,
        ):
            pass
        for path in ("/a%20b/c/d%2Fe?f", "/a%20b/c"):
            url = aiohttp.client.URL(f"{router.url}{path}", encoded=True)
            async with client.get(url) as answer:
                assert answer.status == 200

    assert notebook.paths == ["/base/d%2Fe?f", "/base/"]


async def test_redirects_can_be_rewritten(behind, client):
    target = behind.removeprefix("http://")
    async with routing(
        *("--default-target", behind, "--auto-rewrite", "--protocol-rewrite", "https")
    ) as router:
        locations = []
        for host in (target, "elsewhere.example"):
            async with client.get(
                f"{router.url}/redirect",
                headers={"X-Target": host},
                allow_redirects=False,
            ) as answer:
                locations.append(answer.headers["Location"])

    assert locations == [
        f"https://127.0.0.1:{router.public}/there",
        "http://elsewhere.example/there",
    ]


async def test_everything_can_be_a_unix_socket(tmp_path, notebook):
    public, api, upstream = (str(tmp_path / name) for name in ("p", "a", "u"))
    target = "http+unix://" + upstream.replace("/", "%2F")
    arguments = ["--socket", public, "--api-socket", api, "--log-level", "error"]
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(serving(notebook, path=upstream))
        await enter(router_process(*arguments))
        async with asyncio.timeout(60):
            while not ((tmp_path / "p").is_socket() and (tmp_path / "a").is_socket()):
                await asyncio.sleep(0.02)
        api_client = await enter(
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(api))
        )
        client = await enter(
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(public))
        )
        for _ in range(2):
            async with api_client.post(
                "http://a/api/routes/u", json={"target": target}, headers=AUTHORIZED
            ) as answer:
                assert answer.status == 201
            async with client.get("http://p/u/x") as answer:
                assert (await answer.json())["path"] == "/u/x"
            async with api_client.delete(
                "http://a/api/routes/u", headers=AUTHORIZED
            ) as answer:
                assert answer.status == 204


async def test_tls_on_both_sides_and_a_redirect_to_it(tmp_path, notebook, client):
    authority = Authority(tmp_path / "keys")
    site_certificate, site_key = authority.issue("localhost")
    own_certificate, own_key = authority.issue("proxy.example")
    redirect = free_port()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        behind = await enter(
            serving(notebook, tls=authority.server_context("localhost"))
        )
        router = await enter(
            routing(
                *("--ssl-key", str(site_key), "--ssl-cert", str(site_certificate)),
                *("--api-ssl-key", str(site_key)),
                *("--api-ssl-cert", str(site_certificate)),
                *("--api-ssl-ca", str(authority.file)),
                *("--api-ssl-request-cert", "--api-ssl-reject-unauthorized"),
                *("--client-ssl-key", str(own_key)),
                *("--client-ssl-cert", str(own_certificate)),
                *("--client-ssl-ca", str(authority.file)),
                *("--default-target", f"https://localhost:{behind}"),
                *("--redirect-port", str(redirect)),
            )
        )
        trust = ssl.create_default_context(cafile=str(authority.file))
        url = f"https://localhost:{router.public}/x"
        async with client.get(url, ssl=trust) as answer:
            headers = dict((await answer.json())["headers"])
        async with client.get(
            f"http://localhost:{redirect}/x?y", allow_redirects=False
        ) as moved:
            pass
        api_url = f"https://localhost:{router.api}/api/routes"
        with pytest.raises(aiohttp.ClientError):
            async with client.get(api_url, ssl=trust, headers=AUTHORIZED) as answer:
                await answer.read()
        trust.load_cert_chain(own_certificate, own_key)
        async with client.get(api_url, ssl=trust, headers=AUTHORIZED) as answer:
            assert answer.status == 200

    assert headers["X-Forwarded-Proto"] == "https"
    assert moved.headers["Location"] == f"https://localhost:{router.public}/x?y"


async def test_a_target_with_a_stranger_s_certificate_is_not_trusted(
    tmp_path, notebook, client
):
    tls = Authority(tmp_path / "keys").server_context("localhost")
    tls.verify_mode = ssl.CERT_NONE
    async with serving(notebook, tls=tls) as port:
        target = ("--default-target", f"https://localhost:{port}")
        async with routing(*target) as router, client.get(router.url) as answer:
            assert answer.status == 503
        async with (
            routing(*target, "--insecure") as router,
            client.get(router.url) as answer,
        ):
            assert answer.status == 200


async def test_requests_and_websockets_are_counted(behind, client):
    metrics = free_port()
    async with routing(
        *("--default-target", behind),
        *("--metrics-ip", "127.0.0.1", "--metrics-port", str(metrics)),
    ) as router:
        async with client.get(f"{router.url}/x"):
            pass
        async with (
            client.ws_connect(f"{router.url}/channels"),
            client.get(f"http://127.0.0.1:{metrics}/metrics") as answer,
        ):
            text = await answer.text()

    assert 'backendai_router_requests_total{status="200"} 1' in text
    assert "backendai_router_websockets 1" in text


# The process


async def test_the_process_leaves_its_pid_and_goes_when_told(tmp_path):
    ports = Ports()
    pid_file = tmp_path / "pid"
    lock_file = tmp_path / "run" / "router.lock"
    arguments = [
        *ports.arguments(),
        *("--pid-file", str(pid_file), "--lock-file", str(lock_file)),
    ]
    async with router_process(*arguments) as process:
        await until_open(ports.public, ports.api)
        assert int(pid_file.read_text()) == process.pid
        async with router_process(*arguments) as second:
            _, said = await asyncio.wait_for(second.communicate(), 60)
            assert second.returncode == 1
            assert f"is held by process {process.pid}" in said.decode()
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0

    assert not pid_file.exists()


async def test_a_port_that_is_taken_is_said_in_one_line(tmp_path):
    async with serving(Notebook()) as taken:
        ports = Ports(public=taken)
        async with router_process(*ports.arguments()) as process:
            _, said = await asyncio.wait_for(process.communicate(), 60)

    assert process.returncode == 1
    assert "Traceback" not in said.decode()
    assert str(taken) in said.decode()


async def test_an_open_api_without_a_token_is_refused():
    ports = Ports()
    arguments = [*ports.arguments(), "--api-ip", "0.0.0.0"]
    async with router_process(*arguments, environ={"CONFIGPROXY_AUTH_TOKEN": ""}) as it:
        _, said = await asyncio.wait_for(it.communicate(), 60)

    assert it.returncode == 1
    assert "CONFIGPROXY_AUTH_TOKEN" in said.decode()


async def test_an_api_nobody_has_a_token_for_is_closed(client):
    ports = Ports()
    none = {"CONFIGPROXY_AUTH_TOKEN": ""}
    async with router_process(*ports.arguments(), environ=none):
        await until_open(ports.public, ports.api)
        for token in ("", "token ", f"token {TOKEN}"):
            async with client.get(
                ports.api_url, headers={"Authorization": token}
            ) as answer:
                assert answer.status == 403
