"""Sessions on nodes, reached over mutual TLS by routes the hub service publishes."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import aiohttp
import pytest
from router_harness import (
    AUTHORIZED,
    SERVICE_TOKEN,
    Authority,
    Notebook,
    Ports,
    RoutesService,
    free_port,
    router_process,
    routing,
    serving,
    until_open,
)

from backendai_hub.api.agents import Route

AGENT = "5b0e9ac1-52c8-4be5-9d0f-1f2f4d1c0c11"
OTHER = "a7f1d2be-9f0e-4a83-8c41-60a6b1a0f3d2"
HTML = {"Accept": "text/html"}


def dns(agent: str) -> str:
    return f"{agent}.agent.backendai.internal"


class Platform:
    """A router's surroundings: an authority, the hub service, and a node's agent."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "keys")
        certificate, key = self.authority.issue("router.backendai.internal")
        token_file = folder / "token"
        token_file.write_text(f"{SERVICE_TOKEN}\n")
        self.ports = Ports()
        self.service = RoutesService()
        self.service_port = free_port()
        self.notebook = Notebook()
        self.agent_port = free_port()
        self.arguments = [
            *("--gateway", f"127.0.0.1:{self.ports.gateway}"),
            *("--routes-url", f"http://127.0.0.1:{self.service_port}/api/routes"),
            *("--routes-token-file", str(token_file)),
            *("--tls-ca", str(self.authority.file)),
            *("--tls-cert", str(certificate), "--tls-key", str(key)),
        ]

    def route(self, prefix: str, **changes: str) -> Route:
        given = {
            "agent_id": AGENT,
            "agent_url": f"https://127.0.0.1:{self.agent_port}",
            "container": "c1",
            **changes,
        }
        return Route(prefix=prefix, **given)

    def agent(self, identity: str = dns(AGENT), authority: Authority | None = None):
        tls = (authority or self.authority).server_context(identity)
        return serving(self.notebook, tls=tls, port=self.agent_port)

    def hub_service(self):
        return serving(self.service, port=self.service_port)

    def router(self, *arguments: str):
        return routing(*self.arguments, *arguments, ports=self.ports)

    def url(self, path: str) -> str:
        return f"{self.ports.gateway_url}{path}"


@pytest.fixture
async def platform(tmp_path):
    return Platform(tmp_path)


@pytest.fixture
async def client():
    async with aiohttp.ClientSession() as session:
        yield session


async def status_and_code(client, url: str) -> tuple[int, str]:
    async with client.get(url) as answer:
        document = await answer.json(content_type=None)
        return answer.status, document.get("code", "")


async def test_a_public_route_to_the_gateway_takes_no_detour(platform, client):
    platform.service.publish(platform.route("/user/ann/"))
    async with platform.agent(), platform.hub_service(), platform.router():
        async with client.post(
            f"{platform.ports.api_url}/user/ann",
            json={"target": platform.ports.gateway_url},
            headers=AUTHORIZED,
        ):
            pass
        async with client.get(f"{platform.ports.url}/user/ann/x") as answer:
            direct = dict((await answer.json())["headers"])
        async with client.get(
            platform.url("/user/ann/x"), headers={"X-Forwarded-For": "192.0.2.1"}
        ) as answer:
            by_gateway = dict((await answer.json())["headers"])

    assert direct["X-Forwarded-For"] == "127.0.0.1"
    assert by_gateway["X-Forwarded-For"] == "192.0.2.1, 127.0.0.1"


async def test_the_longest_prefix_decides_which_session_is_asked(platform, client):
    platform.service.publish(
        platform.route("/user/a%40b/", container="whole"),
        platform.route("/user/a%40b/lab/", container="part"),
    )
    async with platform.agent(), platform.hub_service(), platform.router():
        for path in ("/user/a@b/x", "/user/a%40b/lab/x", "/user/a%40b/labx"):
            url = aiohttp.client.URL(platform.url(path), encoded=True)
            async with client.get(url) as answer:
                assert answer.status == 200

    assert platform.notebook.containers == ["whole", "part", "whole"]


@pytest.mark.parametrize("path", ["/user/ann/../../../../x", "/user/ann/%2e%2e/x"])
async def test_nobody_climbs_out_of_a_container(platform, client, path):
    platform.service.publish(platform.route("/user/ann/"))
    async with platform.agent(), platform.hub_service(), platform.router():
        url = aiohttp.client.URL.build(
            scheme="http",
            host="127.0.0.1",
            port=platform.ports.gateway,
            path=path,
            encoded=True,
        )
        assert await status_and_code(client, url) == (400, "dot-segments")

    assert platform.notebook.hits == 0


async def test_an_agent_is_known_by_its_certificate_not_its_address(platform, client):
    platform.service.publish(
        platform.route("/user/ann/"), platform.route("/user/bob/", agent_id=OTHER)
    )
    async with platform.agent(), platform.hub_service(), platform.router():
        ann = await status_and_code(client, platform.url("/user/ann/x"))
        # The connection just used is to the same address, but to another agent.
        bob = await status_and_code(client, platform.url("/user/bob/x"))

    assert ann == (200, "")
    assert bob == (503, "node-unreachable")
    assert platform.notebook.hits == 1


