"""Real processes of ours on loopback, with folders and ports of their own.

Nothing here stands in for anything: the hub service and the agent are started as
programs, as `backendai up` starts them, only with the ``fake`` runtime that ships
with the agent.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import aiohttp

from backendai_hub.client.lockfile import holder
from backendai_hub.db.migrate import upgrade
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.keys import create_missing_keys
from backendai_hub.launcher.ports import _pick_inner, is_free

PREFIX = "/services/backendai/"
ROOT = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 60.0
"""How long a broken test may hang; nothing is expected to take so long."""
LONGEST_PAUSE = 0.1


def free_port(taken: set[int]) -> int:
    port = _pick_inner(taken, is_free)
    taken.add(port)
    return port


@cache
def migrated() -> bytes:
    """An SQLite database with the present schema, as a file holds it.

    A service makes one in half a second; tests of its first start let it.
    """
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        path = Path(folder) / "migrated.sqlite"
        upgrade(f"sqlite+aiosqlite:///{path}")
        return path.read_bytes()


async def until(
    holds: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS
) -> Any:
    """Look again and again at real processes, until something holds.

    Each time a bit later: what takes a while is slowed down by who asks all the time.
    """
    deadline = time.monotonic() + seconds
    pause = 0.01
    while True:
        found = holds()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(pause)
        pause = min(1.3 * pause, LONGEST_PAUSE)


def start_anew(program: Program) -> subprocess.Popen[bytes]:
    """Start a program as `backendai up` does."""
    with program.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", program.module, *program.argv],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=program.log.parent,
        )


@dataclass
class Program:
    """One real process."""

    name: str
    module: str
    argv: list[str]
    log: Path
    process: Any = None
    begin: ClassVar[Callable[[Program], Any]] = start_anew
    """How it is started; what that returns is like a `subprocess.Popen`."""

    def start(self) -> None:
        self.process = type(self).begin(self)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


class Stack:
    """A hub service and agents, without a JupyterHub."""

    def __init__(self, folder: Path, db_url: str | None = None) -> None:
        self.folder = DataFolder(folder)
        self.folder.create()
        if db_url is None:
            (self.folder.databases / "backendai.sqlite").write_bytes(migrated())
        create_missing_keys(self.folder, now=datetime.now(UTC))
        self._taken: set[int] = set()
        self.port = free_port(self._taken)
        self.agents_port = free_port(self._taken)
        self.gateway_port = free_port(self._taken)
        self.db_url = db_url
        self.programs: dict[str, Program] = {}
        self.settings: list[str] = []
        self._users: dict[str, int] = {}
        self.patience = WAIT_SECONDS
        """How long a service may take until it answers, or stand by."""
        self.connection_file.write_text(
            json.dumps(
                {
                    "service_url": self.url,
                    "prefix": PREFIX,
                    "gateway_url": self.gateway_url,
                    "service_token_file": str(self.folder.key("service.token")),
                    "spawner_token_file": str(self.folder.key("spawner.token")),
                }
            )
        )

    @property
    def prefix(self) -> str:
        return PREFIX

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PREFIX}"

    @property
    def gateway_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway_port}"

    @property
    def connection_file(self) -> Path:
        return self.folder.connection

    def token(self, name: str) -> str:
        return self.folder.key(f"{name}.token").read_text("ascii").strip()

    def _program(self, name: str, module: str, *flags: str) -> Program:
        log = self.folder.logs / f"{name}.log"
        program = Program(name, module, [*flags], log)
        self.programs[name] = program
        return program

    async def start_service(self, *flags: str) -> None:
        if flags:
            self.settings = list(flags)
        database = [] if self.db_url is None else [f"--HubService.db_url={self.db_url}"]
        program = self._program(
            "service",
            "backendai_hub.launcher.service",
            f"--HubService.data_dir={self.folder.root}",
            f"--HubService.port={self.port}",
            f"--HubService.agents_port={self.agents_port}",
            f"--HubService.lock_file={self.folder.lock('service')}",
            *database,
            *self.settings,
        )
        program.start()
        await self._until_answers(program)

    async def _until_answers(self, program: Program) -> None:
        async with aiohttp.ClientSession() as session:

            async def answers() -> bool:
                assert program.process is not None
                if program.process.poll() is not None:
                    raise AssertionError(f"the service ended:\n{program.said()}")
                try:
                    async with session.get(f"{self.url}api/") as response:
                        return response.status == 200
                except aiohttp.ClientError:
                    return False

            await until(
                answers, f"the service answers:\n{program.said()}", self.patience
            )

    async def start_agent(
        self, *flags: str, name: str = "agent", runtime: str = "fake"
    ) -> None:
        users = []
        if runtime == "process":  # beside other agents, sessions are users of its own
            first = 10_000 * self._users.setdefault(name, free_port(self._taken))
            users = [f"--ProcessRuntime.first_uid={first}"]
        program = self._program(
            name,
            "backendai_agent.app",
            f"--BackendAIAgent.data_dir={self.folder.root / name}",
            f"--BackendAIAgent.hub_url=https://127.0.0.1:{self.agents_port}",
            f"--BackendAIAgent.ca_file={self.folder.key('ca.crt')}",
            f"--BackendAIAgent.token_file={self.folder.key('enroll.token')}",
            f"--BackendAIAgent.runtime={runtime}",
            f"--BackendAIAgent.lock_file={self.folder.lock(name)}",
            *users,
            *flags,
        )
        program.start()
        spawner = self.client("nobody")
        async with spawner:

            async def ready() -> bool:
                assert program.process is not None
                if program.process.poll() is not None:
                    raise AssertionError(f"the agent ended:\n{program.said()}")
                resources = await spawner.get("api/resources")
                return bool(resources["nodes"])

            await until(ready, f"the agent has reported:\n{program.said()}")

    def client(self, user: str) -> API:
        return API(self.url, self.token("spawner"), user)

    def holder(self, name: str) -> int | None:
        return holder(self.folder.lock(name))

    def stop(self) -> None:
        for program in reversed(self.programs.values()):
            program.stop()


class API:
    """Plain HTTP to the service, for what a typed client would not send."""

    def __init__(self, url: str, token: str | None, user: str | None = None) -> None:
        self._url = url
        self._headers = {} if token is None else {"Authorization": f"token {token}"}
        if user is not None:
            self._headers["X-Backendai-Act-For"] = user
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> API:
        self._session = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def send(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        assert self._session is not None
        async with self._session.request(
            method, f"{self._url}{path}", **options
        ) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None

    async def get(self, path: str, **options: Any) -> Any:
        status, body = await self.send("GET", path, **options)
        assert status == 200, (status, body)
        return body

    async def create(self, key: str | None = None, **request: Any) -> tuple[int, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"image": "jupyterlab", **request}
        return await self.send("POST", "api/sessions", json=body, headers=headers)

    async def launch(self, server: str, **request: Any) -> dict[str, Any]:
        """Ask for a session as the spawner does."""
        name = self._headers["X-Backendai-Act-For"]
        status, body = await self.create(
            attachment={
                "user": name,
                "server": server,
                "prefix": f"/user/{name}/{server}/",
            },
            environ={"JUPYTERHUB_API_TOKEN": f"born-{server}"},
            **request,
        )
        assert status in {200, 201}, body
        return dict(body)

    async def reach(
        self, session_id: str, *statuses: str, seconds: float = WAIT_SECONDS
    ) -> dict[str, Any]:
        """Wait until a session is in one of *statuses*."""
        last: dict[str, Any] = {}

        async def there() -> bool:
            last.update(await self.get(f"api/sessions/{session_id}"))
            return last["status"] in statuses

        try:
            await until(there, f"{session_id} reaches {statuses}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last}") from None
        return last


@asynccontextmanager
async def running_stack(
    folder: Path,
    db_url: str | None = None,
    *,
    agent: bool = True,
    flags: Iterable[str] = (),
) -> AsyncIterator[Stack]:
    stack = Stack(folder, db_url)
    try:
        await stack.start_service(*flags)
        if agent:
            await stack.start_agent()
        yield stack
    finally:
        stack.stop()
