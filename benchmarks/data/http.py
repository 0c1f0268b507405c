"""How fast do files come in and lists go out, beside nginx doing the same?

    python -m benchmarks.data.http [--rounds 3] [--megabytes 1024] [--json FILE]

One file is sent by the same client to nginx (``PUT``, its DAV module) and to the
service (one part of the tus protocol), in turns of one run. nginx leaves the content to
the operating system; the service has it on the disk before it says so. So nginx is
measured as it is, and again with the time it takes to make its file safe as well.
Meanwhile the service tells how long its event loop was ever busy at a stretch, and how
much of one it has computed: in the rest others had the processors. It is asked for its
version every 20 ms, too, and the longest answer told, to which this program and the
machine have added; and a process that does nothing else looks how late its own loop is,
which is the machine's doing alone. Then twenty uploads at once, and the first page of a
folder with 100,000 files: as it is read when somebody has just changed it, and as it is
told again when nobody has; and of one with so few files that all else is measured.

nginx has to be installed; everything stays on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from backendai_hub.safefs.remembered import SETTLED
from benchmarks.data.lag import idle_beside
from tests.admin import KeyAPI, basic, make_administrator
from tests.harness import Stack, free_port

PIECE = 1 << 20
MANY = 20
ENTRIES = 100_000
PAGE = 200
_NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {folder}/temp;
  server {{
    listen 127.0.0.1:{port}; root {folder}/root;
    location / {{ dav_methods PUT; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[int]:
    """Run nginx with its DAV module on files in *folder*."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        raise SystemExit("nginx is not installed: there is nothing to compare with")
    port = free_port(set())
    for name in ("root", "temp"):
        (folder / name).mkdir()
    config = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""
    config.write_text(user + _NGINX.format(folder=folder, port=port))
    command = [program, "-p", str(folder), "-c", str(config)]
    process = subprocess.Popen(command)
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise SystemExit("nginx does not answer")


def send(method: str, url: str, source: Path, headers: dict[str, str]) -> float:
    """Send a file as the body of one request, as fast as it is taken; in seconds."""
    place = urlsplit(url)
    size = source.stat().st_size
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    start = (
        f"{method} {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Content-Length: {size}\r\nConnection: close\r\n{head}\r\n"
    )
    began = time.perf_counter()
    with (
        socket.create_connection((place.hostname or "", place.port or 80), 600) as to,
        source.open("rb") as file,
    ):
        to.sendall(start.encode())
        to.sendfile(file)
        answer = to.recv(65536)
    took = time.perf_counter() - began
    if not answer.split(b" ")[1].startswith(b"2"):
        raise RuntimeError(answer.decode("utf-8", "replace"))
    return took


class Turns(NamedTuple):
    """What the service says of its event loop."""

    over_50_ms: int
    longest_ms: float
    """Of the last minute."""
    work_ms: float
    """The most that it computed in one turn; in the rest of it others did."""


