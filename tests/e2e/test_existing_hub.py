"""Three lines add the platform to a JupyterHub that we neither start nor configure.

The Hub is a real one with an authenticator of its own; once with our router as its
proxy's command, once with npm's configurable-http-proxy.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from backendai_hub.launcher.ports import _pick_inner, is_free
from tests.e2e.up import run, until
from tests.integration.router_harness import find_npm_proxy

pytestmark = [pytest.mark.bwrap, pytest.mark.timeout(300)]

SITE = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"grace"}}
c.JupyterHub.services = [{{"name": "site", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{
        "name": "site",
        "services": ["site"],
        "scopes": ["admin:users", "admin:servers", "tokens"],
    }}
]
"""

THREE_LINES = """
import backendai_spawner
backendai_spawner.install(c, {connection!r})
c.JupyterHub.spawner_class = "backendai"
"""

TOKEN = "f" * 32


class Site:
    """Somebody's JupyterHub, and our platform beside it."""

    def __init__(self, folder: Path, proxy: list[str]) -> None:
        self.folder = folder
        taken: set[int] = set()
        for _ in range(3):
            taken.add(_pick_inner(taken, is_free))
        self.port, self.hub_port, self.api_port = sorted(taken)
        self.proxy = proxy
        self.data = folder / "data"

    def up(self) -> dict[str, object]:
        done = run(
            "up",
            "--attach",
            f"--hub-api-url=http://127.0.0.1:{self.port}/hub/api",
            "--detach",
            "--json",
            f"--data-dir={self.data}",
            "--runtime=process",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def start_hub(self, connection: str) -> subprocess.Popen[bytes]:
        config = self.folder / "jupyterhub_config.py"
        site = SITE.format(
            port=self.port,
            hub_port=self.hub_port,
            api_port=self.api_port,
            proxy=self.proxy,
            token=TOKEN,
        )
        config.write_text(site + THREE_LINES.format(connection=connection))
        log = (self.folder / "hub.log").open("wb")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(config)],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def said(self) -> str:
        logs = [self.folder / "hub.log", *sorted((self.data / "logs").glob("*.log"))]
        return "\n".join(
            f"--- {p.name}\n{p.read_text('utf-8', 'replace')[-3000:]}" for p in logs
        )


@pytest.fixture(params=["router", pytest.param("npm", marks=pytest.mark.node)])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    proxy = (
        [sys.executable, "-m", "backendai_hub.router"]
        if request.param == "router"
        else [str(find_npm_proxy())]
    )
    folder = Path(tempfile.mkdtemp(prefix="bai-"))
    site = Site(folder, proxy)
    hub: subprocess.Popen[bytes] | None = None
    try:
        told = site.up()
        hub = site.start_hub(str(told["connection_file"]))
        yield site
    finally:
        if hub is not None:
            hub.send_signal(signal.SIGTERM)
            hub.wait(30)
        run("down", f"--data-dir={site.data}")
        shutil.rmtree(folder, ignore_errors=True)


def test_a_users_notebook_runs_and_stops_in_an_existing_hub(site: Site):
    web = requests.Session()
    web.trust_env = False
    web.headers["Authorization"] = f"token {TOKEN}"
    users = f"{site.url}hub/api/users/alice"

    def is_up() -> bool:
        try:
            return web.get(f"{site.url}hub/api/", timeout=5).ok
        except requests.RequestException:
            return False

    until(is_up, site.said, 30)
    assert web.post(users, timeout=10).status_code == 201
    token = web.post(f"{users}/tokens", json={"note": "t"}, timeout=10).json()["token"]
    alice = requests.Session()
    alice.trust_env = False
    alice.headers["Authorization"] = f"token {token}"
    asked = alice.post(
        f"{users}/servers/mine",
        json={"user_options": {"image": "jupyterlab", "slots": {"cpu": "0.5"}}},
        timeout=30,
    )
    assert asked.status_code in {201, 202}, asked.text
    lab = f"{site.url}user/alice/mine/"

    def answers() -> bool:
        found = alice.get(f"{lab}api/status", timeout=10, allow_redirects=False)
        return found.status_code == 200 and "started" in found.json()

    until(answers, site.said, 60)
    api = f"{site.url}services/backendai/api/"
    sessions = alice.get(f"{api}sessions?status=live", timeout=10).json()["items"]
    assert [(s["owner"], s["status"]) for s in sessions] == [("alice", "RUNNING")]
    # An administrator of the Hub is none of ours unless our configuration says so.
    assert alice.get(f"{api}me", timeout=10).json()["roles"] == ["user"]

    assert alice.delete(f"{users}/servers/mine", timeout=30).status_code in {202, 204}

    def ended() -> bool:
        items = alice.get(f"{api}sessions?status=ended", timeout=10).json()["items"]
        return [s["status"] for s in items] == ["TERMINATED"]

    until(ended, site.said, 30)
    room = alice.get(f"{api}resources", timeout=10).json()["room"]
    assert all(r["free"] == r["total"] for r in room)
