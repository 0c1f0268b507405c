"""The real processes of this measurement: PostgreSQL, JupyterHub, and ours."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from sqlalchemy import URL, create_engine, make_url, text

from tests.harness import Stack, free_port
from tests.provision import find_postgres, stop, tail, wait_until

HERE = Path(__file__).parent
_TICKS = os.sysconf("SC_CLK_TCK")


def processor(pid: int) -> float:
    """Seconds of processor time a process and its ended children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def processor_of_tree(pid: int) -> float:
    """The same with the children that still run (PostgreSQL's backends)."""
    total = processor(pid)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                total += processor(int(entry.name)) if int(parent) == pid else 0.0
            except OSError:  # it has just ended
                continue
    return total


def _user() -> pwd.struct_passwd | None:
    """Whom PostgreSQL may run as, where we are root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


@contextmanager
def own_postgres() -> Iterator[tuple[URL, int]]:
    """A PostgreSQL of our own, with its own defaults: every commit is on the disk."""
    programs = find_postgres()
    if programs is None:
        sys.exit("PostgreSQL is not installed; set BACKENDAI_TEST_POSTGRES_URL")
    folder = Path(tempfile.mkdtemp(prefix="backendai-api-"))
    owner = _user()
    name = None if owner is None else owner.pw_name
    data, port, log = folder / "data", free_port(set()), folder / "postgres.log"
    data.mkdir(mode=0o700)
    if owner is not None:
        folder.chmod(0o711)
        os.chown(data, owner.pw_uid, owner.pw_gid)
    subprocess.run(
        [
            *(programs / "initdb", "-U", "backendai", "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "-D", data),
        ],
        user=name,
        cwd="/",
        stdout=subprocess.DEVNULL,
        check=True,
    )
    settings = {"listen_addresses": "127.0.0.1", "port": port}
    settings["unix_socket_directories"] = str(data)
    flags = [f"--{key}={value}" for key, value in settings.items()]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *flags],
            user=name,
            cwd="/",
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        if not wait_until(
            lambda: subprocess.run(ready, check=False).returncode == 0, server
        ):
            raise RuntimeError(f"PostgreSQL did not start:\n{tail(log)}")
        url = URL.create(
            "postgresql+psycopg", "backendai", None, "127.0.0.1", port, "postgres"
        )
        yield url, server.pid
    finally:
        stop(server, signal.SIGINT)  # its fast shutdown
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[tuple[URL, int | None]]:
    """The server that the environment names, or one of our own (with its pid)."""
    given = os.environ.get("BACKENDAI_TEST_POSTGRES_URL")
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg"), None
        return
    with own_postgres() as (url, pid):
        yield url, pid


@contextmanager
def database(server: URL, name: str) -> Iterator[str]:
    """A new database on the server, as long as it is needed."""
    name = f"{name}_{secrets.token_hex(4)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        yield server.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    finally:
        engine.dispose()


class Hub:
    """A running JupyterHub: its API, and tokens of people."""

    def __init__(self, port: int, token: str, process: subprocess.Popen[bytes]) -> None:
        self.port, self.process = port, process
        self.api = f"http://127.0.0.1:{port}/hub/api"
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"token {token}"

    def wait(self, log: Path) -> None:
        def answers() -> bool:
            try:
                return self._http.get(f"{self.api}/users", timeout=5).ok
            except requests.RequestException:
                return False

        if not wait_until(answers, self.process):
            raise RuntimeError(f"JupyterHub did not start:\n{tail(log)}")

    def make_people(self, names: list[str]) -> dict[str, str]:
        """Make users, and one token of the usual kind for each."""
        made = self._http.post(f"{self.api}/users", json={"usernames": names})
        made.raise_for_status()
        return {name: self._make_token(name) for name in names}

    def _make_token(self, name: str) -> str:
        made = self._http.post(f"{self.api}/users/{name}/tokens", json={})
        made.raise_for_status()
        return str(made.json()["token"])

    def close(self) -> None:
        self._http.close()


@contextmanager
def jupyterhub(folder: Path, stack: Stack, db_url: str, port: int) -> Iterator[Hub]:
    """A stock JupyterHub that knows our service."""
    token = secrets.token_hex(16)
    taken = {port}
    given: dict[str, Any] = {
        "port": free_port(taken),
        "api_port": free_port(taken),
        "hub_port": port,
        "db_url": db_url,
        "folder": str(folder),
        "token": token,
        "connection": str(stack.connection_file),
    }
    log = folder / "jupyterhub.log"
    argv = [sys.executable, "-m", "jupyterhub", "-f", str(HERE / "hub_config.py")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            env={**os.environ, "API_BENCHMARK": json.dumps(given)},
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    hub = Hub(port, token, process)
    try:
        hub.wait(log)
        yield hub
    finally:
        hub.close()
        stop(process)


def pin(pid: int, cores: set[int]) -> None:
    """Keep a process and all its threads on these cores."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def settle(pid: int, seconds: float = 60.0) -> None:
    """Wait until a process has nothing left to do from what came before."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = processor(pid)
        time.sleep(0.5)
        if processor(pid) - before <= 0.02:
            return