class Bench:
    """A service with a folder, and how to send something there."""

    def __init__(
        self, stack: Stack, api: KeyAPI, folder: str, root: Path, metrics_port: int
    ) -> None:
        self.stack = stack
        self.metrics_port = metrics_port
        self.api = api
        self.folder = folder
        self.root = root
        self.headers = {"Authorization": basic(api.access_key, api.secret)}

    @property
    def place(self) -> Path:
        digits = uuid.UUID(self.folder).hex
        (found,) = self.root.glob(f"*/{digits[:2]}/{digits[2:4]}/{digits[4:]}")
        return found

    async def begin(self, name: str, length: int) -> str:
        text = base64.b64encode(name.encode()).decode()
        status, said, headers = await self.api.ask(
            "POST",
            f"api/folders/{self.folder}/uploads",
            headers={
                "Tus-Resumable": "1.0.0",
                "Upload-Length": str(length),
                "Upload-Metadata": f"filename {text}",
            },
        )
        if status != 201:
            raise RuntimeError(said)
        root = self.stack.url.removesuffix(self.stack.prefix)
        return f"{root}{headers['Location']}"

    def send(self, url: str, source: Path) -> float:
        return send(
            "PATCH",
            url,
            source,
            {
                **self.headers,
                "Tus-Resumable": "1.0.0",
                "Upload-Offset": "0",
                "Content-Type": "application/offset+octet-stream",
            },
        )

    async def read_turns(self) -> Turns:
        """Read how long the service's event loop was busy."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            lines = [line.split() for line in (await answer.text()).splitlines()]
        found = {line[0]: float(line[1]) for line in lines if line[0] != "#"}
        total = found["backendai_hub_loop_turn_seconds_count"]
        short = found['backendai_hub_loop_turn_seconds_bucket{le="0.05"}']
        longest = found["backendai_hub_loop_longest_turn_seconds"]
        work = found["backendai_hub_loop_longest_work_seconds"]
        return Turns(int(total - short), 1000 * longest, 1000 * work)

    async def longest_answer(self, ended: asyncio.Event) -> list[float]:
        """Ask for the version all the time; return how long the answers took."""
        took = []
        async with aiohttp.ClientSession() as session:
            while not ended.is_set():
                began = time.perf_counter()
                async with session.get(f"{self.stack.url}api/") as answer:
                    await answer.read()
                took.append(time.perf_counter() - began)
                await asyncio.sleep(0.02)
        return took


async def measure_one(
    bench: Bench, port: int, folder: Path, source: Path
) -> dict[str, float]:
    """Send one file to each, in turn."""
    size = source.stat().st_size / 1e6
    target = folder / "root" / "file"
    settle()
    plain = await asyncio.to_thread(
        send, "PUT", f"http://127.0.0.1:{port}/file", source, {}
    )
    began = time.perf_counter()
    _make_safe(target)
    safe = plain + time.perf_counter() - began
    target.unlink()
    settle()
    url = await bench.begin(f"{uuid.uuid4()}", source.stat().st_size)
    before = await bench.read_turns()
    ended = asyncio.Event()
    with idle_beside() as idle:
        asking = asyncio.create_task(bench.longest_answer(ended))
        ours = await asyncio.to_thread(bench.send, url, source)
        ended.set()
        answers = await asking
    after = await bench.read_turns()
    for file in bench.place.iterdir():
        file.unlink()
    return {
        "nginx": size / plain,
        "nginx, safe": size / safe,
        "service": size / ours,
        "ratio": plain / ours,
        "ratio, safe": safe / ours,
        "longest turn ms": after.longest_ms,
        "longest work ms": after.work_ms,
        "turns over 50 ms": after.over_50_ms - before.over_50_ms,
        "idle process late ms": idle.worst,
        "longest answer ms": 1000 * max(answers),
        "median answer ms": 1000 * statistics.median(answers),
    }


def _make_safe(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle() -> None:
    """Let the disk be done with what came before."""
    os.sync()


async def measure_many(bench: Bench, source: Path) -> dict[str, float]:
    """Send twenty files at once, and tell how differently they fared."""
    size = source.stat().st_size
    urls = [await bench.begin(f"many-{n}", size) for n in range(MANY)]
    settle()
    loop = asyncio.get_running_loop()
    # The loop's own pool has fewer threads: they would send one after another.
    with ThreadPoolExecutor(MANY) as pool:
        began = time.perf_counter()
        took = await asyncio.gather(
            *(loop.run_in_executor(pool, bench.send, url, source) for url in urls)
        )
        all_of_them = time.perf_counter() - began
    rates = [1 / t for t in took]
    jain = sum(rates) ** 2 / (MANY * sum(r * r for r in rates))
    return {
        "together MB/s": MANY * size / 1e6 / all_of_them,
        "slowest to fastest": max(took) / min(took),
        "fairness (Jain)": jain,
    }


async def measure_list(bench: Bench) -> dict[str, float]:
    """Ask for the first page of a folder with very many files, and of one with few."""
    many = _fill_folder(bench, "many", ENTRIES)
    _fill_folder(bench, "few", PAGE)
    read, few = [], []
    for _ in range(15):
        os.utime(many)
        read.append(await _time_page(bench, "many"))
        few.append(await _time_page(bench, "few"))
    await asyncio.sleep(SETTLED / 1e9)
    await _time_page(bench, "many")
    again = [await _time_page(bench, "many") for _ in range(15)]
    return {
        "first page ms": statistics.median(read),
        "longest ms": max(read),
        "told again ms": statistics.median(again),
        "of few files ms": statistics.median(few),
    }


def _fill_folder(bench: Bench, name: str, count: int) -> Path:
    place = bench.place / name
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, bench.place.stat().st_uid, bench.place.stat().st_gid)
    for number in range(count):
        os.close(os.open(place / f"file-{number:06}.txt", os.O_CREAT | os.O_WRONLY))
    return place


async def _time_page(bench: Bench, path: str) -> float:
    """Return how many milliseconds a page took."""
    began = time.perf_counter()
    page = await bench.api.get(
        f"api/folders/{bench.folder}/entries?path={path}&limit={PAGE}"
    )
    took = time.perf_counter() - began
    assert len(page["items"]) == PAGE, page
    return 1000 * took


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    stack = Stack(folder / "platform", None)
    metrics_port = free_port(set())
    stack.settings = [
        f"--HubService.local_folders={folder}/folders",
        f"--HubService.metrics_port={metrics_port}",
    ]
    try:
        await stack.start_service()
        key = await make_administrator(stack)
        assert key.secret is not None
        async with KeyAPI(stack.url, key.name, key.secret) as api:
            everything = {"local": ["*"]}
            await api.change("domains/default", allowed_vfolder_hosts=everything)
            made = await api.make("folders", name="measured")
            bench = Bench(stack, api, made["id"], folder / "folders", metrics_port)
            return await measure(bench, options, folder)
    finally:
        stack.stop()


async def measure(
    bench: Bench, options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    source, small = folder / "source", folder / "small"
    _fill(source, options.megabytes)
    _fill(small, max(1, options.megabytes // MANY))
    rounds = []
    (folder / "nginx").mkdir()
    with nginx(folder / "nginx") as port:
        for _ in range(options.rounds):
            found = await measure_one(bench, port, folder / "nginx", source)
            rounds.append(found)
            print("  ".join(f"{k} {v:.2f}" for k, v in found.items()), flush=True)
    medians = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
    many = await measure_many(bench, small)
    return {"one": medians, "many": many, "list": await measure_list(bench)}


def _fill(path: Path, megabytes: int) -> None:
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(PIECE))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backendai-", dir="/var/tmp") as folder:
        found = asyncio.run(run(options, Path(folder)))
    for title, figures in found.items():
        print(f"{title}: " + "  ".join(f"{k} {v:.2f}" for k, v in figures.items()))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
