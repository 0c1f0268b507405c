"""A real single-user server, booted as agents do, and its way to the platform."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

PREFIX = "/user/alice/"
ORIGIN = "http://localhost"
BASE = f"{ORIGIN}{PREFIX}"
API = f"{BASE}backendai/api/"
SERVER_TOKEN = "token-of-the-server"
USERS = {
    "token-of-alice": ("alice", ["access:servers!server=alice/"]),
    "token-of-bob": ("bob", ["access:servers!server=alice/"]),
    "token-of-eve": ("eve", ["self"]),
    SERVER_TOKEN: ("alice", ["access:servers!server=alice/"]),
}


class Platform:
    """The Hub's and the service's side of a session's socket."""

    def __init__(self):
        self.heard = []
        self.received = 0
        self.largest_part = 0
        self.more = asyncio.Event()

    def make_app(self):
        app = web.Application()
        app.router.add_get("/hub/api/user", self._user)
        app.router.add_route("*", "/services/backendai/api/{path:.*}", self._api)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    async def _user(self, request):
        token = request.headers["Authorization"].removeprefix("token ")
        if token not in USERS:
            raise web.HTTPForbidden
        name, scopes = USERS[token]
        return web.json_response(
            {"kind": "user", "name": name, "scopes": scopes, "groups": []}
        )

    async def _other(self, request):
        self.heard.append(request.path)
        return web.json_response({})

    async def _api(self, request):
        path = request.match_info["path"]
        if path == "events":
            return await self._events(request)
        if path == "elsewhere":
            raise web.HTTPFound("http://169.254.169.254/")
        if path.startswith("uploads"):
            return await self._upload(request)
        body = await request.text()
        answer = {
            "path": request.raw_path,
            "method": request.method,
            "headers": dict(request.headers),
            "body": body,
        }
        headers = {"ETag": '"7"', "Set-Cookie": "stolen=1", "X-Inner": "secret"}
        return web.json_response(answer, status=201, headers=headers)

    async def _upload(self, request):
        """As tus has it: a place for what is sent, and how far that has come."""
        if request.method == "POST":
            place = "/services/backendai/api/uploads/7"
            return web.Response(status=201, headers={"Location": place})
        if request.method == "PATCH" and request.headers["Upload-Offset"] != "0":
            raise web.HTTPConflict(text="elsewhere")
        async for part in request.content.iter_any():
            self.received += len(part)
            self.largest_part = max(self.largest_part, len(part))
        offset = {"Upload-Offset": str(self.received), "Tus-Resumable": "1.0.0"}
        return web.Response(status=204, headers=offset)

    async def _events(self, request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"id: 1\ndata: first\n\n")
        await self.more.wait()
        await response.write(b"id: 2\ndata: second\n\n")
        return response


def make_activation(run, listen):
    socket = quote(str(run / "hub.sock"), safe="")
    environ = {
        "BACKENDAI_LISTEN": listen,
        "BACKENDAI_API_URL": f"http+unix://{socket}/services/backendai/api/",
        "JUPYTERHUB_API_URL": f"http+unix://{socket}/hub/api",
        "JUPYTERHUB_ACTIVITY_URL": f"http+unix://{socket}/hub/api/users/alice/activity",
        "JUPYTERHUB_API_TOKEN": SERVER_TOKEN,
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_CLIENT_ID": "jupyterhub-user-alice",
        "JUPYTERHUB_HOST": "",
        "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:servers!server=alice/"]',
        "JUPYTERHUB_OAUTH_SCOPES": '["access:servers!server=alice/"]',
        "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{PREFIX}oauth_callback",
        "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
        "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:0{PREFIX}",
        "JUPYTERHUB_USER": "alice",
        "HOME": str(run.parent / "work"),
    }
    return {"environ": environ, "argv": ["--ServerApp.log_level=WARN"]}


