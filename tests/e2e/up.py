"""The whole platform, brought up by its own command, and people who use it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from backendai_hub.client.lockfile import holder
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.ports import _pick_inner, is_free

CONVERGE_SECONDS = 60.0
"""Within this after its return, everything a killed process did has to be right.

It takes a few seconds, but a busy machine takes its time to start anything.
"""


def until(
    holds: Callable[[], Any], what: Callable[[], str] | str, seconds: float = 60.0
) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            words = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {seconds:g} s: {words}")
        time.sleep(0.05)
    return found


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "backendai_hub.cli", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, **options
    )


class Platform:
    """A running platform in a folder of its own."""

    def __init__(self, folder: Path, runtime: str, config: str = "") -> None:
        self.folder = DataFolder(folder)
        self.runtime = runtime
        self.port = _pick_inner(set(), is_free)
        folder.mkdir(parents=True, exist_ok=True)
        # Beside other platforms, its sessions run as users of its own.
        users = f"c.ProcessRuntime.first_uid = {10_000 * self.port}\n"
        config = config.replace("PORT", str(self.port))
        self.folder.site_config.write_text(users + config)
        self.told: dict[str, Any] = {}
        self.password = "correct horse battery staple"
        self.web = requests.Session()
        self.web.trust_env = False

    def up(self) -> dict[str, Any]:
        done = run(
            "up",
            "--detach",
            "--json",
            f"--data-dir={self.folder.root}",
            f"--port={self.port}",
            f"--runtime={self.runtime}",
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        self.told = json.loads(done.stdout)
        self.web.headers["Authorization"] = f"token {self.told['token']}"
        return self.told

    def down(self, *flags: str) -> str:
        done = run("down", f"--data-dir={self.folder.root}", *flags)
        return done.stdout + done.stderr

    def add_user(self, name: str) -> str:
        done = run("user", "add", name, "--json", f"--data-dir={self.folder.root}")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["password"])

    def give_role(self, name: str, role: str) -> None:
        answer = self.web.patch(f"{self.api}users/{name}", json={"role": role})
        assert answer.ok, answer.text

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def api(self) -> str:
        return f"{self.url}services/backendai/api/"

    def pid(self, process: str) -> int | None:
        return holder(self.folder.lock(process))

    def kill(self, process: str) -> int:
        pid = self.pid(process)
        assert pid is not None, process
        os.kill(pid, signal.SIGKILL)
        return pid

    def returned(self, process: str, old: int) -> None:
        until(
            lambda: self.pid(process) not in {None, old},
            lambda: f"{process} is back\n{self.logs()}",
        )

    def get(self, path: str, **options: Any) -> Any:
        answer = self.web.get(f"{self.api}{path}", timeout=30, **options)
        assert answer.ok, answer.text
        return answer.json()

    def create(self, **request: Any) -> dict[str, Any]:
        body = {"image": "jupyterlab", **request}
        answer = self.web.post(f"{self.api}sessions", json=body, timeout=60)
        assert answer.ok, answer.text
        return dict(answer.json())

    def reach(
        self, session: Mapping[str, Any], *statuses: str, seconds: float = 60.0
    ) -> dict[str, Any]:
        last: dict[str, Any] = {}

        def there() -> bool:
            try:
                last.update(self.get(f"sessions/{session['id']}"))
            except (AssertionError, requests.RequestException):
                return False
            return last["status"] in statuses

        until(there, lambda: f"{statuses}; it is {last}\n{self.logs()}", seconds)
        return last

    def start(self, **request: Any) -> dict[str, Any]:
        session = self.reach(self.create(**request), "RUNNING", "ERROR")
        assert session["status"] == "RUNNING", (session, self.logs())
        # JupyterHub looks at the server once more before it adds its route.
        until(lambda: self.lab(session), lambda: f"it answers\n{self.logs()}")
        return session

    def terminate(self, session: Mapping[str, Any], *, force: bool = False) -> None:
        url = f"{self.api}sessions/{session['id']}/terminate"
        last: list[str] = []

        def accepted() -> bool:
            # A service that has just come back may not listen yet.
            answer = self.web.post(url, json={"force": force}, timeout=60)
            last.append(answer.text)
            assert answer.status_code in {202, 503}, answer.text
            return answer.status_code == 202

        until(accepted, lambda: last[-1], CONVERGE_SECONDS)

    def lab(self, session: Mapping[str, Any], path: str = "api/status") -> Any:
        """Ask a session's own server; None while it cannot be reached."""
        prefix = session["attachment"]["prefix"].lstrip("/")
        try:
            answer = self.web.get(
                f"{self.url}{prefix}{path}", timeout=10, allow_redirects=False
            )
        except requests.RequestException:
            return None
        return answer.json() if answer.status_code == 200 else None

    def free(self) -> dict[str, str]:
        return {r["slot"]: r["free"] for r in self.get("resources")["room"]}

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-3000:]}"
            for path in sorted(self.folder.logs.glob("*.log"))
        )


@contextmanager
def running(runtime: str, config: str = "") -> Iterator[Platform]:
    # A short path: the sockets of sessions are below it.
    folder = Path(tempfile.mkdtemp(prefix="bai-"))
    platform = Platform(folder / "data", runtime, config)
    try:
        platform.up()
        yield platform
    finally:
        platform.down("--sessions")
        platform.down()
        shutil.rmtree(folder, ignore_errors=True)
