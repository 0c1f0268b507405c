"""How long from asking the Hub for a server until its JupyterLab answers?

    python -m benchmarks.spawn.run [--rounds 5] [--burst 5] [--json FILE]

Ours (the docker runtime and its image) and DockerSpawner 14 with a stock JupyterLab
image, in the same run, alternately, through the same requests: ``POST
/hub/api/users/:user/servers/:name``, then ``GET /user/:user/:name/lab`` with a token
until it answers 200. Both get one core and 1 GiB. Needs a Docker Engine and
``backendai/jupyterlab:4`` (``python -m images.build jupyterlab``).
"""

from __future__ import annotations

import argparse
import asyncio
import io
import ipaddress
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import docker

from backendai_hub.launcher.ports import _pick_inner, is_free
from tests.e2e.up import running

HERE = Path(__file__).parent
STOCK = "backendai-benchmark/stock:1"


def build_stock(client: Any) -> None:
    """Build the peer's image, once."""
    if client.images.list(STOCK):
        return
    context = io.BytesIO()
    bundle = os.environ.get("PIP_CERT")
    with tarfile.open(fileobj=context, mode="w") as archive:
        archive.add(HERE / "Dockerfile.stock", "Dockerfile")
        authority = Path(bundle).read_bytes() if bundle else b""
        member = tarfile.TarInfo("ca.crt")
        member.size = len(authority)
        archive.addfile(member, io.BytesIO(authority))
    context.seek(0)
    print("building the stock image …", flush=True)
    client.images.build(fileobj=context, custom_context=True, tag=STOCK, rm=True)


def find_proxy() -> list[str]:
    """The peer's usual proxy where it is installed, else our router."""
    found = shutil.which("configurable-http-proxy")
    cached = sorted(
        Path.home().glob(".cache/backendai-tests/**/.bin/configurable-http-proxy")
    )
    if found or cached:
        return [found or str(cached[0])]
    return [sys.executable, "-m", "backendai_hub.router"]


class Hub:
    """A JupyterHub under test."""

    def __init__(self, name: str, url: str, token: str, user: str) -> None:
        self.name, self.url, self.user = name, url, user
        self.headers = {"Authorization": f"token {token}"}

    async def spawn(
        self, session: aiohttp.ClientSession, server: str
    ) -> dict[str, float]:
        """Ask for one server; return the seconds each step ended after the POST."""
        path = f"{self.url}hub/api/users/{self.user}/servers/{server}"
        began = time.monotonic()
        wall = time.time()
        async with session.post(path, headers=self.headers) as answer:
            assert answer.status in {201, 202}, await answer.text()
        posted = time.monotonic() - began
        lab = f"{self.url}user/{self.user}/{server}/lab"
        while True:
            async with session.get(
                lab, headers=self.headers, allow_redirects=False
            ) as answer:
                if answer.status == 200:
                    await answer.read()
                    break
            if time.monotonic() - began > 120:
                raise TimeoutError(f"{self.name}: {server} never answered")
            await asyncio.sleep(0.01)
        return {"posted": posted, "lab": time.monotonic() - began, "wall": wall}

    async def stop(self, session: aiohttp.ClientSession, server: str) -> None:
        path = f"{self.url}hub/api/users/{self.user}/servers/{server}"
        body = {"remove": True}
        async with session.delete(path, headers=self.headers, json=body) as answer:
            await answer.read()
        for _ in range(1200):
            async with session.get(
                f"{self.url}hub/api/users/{self.user}?include_stopped_servers",
                headers=self.headers,
            ) as answer:
                servers = (await answer.json())["servers"]
            if server not in servers:
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{self.name}: {server} never stopped")

    async def phases(
        self, session: aiohttp.ClientSession, server: str, wall: float
    ) -> dict[str, float]:
        """When our session changed its state, in seconds after the POST."""
        url = f"{self.url}services/backendai/api/sessions"
        async with session.get(f"{url}?status=live", headers=self.headers) as answer:
            items = (await answer.json())["items"]
        mine = next(s for s in items if s["attachment"]["server"] == server)
        async with session.get(
            f"{url}/{mine['id']}/events", headers=self.headers
        ) as answer:
            events = await answer.json()
        return {
            event["status"].lower(): round(
                datetime.fromisoformat(event["at"]).timestamp() - wall, 3
            )
            for event in events
            if event["status"]
        }


