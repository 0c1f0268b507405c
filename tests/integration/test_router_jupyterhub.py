"""A real JupyterHub drives the router with its stock proxy class."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import aiohttp
import pytest
from router_harness import Ports, environment, free_port, router_process, until_open
from yarl import URL

API_TOKEN = "test-service-token"
ADMIN = {"Authorization": f"token {API_TOKEN}"}

CONFIG = """
import sys

c.JupyterHub.bind_url = "http://127.0.0.1:{ports.public}/"
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "secret"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/{{username}}"
c.Spawner.environment = {{"PYTHONWARNINGS": "ignore"}}
c.JupyterHub.cleanup_servers = {cleanup}
c.JupyterHub.cleanup_proxy = {cleanup}
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{
        "name": "test",
        "services": ["test"],
        "scopes": ["admin:users", "admin:servers", "access:servers", "proxy"],
    }}
]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports.api}"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.ConfigurableHTTPProxy.check_running_interval = 1
{proxy}
"""

STARTED_BY_THE_HUB = """
c.ConfigurableHTTPProxy.command = [sys.executable, "-m", "backendai_hub.router"]
"""
EXTERNAL = """
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.auth_token = "route-api-token"
"""


class Hub:
    """A JupyterHub in a folder of its own."""

    def __init__(self, folder: Path, proxy: str, *, cleanup: bool = True) -> None:
        self.folder = folder
        self.ports = Ports()
        self.hub_port = free_port()
        self.config = folder / "jupyterhub_config.py"
        self.config.write_text(
            CONFIG.format(
                ports=self.ports,
                hub=self.hub_port,
                folder=folder,
                token=API_TOKEN,
                proxy=proxy,
                cleanup=cleanup,
            )
        )

    @contextlib.asynccontextmanager
    async def running(self):
        log = (self.folder / "hub.log").open("ab")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jupyterhub", "-f", str(self.config)),
            cwd=self.folder,
            env=environment(),
            stdout=log,
            stderr=log,
        )
        log.close()
        try:
            async with asyncio.timeout(90):
                await until_open(self.ports.public, self.hub_port)
                await self.until_answers()
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                try:
                    await asyncio.wait_for(process.wait(), 60)
                except TimeoutError:
                    process.kill()
                    await process.wait()

    async def until_answers(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"{self.ports.url}/hub/api/") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.1)

    def url(self, path: str) -> str:
        return f"{self.ports.url}{path}"


async def log_in(client: aiohttp.ClientSession, hub: Hub) -> None:
    async with client.get(hub.url("/hub/login")) as page:
        assert page.status == 200
    cookies = client.cookie_jar.filter_cookies(URL(hub.url("/hub/")))
    form = {
        "username": "ann",
        "password": "secret",
        "_xsrf": cookies["_xsrf"].value,
    }
    async with client.post(
        hub.url("/hub/login"), data=form, allow_redirects=False
    ) as answer:
        assert answer.status == 302, await answer.text()


async def start_server(client: aiohttp.ClientSession, hub: Hub) -> None:
    url = hub.url("/hub/api/users/ann/server")
    async with client.post(url, headers=ADMIN) as answer:
        assert answer.status in {201, 202}, await answer.text()
    if answer.status == 202:
        # The progress is an event stream: it ends when the server is ready.
        progress = hub.url("/hub/api/users/ann/server/progress")
        async with asyncio.timeout(90), client.get(progress, headers=ADMIN) as events:
            text = await events.text()
        assert '"ready": true' in text, text


@pytest.fixture
async def client():
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def test_the_hub_starts_it_logs_people_in_and_reaches_their_servers(
    tmp_path, client
):
    hub = Hub(tmp_path, STARTED_BY_THE_HUB)
    async with hub.running():
        await log_in(client, hub)
        await start_server(client, hub)
        async with client.get(hub.url("/user/ann/api/status"), headers=ADMIN) as answer:
            assert answer.status == 200, await answer.text()
        async with client.get(hub.url("/user/ann/lab")) as page:
            assert page.status == 200
            assert "jupyter-config-data" in await page.text()
        async with client.post(
            hub.url("/user/ann/api/kernels"), headers=ADMIN, json={}
        ) as made:
            assert made.status == 201, await made.text()
            kernel = (await made.json())["id"]
        async with client.ws_connect(
            hub.url(f"/user/ann/api/kernels/{kernel}/channels"),
            headers=ADMIN,
            protocols=("v1.kernel.websocket.jupyter.org",),
        ) as channel:
            assert channel.protocol == "v1.kernel.websocket.jupyter.org"
        async with client.get(hub.url("/hub/api/proxy"), headers=ADMIN) as answer:
            assert set(await answer.json()) == {"/", "/user/ann/"}
        async with client.delete(
            hub.url("/hub/api/users/ann/server"), headers=ADMIN
        ) as answer:
            assert answer.status in {202, 204}
    assert not (tmp_path / "proxy.pid").exists()


async def test_the_hub_starts_it_again_when_it_dies(tmp_path, client):
    hub = Hub(tmp_path, STARTED_BY_THE_HUB)
    async with hub.running():
        pid_file = tmp_path / "proxy.pid"
        first = int(pid_file.read_text())
        kill(first)
        async with asyncio.timeout(60):
            while not pid_file.exists() or pid_file.read_text() in {"", str(first)}:
                await asyncio.sleep(0.1)
            await hub.until_answers()


async def test_an_external_router_keeps_servers_reachable_without_the_hub(
    tmp_path, client
):
    hub = Hub(tmp_path, EXTERNAL, cleanup=False)
    arguments = [
        *hub.ports.arguments(),
        *("--error-target", f"http://127.0.0.1:{hub.hub_port}/hub/error"),
        *("--state-file", str(tmp_path / "router.json")),
    ]
    url = hub.url("/user/ann/api")
    async with router_process(*arguments) as router:
        async with hub.running():
            await log_in(client, hub)
            await start_server(client, hub)
            async with client.get(hub.url("/hub/home")) as page:
                assert page.status == 200
        try:
            async with client.get(url) as answer:
                assert "version" in await answer.json()
            async with client.get(
                hub.url("/hub/home"), headers={"Accept": "text/html"}
            ) as page:
                assert page.status == 503
                assert "does not answer" in await page.text()
            router.kill()
            await router.wait()
            async with router_process(*arguments):
                await until_open(hub.ports.public, hub.ports.api)
                async with client.get(url) as answer:
                    assert "version" in await answer.json()
                # The Hub comes back, finds its routes, and ends the server.
                async with hub.running():
                    async with client.delete(
                        hub.url("/hub/api/users/ann/server"), headers=ADMIN
                    ) as answer:
                        assert answer.status in {202, 204}
                    async with asyncio.timeout(60):
                        while await routes_of(client, hub) != {"/"}:
                            await asyncio.sleep(0.1)
        finally:
            end_server(tmp_path)


async def routes_of(client, hub: Hub) -> set[str]:
    async with client.get(hub.url("/hub/api/proxy"), headers=ADMIN) as answer:
        return set(await answer.json())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def end_server(folder: Path) -> None:
    """End the single-user server if a story broke off before it did."""
    with contextlib.closing(sqlite3.connect(folder / "hub.sqlite")) as database:
        rows = database.execute("select state from spawners").fetchall()
    for (state,) in rows:
        pid = json.loads(state or "{}").get("pid", 0)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                kill(pid)
