"""A real JupyterHub in the test's own event loop, and the world around it."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, chdir, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import web
from jupyterhub.proxy import Proxy
from jupyterhub.user import User
from traitlets import Bool
from traitlets.config import Config

import backendai_spawner
from backendai_spawner.clients import close_shared_clients
from tests.harness import API, Stack, free_port, running_stack, until
from tests.mock_hubs import running_hub


class MemoryProxy(Proxy):
    """A proxy that only remembers its routes: no test here goes through it."""

    should_start = Bool(default_value=False)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.routes: dict[str, dict[str, Any]] = {}

    async def add_route(self, routespec: str, target: str, data: Any) -> None:
        self.routes[routespec] = {
            "routespec": routespec,
            "target": target,
            "data": data,
        }

    async def delete_route(self, routespec: str) -> None:
        self.routes.pop(routespec, None)

    async def get_all_routes(self) -> dict[str, Any]:
        return dict(self.routes)


class Line:
    """A stretch of network that can be cut, or answer 503 by itself."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.state = "whole"
        self.refused = 0

    async def __aenter__(self) -> Line:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self, state: str = "cut") -> None:
        self.state = state
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self.state = "whole"

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open.add(writer)
        try:
            if self.state == "whole":
                await self._join(reader, writer)
            else:
                self.refused += 1
                if self.state == "503":
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(
                        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                        b"Connection: close\r\n\r\n"
                    )
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
        self._open.add(outer)
        try:
            await asyncio.wait(
                [
                    asyncio.create_task(_pump(reader, outer)),
                    asyncio.create_task(_pump(inner, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._open.discard(outer)
            outer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def serving_gateway(port: int) -> AsyncIterator[list[str]]:
    """Answer as sessions do, where the gateway would be; collect what is asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"version": "2"})

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield asked
    finally:
        await runner.cleanup()


@dataclass
class Hub:
    """A JupyterHub that spawns with us, and what it spawns from."""

    app: Any
    stack: Stack
    http: aiohttp.ClientSession
    line: Line | None = None
    """What lies between the two, where tests cut it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.app.hub.port}{self.app.hub.base_url}"

    def user(self, name: str) -> User:
        from jupyterhub.tests.utils import add_user  # noqa: PLC0415 - it is slow

        return self.app.users.get(name) or add_user(self.app.db, self.app, name=name)

    def token(self, name: str) -> str:
        return str(self.user(name).new_api_token())

    async def api(
        self, method: str, path: str, *, user: str, **options: Any
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"token {self.token(user)}"}
        async with self.http.request(
            method, f"{self.url}api/{path}", headers=headers, **options
        ) as response:
            text = await response.text()
            kind = response.headers.get("Content-Type", "")
            return response.status, json.loads(
                text
            ) if text and "json" in kind else text

    async def start(
        self, user: str, server: str, options: dict[str, Any] | None = None
    ) -> tuple[int, Any]:
        body = {} if options is None else {"json": {"user_options": options}}
        path = f"users/{quote(user)}/servers/{server}"
        return await self.api("POST", path, user=user, **body)

    async def stop(self, user: str, server: str) -> tuple[int, Any]:
        path = f"users/{quote(user)}/servers/{server}"
        return await self.api("DELETE", path, user=user)

    def spawner(self, user: str, server: str) -> Any:
        return self.user(user).spawners[server]

    async def until_ready(self, user: str, server: str) -> Any:
        await until(
            lambda: self.spawner(user, server).ready, f"{user}/{server} is ready"
        )
        return self.spawner(user, server)

    async def progress(
        self, user: str, server: str, *, into: list[dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        """Read the progress of a spawn to its end, as a tab does."""
        steps = [] if into is None else into
        path = f"{self.url}api/users/{quote(user)}/servers/{server}/progress"
        headers = {"Authorization": f"token {self.token(user)}"}
        async with self.http.get(path, headers=headers) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                if line.startswith(b"data: "):
                    steps.append(json.loads(line.removeprefix(b"data: ")))
        return steps

    async def restart(self) -> None:
        """Do what a killed and restarted Hub does with its servers."""
        await self.forget()
        await self.app.init_spawners()

    async def forget(self) -> None:
        """Lose everything that is only in memory."""
        for user in list(self.app.users.values()):
            for spawner in list(user.spawners.values()):
                spawner.stop_polling()
                if spawner._spawn_future is not None:
                    spawner._spawn_future.cancel()
        await until(lambda: not self._pending(), "starts are forgotten")
        self.app.users.clear()
        await close_shared_clients()

    async def clear(self) -> None:
        """Let nobody have been here, for tests that share a JupyterHub."""
        from jupyterhub import orm  # noqa: PLC0415 - it is slow

        if self.line is not None:
            self.line.mend()
        await self.forget()
        people = self.app.db.query(orm.User).all()
        names = [user.name for user in people]
        for user in people:
            self.app.db.delete(user)
        self.app.db.commit()
        self.app.proxy.routes.clear()
        self.app.tornado_settings["failure_count"] = 0
        await self._end_sessions(names)

    async def _end_sessions(self, names: Iterable[str]) -> None:
        for name in names:
            async with self.stack.client(name) as api:
                await end_sessions(api)

    def _pending(self) -> bool:
        return any(
            spawner._spawn_pending
            for user in self.app.users.values()
            for spawner in user.spawners.values()
        )


async def end_sessions(api: API, **query: str) -> None:
    """End by force what is alive of what *api* may see."""
    query = {"status": "live", "limit": "200", **query}
    for session in (await api.get("api/sessions", params=query))["items"]:
        path = f"api/sessions/{session['id']}/terminate"
        status, body = await api.send("POST", path, json={"force": True})
        assert status == 202, body


@asynccontextmanager
async def standing_hub(
    *flags: str, agent: bool = True, **more: Any
) -> AsyncIterator[Hub]:
    """Run a JupyterHub, a service and, with *agent*, a node that several tests share.

    Each begins with :meth:`Hub.clear`; *flags* are the service's, and *more* is for
    :func:`configure`.
    """
    async with AsyncExitStack() as world:
        folder = world.enter_context(tempfile.TemporaryDirectory(prefix="backendai-"))
        # JupyterHub keeps its cookies' secret where it is started.
        world.enter_context(chdir(folder))
        stack = await world.enter_async_context(
            running_stack(Path(folder) / "data", agent=agent, flags=flags)
        )
        await world.enter_async_context(serving_gateway(stack.gateway_port))
        line = await world.enter_async_context(Line(stack.port))
        http = await world.enter_async_context(aiohttp.ClientSession())
        config = configure(stack, service_port=line.port, **more)
        app = await world.enter_async_context(running_hub(config))
        hub = Hub(app, stack, http, line)
        world.push_async_callback(hub.forget)
        yield hub


def wait_for_spawns(hub: Hub, seconds: float) -> None:
    """Choose how long the Hub waits for a spawn before it answers 202."""
    hub.app.tornado_settings["slow_spawn_timeout"] = seconds


@asynccontextmanager
async def browser(hub: Hub, name: str | None = None) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.CookieJar(unsafe=True),
        headers={"Sec-Fetch-Mode": "navigate", "Accept": "text/html"},
    ) as session:
        found = Browser(hub, session)
        if name is not None:
            await found.become(name)
        yield found


class Browser:
    """Follows links and sends forms."""

    def __init__(self, hub: Hub, session: aiohttp.ClientSession) -> None:
        self._hub = hub
        self._http = session

    async def become(self, name: str) -> None:
        """Get the cookie of somebody who has logged in."""
        user = self._hub.user(name)
        value = self._hub.app.tornado_settings["cookie_secret"]
        from tornado.web import create_signed_value  # noqa: PLC0415

        signed = create_signed_value(value, "jupyterhub-hub-login", user.cookie_id)
        self._http.cookie_jar.update_cookies(
            {"jupyterhub-hub-login": signed.decode()},
            response_url=aiohttp.client.URL(self._hub.url),
        )

    async def get(self, path: str) -> tuple[int, str]:
        async with self._http.get(self._hub.url + path) as response:
            return response.status, await response.text()

    async def send(self, path: str, **fields: str) -> tuple[int, str]:
        _, page = await self.get(path)
        return await self.answer(page, path, **fields)

    async def answer(self, page: str, path: str, **fields: str) -> tuple[int, str]:
        """Send the form of a page that is open already."""
        found = re.search(r'xsrf_token: "([^"]*)"', page)
        assert found is not None, page
        url = f"{self._hub.url}{path}"
        async with self._http.post(
            url, data={"_xsrf": found[1], **fields}, params={"_xsrf": found[1]}
        ) as response:
            return response.status, await response.text()


def configure(
    stack: Stack, *, service_port: int | None = None, refresh_age: int = 0
) -> Config:
    """Write the configuration of a site that installs us, for tests' speed.

    Most tests know people to JupyterHub who have no account: those would be logged
    out where *refresh_age* is not 0.
    """
    c = Config()
    c.JupyterHub.hub_port = free_port(stack._taken)
    c.JupyterHub.bind_url = "http://127.0.0.1:8000/"
    c.JupyterHub.proxy_class = MemoryProxy
    c.JupyterHub.authenticator_class = "backendai"
    c.JupyterHub.tornado_settings = {"slow_stop_timeout": 60}
    c.Authenticator.admin_users = {"root"}
    c.Authenticator.auth_refresh_age = refresh_age
    backendai_spawner.install(c, stack.connection_file)
    if service_port is not None:
        url = stack.url.replace(f":{stack.port}/", f":{service_port}/")
        c.BackendAISpawner.service_url = url
        c.BackendAIAuthenticator.service_url = url
    return c
