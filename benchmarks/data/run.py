"""What moving data costs: one large upload, many at once, and long lists.

    python -m benchmarks.data.run [--mib 1024] [--rounds 3] [--folder DIR] [--json FILE]

One file goes over HTTP into the same folder in turns: written by a handler of tornado
as it comes (which is what keeps the loop waiting for the disk), by a storage host's
worker, and copied by ``cp``. All of them end with the file safe on the disk. Meanwhile
it is measured how long the event loop was kept from its work at most. Then twenty files
at once, and the first page of a folder with 100,000 entries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tornado import httpserver, netutil, web

from backendai_hub.storage import ops
from backendai_hub.storage.hosts import StorageHosts
from benchmarks.data.lag import Lag

MIB = 1 << 20
SCOPE = f"user-{uuid.UUID(int=1)}"
MANY = 20
ENTRIES = 100_000


@asynccontextmanager
async def watched():
    lag = Lag()
    task = asyncio.create_task(lag.watch())
    try:
        yield lag
    finally:
        task.cancel()


@web.stream_request_body
class PlainHandler(web.RequestHandler):
    """Writes what comes to a file, in the loop."""

    def prepare(self) -> None:
        self.request.connection.set_max_body_size(1 << 40)
        # A new file that replaces the old one at its end, as an upload does: to write
        # over blocks that a disk has already is something else.
        self.path = Path(self.settings["folder"], "plain.new")
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def data_received(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self.file, view) :]

    async def put(self, _name: str) -> None:
        await asyncio.to_thread(os.fsync, self.file)
        os.close(self.file)
        self.path.replace(self.path.with_suffix(""))


@web.stream_request_body
class HostHandler(web.RequestHandler):
    """Passes what comes on to a storage host."""

    async def prepare(self) -> None:
        self.request.connection.set_max_body_size(1 << 40)
        self.hosts: StorageHosts = self.settings["hosts"]
        self.place = self.settings["place"]
        self.upload_id = str(uuid.uuid4())
        begin = ops.BeginUpload(place=self.place, upload_id=self.upload_id)
        await self.hosts.call("local", begin)
        append = ops.AppendUpload(place=self.place, upload_id=self.upload_id, offset=0)
        self.body = await self.hosts.upload("local", append)

    async def data_received(self, chunk: bytes) -> None:
        await self.body.write(chunk)

    async def put(self, name: str) -> None:
        state = await self.body.finish()
        finish = ops.FinishUpload(
            place=self.place,
            upload_id=self.upload_id,
            path=name,
            length=state.offset,
            conflict="replace",
        )
        await self.hosts.call("local", finish)
        abandon = ops.AbandonUpload(place=self.place, upload_id=self.upload_id)
        await self.hosts.call("local", abandon)


async def put(port: int, path: str, source: Path) -> float:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sf", "-H", "Expect:", "-T", str(source)),
        f"http://127.0.0.1:{port}/{path}",
    )
    if await process.wait():
        raise RuntimeError(f"curl failed: {process.returncode}")
    return time.perf_counter() - began


async def copy(source: Path, target: Path) -> float:
    began = time.perf_counter()
    draft = target.with_suffix(".new")
    for argv in (["cp", str(source), str(draft)], ["sync", str(draft)]):
        process = await asyncio.create_subprocess_exec(*argv)
        assert not await process.wait()
    draft.replace(target)
    return time.perf_counter() - began


async def measure_large(port: int, folder: Path, mib: int, rounds: int) -> Any:
    source = folder / "source"
    with source.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))
    found: dict[str, list[float]] = {}
    lags: dict[str, float] = {}
    busy: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name in ("cp", "plain", "host"):
            os.sync()
            used = time.process_time()
            async with watched() as lag:
                if name == "cp":
                    took = await copy(source, folder / "copied")
                else:
                    took = await put(port, f"{name}/large", source)
            found.setdefault(name, []).append(mib / took)
            lags[name] = max(lags.get(name, 0.0), lag.worst)
            busy.setdefault(name, []).append((time.process_time() - used) * 1024 / mib)
    source.unlink()
    speeds = {n: round(statistics.median(v)) for n, v in found.items()}
    return {
        "mib_per_second": speeds,
        "host_to_plain": round(speeds["host"] / speeds["plain"], 2),
        "host_to_cp": round(speeds["host"] / speeds["cp"], 2),
        "longest_lag_ms": {n: round(1000 * v, 1) for n, v in lags.items()},
        "service_seconds_per_gib": {
            n: round(statistics.median(v), 2) for n, v in busy.items()
        },
    }


async def measure_many(port: int, folder: Path) -> Any:
    source = folder / "small"
    source.write_bytes(os.urandom(16 * MIB))
    # One shell starts them all: starting programs takes the loop's time, too.
    one = (
        "curl -sf -H Expect: -w '%{time_total}\\n' -T "
        f"{source} http://127.0.0.1:{port}/host/many"
    )
    script = "".join(f"{one}{number} & " for number in range(MANY)) + "wait"
    shell = await asyncio.create_subprocess_exec(
        "sh", "-c", script, stdout=subprocess.PIPE
    )
    async with watched() as lag:
        told, _ = await shell.communicate()
    took = [float(line) for line in told.split()]
    assert len(took) == MANY
    return {
        "first_seconds": round(min(took), 2),
        "last_seconds": round(max(took), 2),
        "longest_lag_ms": round(1000 * lag.worst, 1),
    }


async def measure_list(hosts: StorageHosts, place: ops.Place, top: Path) -> Any:
    for number in range(ENTRIES):
        (top / "long" / f"entry-{number:06}").touch()
    found: dict[str, list[float]] = {}
    for sort in ("name", "modified"):
        for _ in range(7):
            began = time.perf_counter()
            listing = ops.ListEntries(place=place, path="long", sort=sort)
            page = await hosts.call("local", listing)
            found.setdefault(sort, []).append(time.perf_counter() - began)
            assert page.total == ENTRIES
    return {
        f"first_page_by_{sort}_ms": round(1000 * statistics.median(took), 1)
        for sort, took in found.items()
    }


async def measure(folder: Path, mib: int, rounds: int) -> dict[str, Any]:
    hosts = StorageHosts({"local": {"path": str(folder / "folders")}})
    hosts.start()
    while hosts.health()["local"].state == "starting":
        await asyncio.sleep(0.01)
    place = ops.Place(scope=SCOPE, folder_id=str(uuid.uuid4()))
    await hosts.call("local", ops.MakeScope(scope=SCOPE))
    await hosts.call("local", ops.MakeFolder(place=place))
    await hosts.call("local", ops.MakeDirectory(place=place, path="long"))
    (long,) = (folder / "folders").glob("*/*/*/*/long")
    application = web.Application(
        [("/plain/(.*)", PlainHandler), ("/host/(.*)", HostHandler)],
        folder=str(folder),
        hosts=hosts,
        place=place,
    )
    server = httpserver.HTTPServer(application, max_body_size=1 << 40)
    sockets = netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    port = sockets[0].getsockname()[1]
    try:
        return {
            "large": await measure_large(port, folder, mib, rounds),
            "many": await measure_many(port, folder),
            "list": await measure_list(hosts, place, long.parent),
            "load": os.getloadavg()[0],
        }
    finally:
        server.stop()
        await server.close_all_connections()
        await hosts.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bai-data-", dir=given.folder))
    try:
        found = asyncio.run(measure(folder, given.mib, given.rounds))
    finally:
        shutil.rmtree(folder)
    disk = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    found["filesystem"] = disk.stdout.strip()
    text = json.dumps(found, indent=2)
    print(text)
    if given.json:
        given.json.write_text(text)


if __name__ == "__main__":
    main()
