"""A JupyterHub that we neither start nor configure, with the platform beside it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from backendai_hub.launcher.ports import _pick_inner, is_free
from tests.e2e.up import run, until

ROUTER = (sys.executable, "-m", "backendai_hub.router")

SITE = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}{base}"
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

SUBDOMAINS = """
c.JupyterHub.subdomain_host = "http://hub.localhost:{port}"
"""

THREE_LINES = """
import backendai_spawner
backendai_spawner.install(c, {connection!r})
c.JupyterHub.spawner_class = "backendai"
"""

TOKEN = "f" * 32


class Site:
    """Somebody's JupyterHub, and our platform beside it."""

    def __init__(
        self, folder: Path, proxy: Sequence[str], base: str, *, subdomains: bool
    ) -> None:
        self.folder = folder
        self.base = base
        self.subdomains = subdomains
        taken: set[int] = set()
        for _ in range(3):
            taken.add(_pick_inner(taken, is_free))
        self.port, self.hub_port, self.api_port = sorted(taken)
        self.proxy = list(proxy)
        self.data = folder / "data"

    def up(self) -> dict[str, object]:
        done = run(
            "up",
            "--attach",
            f"--hub-api-url=http://127.0.0.1:{self.port}{self.base}hub/api",
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
            base=self.base,
            proxy=self.proxy,
            token=TOKEN,
        )
        if self.subdomains:
            site += SUBDOMAINS.format(port=self.port)
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
        host = "hub.localhost" if self.subdomains else "127.0.0.1"
        return f"http://{host}:{self.port}{self.base}"

    def said(self) -> str:
        logs = [self.folder / "hub.log", *sorted((self.data / "logs").glob("*.log"))]
        return "\n".join(
            f"--- {p.name}\n{p.read_text('utf-8', 'replace')[-3000:]}" for p in logs
        )

    @property
    def api(self) -> str:
        """JupyterHub's API, by an address that needs no name."""
        return f"http://127.0.0.1:{self.port}{self.base}hub/api/"

    def is_up(self) -> bool:
        try:
            return requests.get(self.api, timeout=5).ok
        except requests.RequestException:
            return False


@contextmanager
def existing_hub(
    proxy: Sequence[str] = ROUTER, base: str = "/", *, subdomains: bool = False
) -> Iterator[Site]:
    """Run both; people come in at ``url``."""
    folder = Path(tempfile.mkdtemp(prefix="bai-"))
    site = Site(folder, proxy, base, subdomains=subdomains)
    hub: subprocess.Popen[bytes] | None = None
    try:
        told = site.up()
        hub = site.start_hub(str(told["connection_file"]))
        until(site.is_up, site.said)
        yield site
    finally:
        if hub is not None:
            hub.send_signal(signal.SIGTERM)
            hub.wait(60)
        run("down", f"--data-dir={site.data}")
        shutil.rmtree(folder, ignore_errors=True)