def boot(run, **environ):
    return subprocess.Popen(
        [sys.executable, "-m", "backendai_lab.boot"],
        env={
            **os.environ,
            "BACKENDAI_RUN_DIR": str(run),
            "PATH": "/usr/bin",
            **environ,
        },
        cwd=run.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@asynccontextmanager
async def running_session(platform, **environ):
    # Not pytest's folder: the path of a socket may have no more than 107 letters.
    folder = Path(tempfile.mkdtemp(prefix="lab-"))
    run = folder / "run"
    for each in (run, folder / "work"):
        each.mkdir(mode=0o700)
    runner = web.AppRunner(platform.make_app(), access_log=None)
    await runner.setup()
    await web.UnixSite(runner, str(run / "hub.sock")).start()
    process = boot(run)
    socket = run / "lab.sock"
    activation = make_activation(run, f"unix:{socket}")
    activation["environ"] |= environ
    (run / "activation.json").write_text(json.dumps(activation))
    connector = aiohttp.UnixConnector(path=str(socket))
    client = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    try:
        await until_ready(client, process)
        yield client, run
    finally:
        await client.close()
        process.send_signal(signal.SIGTERM)
        printed, _ = await asyncio.to_thread(process.communicate, timeout=60)
        await runner.cleanup()
        shutil.rmtree(folder)
        assert "Traceback" not in printed, printed
        assert SERVER_TOKEN not in printed


async def until_ready(client, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            async with client.get(f"{BASE}api") as response:
                assert response.status == 200
                return
        except OSError:
            await asyncio.sleep(0.02)
    raise AssertionError("the session did not start")


@pytest.fixture
async def platform():
    return Platform()


@pytest.fixture
async def session(platform):
    async with running_session(platform) as (client, _):
        yield client


def as_user(name, **headers):
    return {"Authorization": f"token token-of-{name}", **headers}


async def test_a_session_boots_and_keeps_its_activation_to_itself(platform):
    async with running_session(platform) as (client, run):
        assert not (run / "activation.json").exists()
        assert (run / "lab.sock").stat().st_mode & 0o077 == 0
        async with client.get(f"{BASE}lab", headers=as_user("alice")) as response:
            page = await response.text()
        assert response.status == 200
        assert "jupyter-config-data" in page
        # Neither the server's own, nor that of whoever looks.
        assert "token-of-" not in page
        assert "/hub/api/" not in platform.heard  # no question for its version


async def test_kernels_terminals_and_contents_are_there(session):
    for path in ("kernelspecs", "terminals", "contents", "sessions"):
        url = f"{BASE}api/{path}"
        async with session.get(url, headers=as_user("alice")) as response:
            assert response.status == 200, path


async def test_a_visitor_who_is_not_logged_in_is_sent_to_the_hub(session):
    async with session.get(f"{BASE}lab", allow_redirects=False) as response:
        assert response.status == 302
        assert "/hub/api/oauth2/authorize" in response.headers["Location"]


async def test_the_api_is_not_for_strangers(session, platform):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for headers in ({}, as_user("nobody"), as_user("eve")):
            async with session.request(
                method, f"{API}me", headers=headers, allow_redirects=False
            ) as response:
                assert response.status == 403, (method, headers)


async def test_the_platform_sees_who_asks_and_not_whose_server_it_is(session):
    for name in ("alice", "bob"):
        async with session.get(f"{API}me", headers=as_user(name)) as response:
            seen = await response.json()
        assert seen["headers"]["Authorization"] == f"token token-of-{name}"


async def test_a_request_passes_whole_and_what_is_private_stays(session):
    headers = as_user("bob", **{"Idempotency-Key": "k1", "If-Match": '"6"'})
    async with session.post(
        f"{API}sessions/a%20b?limit=2&token=token-of-bob",
        json={"name": "x"},
        headers=headers | {"Cookie": "jupyterhub=1", "X-Forwarded-For": "6.6.6.6"},
    ) as response:
        seen = await response.json()

    assert response.status == 201
    assert response.headers["ETag"] == '"7"'
    assert "X-Inner" not in response.headers
    assert "stolen" not in response.cookies
    assert seen["path"] == "/services/backendai/api/sessions/a%20b?limit=2"
    assert json.loads(seen["body"]) == {"name": "x"}
    assert seen["headers"]["Idempotency-Key"] == "k1"
    assert seen["headers"]["If-Match"] == '"6"'
    assert not {"Cookie", "X-Forwarded-For"} & set(seen["headers"])


async def test_events_arrive_one_by_one(session, platform):
    async with session.get(f"{API}events", headers=as_user("alice")) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first = await asyncio.wait_for(response.content.readuntil(b"\n\n"), 60)
        platform.more.set()
        second = await asyncio.wait_for(response.content.readuntil(b"\n\n"), 60)
    assert (b"first" in first, b"second" in second) == (True, True)


async def test_an_upload_passes_part_by_part_and_its_place_is_here(session, platform):
    headers = as_user("alice", **{"Upload-Offset": "0", "Tus-Resumable": "1.0.0"})
    async with session.post(f"{API}uploads", headers=as_user("alice")) as response:
        place = response.headers["Location"]
    assert (response.status, place) == (201, f"{PREFIX}backendai/api/uploads/7")
    size = 24 << 20
    body = io.BytesIO(b"x" * size)
    async with session.patch(
        f"{ORIGIN}{place}", data=body, headers=headers
    ) as response:
        assert response.status == 204
        assert response.headers["Upload-Offset"] == str(size)
    async with session.head(f"{ORIGIN}{place}", headers=as_user("alice")) as response:
        assert response.headers["Upload-Offset"] == str(size)
    assert platform.largest_part < 1 << 20


async def test_who_is_refused_while_sending_is_told_why(session):
    large = b"x" * (8 << 20)
    wrong = as_user("alice", **{"Upload-Offset": "3"})
    url = f"{API}uploads/7"
    async with session.patch(url, data=io.BytesIO(large), headers=wrong) as response:
        assert (response.status, await response.text()) == (409, "elsewhere")
    async with session.patch(
        url, data=io.BytesIO(large), headers=as_user("eve")
    ) as response:
        assert response.status == 403


async def test_the_platform_cannot_send_us_elsewhere(session):
    async with session.get(
        f"{API}elsewhere", headers=as_user("alice"), allow_redirects=False
    ) as response:
        assert response.status == 502
        assert "Location" not in response.headers


async def test_paths_that_might_lead_out_are_refused(session):
    for path in ("%2e%2e/hub/api/users", "a%2fb", "a//b", "x%00"):
        url = URL(f"{API}{path}", encoded=True)
        async with session.get(url, headers=as_user("alice")) as response:
            assert response.status in {400, 404}, path


async def test_a_cookie_alone_may_read_but_not_write(session):
    """A page of another origin can make a browser send cookies, but no tokens."""
    async with session.post(
        f"{API}sessions",
        json={},
        headers={"Cookie": "jupyterhub-user-alice=forged", "Origin": "http://evil"},
    ) as response:
        assert response.status in {403, 404}


def test_a_session_without_activation_ends_and_says_why(tmp_path):
    process = boot(tmp_path, BACKENDAI_PARK_SECONDS="0.01")
    printed, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "no activation came within 0.01 seconds" in printed


def test_a_broken_activation_ends_the_session(tmp_path):
    (tmp_path / "activation.json").write_text("{}")
    process = boot(tmp_path)
    printed, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "the activation cannot be read" in printed
