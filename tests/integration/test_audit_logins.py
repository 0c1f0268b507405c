"""Logins at the console, by JupyterHub's OAuth, and what a cookie alone is worth.

The handlers are the real ones, and so is JupyterHub's own OAuth client in them; the
Hub they talk to is two routes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from backendai_hub.core.audit import Entry
from backendai_hub.db import chain
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.base import Credentials, Service
from backendai_hub.handlers.console import ConsoleHandler, OAuthCallbackHandler
from backendai_hub.handlers.login import HubOAuth, build_login
from backendai_hub.handlers.routes import API, patterns
from backendai_hub.operations.audit import check_chain
from backendai_hub.operations.platform import Platform

PREFIX = "/x/"
SCOPES = ["custom:backendai:user"]


@dataclass
class Hub:
    """Who has logged in at JupyterHub, by the token that the code stands for."""

    tokens: dict[str, str] = field(default_factory=dict)

    def make_app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/hub/api/oauth2/token", self._token)
        app.router.add_get("/hub/api/user", self._user)
        return app

    async def _token(self, request: web.Request) -> web.Response:
        sent = await request.post()
        return web.json_response({"access_token": f"token-of-{sent['code']}"})

    async def _user(self, request: web.Request) -> web.Response:
        token = request.headers["Authorization"].partition(" ")[2]
        name = self.tokens.get(token)
        if name is None:
            raise web.HTTPForbidden
        return web.json_response(
            {"kind": "user", "name": name, "scopes": SCOPES, "groups": []}
        )


@dataclass
class Site:
    hub: Hub
    url: str
    browser: aiohttp.ClientSession
    platform: Platform
    login: HubOAuth

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        async with self.browser.request(
            method, f"{self.url}{path}", allow_redirects=False, **options
        ) as answer:
            return answer.status, answer.headers.get("Location", "")

    async def log_in(self, code: str) -> tuple[int, str]:
        """Go to the console, to the Hub, and back."""
        status, location = await self.ask("GET", "sessions")
        assert status == 302
        state = parse_qs(urlsplit(location).query)["state"][0]
        return await self.ask(
            "GET", "oauth_callback", params={"code": code, "state": state}
        )

    async def rows(self) -> list[Entry]:
        async with self.platform.database.read() as connection:
            found = await chain.read_rows(connection, 0, 1000)
        return [entry for entry, _ in found]


@pytest.fixture
async def site(platform: Platform) -> AsyncIterator[Site]:
    hub = Hub()
    async with TestServer(hub.make_app()) as server:
        login = build_login(
            api_url=str(server.make_url("/hub/api")),
            token="service",
            prefix=PREFIX,
            hub_base="/",
            cache_seconds=30,
        )
        service = Service(
            platform=platform,
            signals=Signals(),
            credentials=Credentials(spawner="spawners", router="routers"),
            prefix=PREFIX,
            hub_auth=login,
        )
        routes = [
            *patterns(API, PREFIX),
            (f"{PREFIX}oauth_callback", OAuthCallbackHandler),
            (f"{PREFIX}(.*)", ConsoleHandler),
        ]
        people = HTTPServer(
            Application(
                routes,
                service=service,
                cookie_secret="s" * 32,
                log_function=lambda handler: None,
            ),
            xheaders=True,
        )
        socket, port = bind_unused_port()
        people.add_socket(socket)
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            url = f"http://127.0.0.1:{port}{PREFIX}"
            yield Site(hub, url, browser, platform, login)
        people.stop()
        await people.close_all_connections()


async def test_who_logs_in_at_the_console_leaves_a_row(site: Site):
    site.hub.tokens["token-of-1"] = "ada"
    before = len(await site.rows())
    status, target = await site.log_in("1")
    assert (status, target) == (302, f"{PREFIX}sessions")
    [row] = [e for e in (await site.rows())[before:] if e.action == "login"]
    assert (row.actor, row.object_name, row.credential) == ("ada", "ada", "console")
    assert (row.result, row.address) == ("success", "127.0.0.1")
    assert row.actor_id == row.owner_id == row.object_id
    assert row.domain_id is not None
    [made] = [e for e in (await site.rows())[before:] if e.action == "user:create"]
    assert (made.actor, made.object_name, made.object_id) == (
        "ada",
        "ada",
        row.actor_id,
    )
    assert "token-of-1" not in repr(await site.rows())
    # The login holds: looking around leaves nothing more.
    count = len(await site.rows())
    assert (await site.ask("GET", "api/me"))[0] == 200
    assert len(await site.rows()) == count
    assert (await check_chain(site.platform)).ok


async def test_a_login_that_the_hub_does_not_confirm_leaves_none(site: Site):
    status, _ = await site.log_in("nobody")
    assert status >= 400
    site.hub.tokens["token-of-1"] = "ada"
    await site.ask("GET", "sessions")
    status, _ = await site.ask(
        "GET", "oauth_callback", params={"code": "1", "state": "made-up"}
    )
    assert status == 403
    assert [e for e in await site.rows() if e.action == "login"] == []


async def test_a_page_of_another_site_that_uses_a_login_is_written_down(site: Site):
    site.hub.tokens["token-of-1"] = "ada"
    await site.log_in("1")
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):
        status, _ = await site.ask(
            "POST", "api/domains", json={"name": "x"}, headers=headers
        )
        assert status == 403
        row = (await site.rows())[-1]
        assert (row.actor, row.credential) == ("ada", "cookie")
        assert (row.result, row.code) == ("refused", "forbidden")


async def test_an_old_login_is_no_attempt_until_it_wants_something(site: Site):
    async def grow_old(code: str) -> int:
        site.hub.tokens[f"token-of-{code}"] = "ada"
        assert (await site.log_in(code))[0] == 302
        site.hub.tokens.clear()
        site.login.cache.clear()
        return len(await site.rows())

    count = await grow_old("1")
    assert (await site.ask("GET", "api/me"))[0] == 401
    assert len(await site.rows()) == count
    count = await grow_old("2")
    assert (await site.ask("POST", "api/domains", json={"name": "x"}))[0] == 401
    [row] = (await site.rows())[count:]
    assert (row.actor, row.credential, row.code) == ("", "cookie", "unauthenticated")
