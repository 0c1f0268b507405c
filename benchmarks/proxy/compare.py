"""Compare the router with npm's configurable-http-proxy, in one run on one machine.

    python benchmarks/proxy/compare.py [--seconds 5] [--connections 32]

Every proxy stands before the same server and is asked by the same client, one after
the other, in turns. Compare processor time per request first: it changes little with
what else the machine does. Requests per second depend on the client, too, which takes
about as much of the processor as the proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import WSMsgType, web

CACHED_CHP = (
    Path.home() / ".cache/backendai-tests/chp/node_modules/.bin/configurable-http-proxy"
)
SMALL = b"x" * 200
LARGE = b"x" * 20_000_000
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Figures:
    """What was measured of one proxy, a value per turn."""

    rate: list[float] = field(default_factory=list)
    request_cpu: list[float] = field(default_factory=list)
    message_cpu: list[float] = field(default_factory=list)
    download_cpu: list[float] = field(default_factory=list)
    resident: int = 0


def cpu_seconds(pid: int) -> float:
    """Return the processor time that process *pid* has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    if request.path == "/large":
        return web.Response(body=LARGE)
    if request.path == "/echo":
        channel = web.WebSocketResponse()
        await channel.prepare(request)
        async for message in channel:
            await channel.send_str(message.data)
        return channel
    return web.Response(body=SMALL)


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def proxy(command: list[str], target: str) -> AsyncIterator[tuple[str, int]]:
    port, api_port = free_port(), free_port()
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--ip", "127.0.0.1", "--port", str(port)),
        *("--api-ip", "127.0.0.1", "--api-port", str(api_port)),
        *("--default-target", target, "--log-level", "error"),
        env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": "benchmark"},
    )
    try:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        await process.wait()


async def ask(url: str, connections: int, until: float) -> int:
    """Ask over raw connections (the client should be cheap); return how often."""
    port = int(url.rpartition(":")[2])
    request = f"GET /small HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()

    async def one() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.monotonic() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if b"chunked" in head.lower() or b" 200 " not in head[:16]:
                message = f"unexpected response: {head!r}"
                raise RuntimeError(message)
            await reader.readexactly(len(SMALL))
            count += 1
        writer.close()
        return count

    return sum(await asyncio.gather(*(one() for _ in range(connections))))


async def turn(url: str, pid: int, figures: Figures, options) -> None:
    await ask(url, 4, time.monotonic() + 0.5)
    before, began = cpu_seconds(pid), time.monotonic()
    count = await ask(url, options.connections, began + options.seconds)
    figures.rate.append(count / (time.monotonic() - began))
    figures.request_cpu.append((cpu_seconds(pid) - before) / count * 1000)
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{url}/echo") as channel:
            before, messages = cpu_seconds(pid), 3000
            for _ in range(messages):
                await channel.send_str("hello")
                assert (await channel.receive()).type is WSMsgType.TEXT
            figures.message_cpu.append((cpu_seconds(pid) - before) / messages * 1000)
        before = cpu_seconds(pid)
        for _ in range(4):
            async with session.get(f"{url}/large") as response:
                assert len(await response.read()) == len(LARGE)
        figures.download_cpu.append(cpu_seconds(pid) - before)
    figures.resident = max(figures.resident, resident_mib(pid))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    commands = {"backendai-router": [sys.executable, "-m", "backendai_hub.router"]}
    found = shutil.which("configurable-http-proxy") or (
        str(CACHED_CHP) if CACHED_CHP.exists() else ""
    )
    if found:
        commands["configurable-http-proxy"] = [found]
    results = {name: Figures() for name in commands}
    async with contextlib.AsyncExitStack() as stack:
        target = await stack.enter_async_context(upstream())
        running = {
            name: await stack.enter_async_context(proxy(command, target))
            for name, command in commands.items()
        }
        for _ in range(options.turns):
            for name, (url, pid) in running.items():
                await turn(url, pid, results[name], options)
    for name, figures in results.items():
        print(
            json.dumps(
                {
                    "proxy": name,
                    "requests_per_second": round(statistics.median(figures.rate)),
                    "cpu_ms_per_request": _median(figures.request_cpu),
                    "cpu_ms_per_websocket_echo": _median(figures.message_cpu),
                    "cpu_s_per_80_mb": _median(figures.download_cpu),
                    "resident_mib": figures.resident,
                }
            )
        )


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 3)


if __name__ == "__main__":
    asyncio.run(main())