async def test_an_agent_of_another_authority_is_a_stranger(platform, client, tmp_path):
    platform.service.publish(platform.route("/user/ann/"))
    stranger = Authority(tmp_path / "stranger")
    async with (
        platform.agent(authority=stranger),
        platform.hub_service(),
        platform.router(),
    ):
        seen = await status_and_code(client, platform.url("/user/ann/x"))

    assert seen == (503, "node-unreachable")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
async def test_an_agent_without_tls_is_not_spoken_to(platform, client, url):
    platform.service.publish(platform.route("/user/ann/", agent_url=url))
    async with platform.hub_service(), platform.router():
        seen = await status_and_code(client, platform.url("/user/ann/x"))

    assert seen == (503, "node-unreachable")


async def test_a_node_that_is_down_is_told_of_in_words(platform, client):
    platform.service.publish(platform.route("/user/ann/"))
    async with (
        platform.hub_service(),
        platform.router(),
        client.get(platform.url("/user/ann/x"), headers=HTML) as answer,
    ):
        page = await answer.text()

    assert answer.status == 503
    assert answer.headers["Retry-After"] == "5"
    assert "The node on which this session runs does not answer." in page
    # Who waits in front of it comes in as soon as that is possible.
    assert answer.headers["Refresh"] == "5"
    assert '<a href="">Try again</a>' in page


async def test_what_was_sent_is_not_sent_again_by_itself(platform, client):
    platform.service.publish(platform.route("/user/ann/"))
    async with (
        platform.hub_service(),
        platform.router(),
        client.post(platform.url("/user/ann/x"), headers=HTML) as answer,
    ):
        assert answer.status == 503
        assert "Refresh" not in answer.headers
        assert "Try again" not in await answer.text()


async def test_sessions_come_and_go_while_the_router_runs(platform, client):
    url = platform.url("/user/ann/x")
    async with platform.agent(), platform.hub_service(), platform.router():
        early = asyncio.create_task(status_and_code(client, url))
        platform.service.publish(platform.route("/user/ann/"))
        assert await early == (200, "")
        platform.service.publish()
        async with asyncio.timeout(60):
            while (await status_and_code(client, url))[0] == 200:
                await asyncio.sleep(0.01)
        async with client.get(url, headers=HTML) as answer:
            page = await answer.text()

    assert answer.status == 404
    assert "No session is running at this address." in page
    assert "Refresh" not in answer.headers


async def test_sessions_stay_reachable_while_the_service_is_down(platform, client):
    url = platform.url("/user/ann/x")
    async with platform.agent(), platform.router():
        async with platform.hub_service():
            platform.service.publish(platform.route("/user/ann/"))
            assert await status_and_code(client, url) == (200, "")
        assert await status_and_code(client, url) == (200, "")
        platform.service.publish(platform.route("/user/bob/"))
        async with platform.hub_service(), asyncio.timeout(60):
            while (await status_and_code(client, platform.url("/user/bob/")))[0] != 200:
                await asyncio.sleep(0.05)


async def test_a_router_that_never_heard_of_any_route_says_so(platform, client):
    async with platform.router():
        seen = await status_and_code(client, platform.url("/user/ann/x"))

    assert seen == (503, "routes-unknown")


async def test_a_wrong_token_is_told_to_the_operator(platform, client, capfd, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    async with (
        platform.hub_service(),
        platform.router("--routes-token-file", str(wrong)),
    ):
        seen = await status_and_code(client, platform.url("/user/ann/x"))

    assert seen == (503, "routes-unknown")
    assert "answered 403" in capfd.readouterr().err


async def test_sessions_outlive_a_killed_router_while_the_platform_is_down(
    platform, client, tmp_path
):
    platform.service.publish(platform.route("/user/ann/"))
    ports = platform.ports
    command = [
        *ports.arguments(),
        *platform.arguments,
        *("--state-file", str(tmp_path / "run" / "router.json")),
        *("--lock-file", str(tmp_path / "run" / "router.lock")),
    ]
    url = f"{ports.url}/user/ann/x"
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(platform.agent())
        async with platform.hub_service(), router_process(*command) as first:
            await until_open(ports.public, ports.api, ports.gateway)
            async with client.post(
                f"{ports.api_url}/user/ann",
                json={"target": ports.gateway_url, "jupyterhub": True},
                headers=AUTHORIZED,
            ) as answer:
                assert answer.status == 201
            assert await status_and_code(client, url) == (200, "")
            first.kill()
            await first.wait()
        # Now neither the Hub nor the hub service is there.
        async with router_process(*command):
            await until_open(ports.public, ports.api, ports.gateway)
            assert await status_and_code(client, url) == (200, "")
            async with client.get(ports.api_url, headers=AUTHORIZED) as answer:
                table = await answer.json()

    assert table["/user/ann"]["jupyterhub"] is True