@contextmanager
def peer(folder: Path) -> Any:
    """JupyterHub with DockerSpawner, running."""
    client = docker.from_env()
    subnet = client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"]
    gateway = str(next(ipaddress.ip_network(subnet).hosts()))
    taken: set[int] = set()
    for _ in range(3):
        taken.add(_pick_inner(taken, is_free))
    port, hub_port, api_port = sorted(taken)
    token = secrets.token_hex(16)
    given = {
        "port": port,
        "hub_port": hub_port,
        "api_port": api_port,
        "gateway": gateway,
        "folder": str(folder),
        "token": token,
        "image": STOCK,
        "proxy": find_proxy(),
    }
    with (folder / "peer.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(HERE / "peer_config.py")],
            env={**os.environ, "SPAWN_BENCHMARK": json.dumps(given)},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Hub("DockerSpawner", f"http://127.0.0.1:{port}/", token, "admin")
    finally:
        process.terminate()
        process.wait(30)
        client.close()


async def wait_for(hub: Hub, session: aiohttp.ClientSession) -> None:
    for _ in range(600):
        try:
            async with session.get(
                f"{hub.url}hub/api/users/{hub.user}", headers=hub.headers
            ) as answer:
                if answer.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{hub.name} does not answer")


async def measure(hubs: list[Hub], rounds: int, burst: int) -> dict[str, Any]:
    found: dict[str, Any] = {h.name: {"one": [], "burst": []} for h in hubs}
    async with aiohttp.ClientSession() as session:
        for hub in hubs:
            await wait_for(hub, session)
            await hub.spawn(session, "warm")  # caches of the files, once for each
            await hub.stop(session, "warm")
        for number in range(rounds):
            for hub in hubs:
                server = f"one-{number}"
                steps = await hub.spawn(session, server)
                found[hub.name]["one"].append(steps["lab"])
                if hub.name == "ours":
                    found["phases"] = await hub.phases(session, server, steps["wall"])
                print(f"{hub.name:14} one    {steps['lab']:6.2f} s", flush=True)
                await hub.stop(session, server)
        for number in range(rounds):
            for hub in hubs:
                names = [f"burst-{number}-{i}" for i in range(burst)]
                began = time.monotonic()
                await asyncio.gather(*(hub.spawn(session, n) for n in names))
                seconds = time.monotonic() - began
                found[hub.name]["burst"].append(seconds)
                print(f"{hub.name:14} burst  {seconds:6.2f} s", flush=True)
                await asyncio.gather(*(hub.stop(session, n) for n in names))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    client = docker.from_env()
    build_stock(client)
    client.close()
    # Five sessions of one core each are more than a small machine has; both sides
    # share what there is, so our node offers more than it has for the burst.
    config = "c.HostAccelerator.cpu_overcommit = 8\n"
    with (
        tempfile.TemporaryDirectory() as folder,
        running("docker", config) as platform,
        peer(Path(folder)) as other,
    ):
        ours = Hub("ours", platform.url, platform.told["token"], "admin")
        found = asyncio.run(measure([ours, other], given.rounds, given.burst))
    print(f"\n{'':14} {'one':>8} {'burst':>8}   (medians, seconds)")
    medians = {}
    for name in ("ours", "DockerSpawner"):
        one, many = (statistics.median(found[name][k]) for k in ("one", "burst"))
        medians[name] = (one, many)
        print(f"{name:14} {one:8.2f} {many:8.2f}")
    ratios = [a / b for a, b in zip(*medians.values(), strict=True)]
    print(f"{'ratio':14} {ratios[0]:8.2f} {ratios[1]:8.2f}")
    print("phases of ours, seconds after the POST:", found["phases"])
    if given.json:
        given.json.write_text(json.dumps({**found, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
