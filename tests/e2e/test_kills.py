"""Kill any process of the platform at any moment: notebooks keep running.

Once with SQLite and once with PostgreSQL, with real JupyterLab in sandboxed
processes. After each kill the supervisor brings the process back, and soon everything
has to be as it should.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import requests
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from tests.e2e.up import CONVERGE_SECONDS, Platform, running, until

pytestmark = [pytest.mark.bwrap, pytest.mark.timeout(600)]


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    if request.param == "sqlite":
        with running("process") as up:
            yield up
        return
    server = make_url(os.environ["BACKENDAI_TEST_POSTGRES_URL"]).set(
        drivername="postgresql+psycopg"
    )
    name = f"kills_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        url = server.set(database=name).render_as_string(hide_password=False)
        with running("process", f"c.HubService.db_url = {url!r}\n") as up:
            yield up
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    finally:
        engine.dispose()


class Kernel:
    """A running kernel that remembers, over a WebSocket through the data plane."""

    def __init__(self, platform: Platform, session: dict[str, Any]) -> None:
        self.platform = platform
        prefix = session["attachment"]["prefix"].lstrip("/")
        answer = platform.web.post(
            f"{platform.url}{prefix}api/kernels", json={"name": "python3"}, timeout=60
        )
        assert answer.status_code == 201, answer.text
        self.path = f"{prefix}api/kernels/{answer.json()['id']}/channels"
        self._connect()

    def _connect(self) -> None:
        opened = ExitStack()
        self.socket: ClientConnection = opened.enter_context(
            connect(
                f"ws://127.0.0.1:{self.platform.port}/{self.path}",
                additional_headers={
                    "Authorization": self.platform.web.headers["Authorization"]
                },
                proxy=None,
            )
        )
        self.close = opened.close

    def reconnect(self) -> None:
        self.close()

        def connected() -> bool:
            try:
                self._connect()
            except (OSError, InvalidHandshake):
                return False
            return True

        until(connected, "the kernel's socket can be opened again", CONVERGE_SECONDS)
        # What a kernel prints while a client's socket is just being opened can pass
        # the client by. Only here is anything asked again: on an open socket, every
        # request has to be answered the first time.
        for _ in range(3):
            with suppress(TimeoutError):
                self.run("print('here')", patience=10)
                return
        raise AssertionError("the reopened socket carries no output")

    def run(self, code: str, *, patience: float = 60) -> str:
        """Run *code* once and return what it prints."""
        message = uuid.uuid4().hex
        header = {
            "msg_id": message,
            "msg_type": "execute_request",
            "session": "s",
            "username": "u",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": False}
        request = {"header": header, "parent_header": {}, "metadata": {}}
        self.socket.send(
            json.dumps({**request, "content": content, "channel": "shell"})
        )
        printed = ""
        while True:
            answer = json.loads(self.socket.recv(timeout=patience))
            if answer.get("parent_header", {}).get("msg_id") != message:
                continue
            if answer["msg_type"] == "stream":
                printed += answer["content"]["text"]
            if answer["msg_type"] == "error":
                raise AssertionError(answer["content"]["evalue"])
            idle = answer["content"].get("execution_state") == "idle"
            if printed and (idle or answer["msg_type"] == "execute_reply"):
                return printed.strip()


@pytest.fixture(scope="module")
def session(platform: Platform) -> dict[str, Any]:
    return platform.start(name="kept", slots={"cpu": "0.5", "mem": "512m"})


@pytest.fixture(scope="module")
def kernel(platform: Platform, session: dict[str, Any]) -> Iterator[Kernel]:
    opened = Kernel(platform, session)
    opened.run("secret = 42; print('kept')")
    yield opened
    opened.close()


def check_whole(platform: Platform, session: dict[str, Any], since: str) -> None:
    """The same server answers, new sessions start and end, nothing is doubled."""
    until(
        lambda: (platform.lab(session) or {}).get("started") == since,
        lambda: f"the same notebook server answers\n{platform.logs()}",
        CONVERGE_SECONDS,
    )

    def alive() -> bool:
        try:
            agents = platform.get("agents")["items"]
        except (AssertionError, requests.RequestException):
            return False
        return [a["status"] for a in agents] == ["ALIVE"]

    until(alive, lambda: f"the node is there\n{platform.logs()}", CONVERGE_SECONDS)
    before = platform.free()
    other = platform.start(slots={"cpu": "0.5", "mem": "512m"})
    platform.terminate(other)
    platform.reach(other, "TERMINATED")
    assert platform.free() == before
    live = platform.get("sessions?status=live")["items"]
    assert [s["id"] for s in live] == [session["id"]]


@pytest.mark.parametrize("process", ["hub", "service", "agent", "router"])
def test_killed_at_rest(
    platform: Platform, session: dict[str, Any], kernel: Kernel, process: str
):
    since = platform.lab(session)["started"]
    killed = platform.kill(process)
    if process in {"hub", "service"}:
        # Neither is on the way to a notebook: even its open socket is untouched.
        assert kernel.run("print(secret)") == "42"
        assert platform.lab(session, "api")
    platform.returned(process, killed)
    check_whole(platform, session, since)
    if process in {"agent", "router"}:
        with pytest.raises((ConnectionClosed, TimeoutError, OSError)):
            kernel.run("print(secret)")
        kernel.reconnect()
    assert kernel.run("print(secret)") == "42"


@pytest.mark.parametrize("process", ["hub", "service", "agent", "router"])
def test_killed_while_a_session_starts(
    platform: Platform, session: dict[str, Any], process: str
):
    since = platform.lab(session)["started"]
    before = platform.free()
    starting = platform.create(slots={"cpu": "0.5", "mem": "512m"})
    platform.reach(starting, "SCHEDULED", "PREPARING", "CREATING", "RUNNING")
    killed = platform.kill(process)
    platform.returned(process, killed)
    ran = platform.reach(starting, "RUNNING", "ERROR")
    assert ran["status"] == "RUNNING", (ran, platform.logs())
    until(
        lambda: platform.lab(starting),
        lambda: f"its notebook server answers\n{platform.logs()}",
        CONVERGE_SECONDS,
    )
    platform.terminate(starting)
    platform.reach(starting, "TERMINATED")
    assert platform.free() == before
    check_whole(platform, session, since)


@pytest.mark.parametrize("process", ["service", "agent"])
def test_killed_while_a_session_stops(
    platform: Platform, session: dict[str, Any], process: str
):
    since = platform.lab(session)["started"]
    before = platform.free()
    stopping = platform.start(slots={"cpu": "0.5", "mem": "512m"})
    platform.terminate(stopping)
    killed = platform.kill(process)
    platform.returned(process, killed)
    ended = platform.reach(stopping, "TERMINATED", "ERROR")
    assert ended["status"] == "TERMINATED"
    assert platform.free() == before
    check_whole(platform, session, since)


def test_down_and_up_again_leaves_the_notebook_running(
    platform: Platform, session: dict[str, Any], kernel: Kernel
):
    since = platform.lab(session)["started"]
    said = platform.down()
    assert "1" in said
    assert platform.pid("hub") is None
    platform.up()
    check_whole(platform, session, since)
    kernel.reconnect()
    assert kernel.run("print(secret)") == "42"
