"""Asks one server over many connections and writes down how long each answer took.

    python -m benchmarks.api.load < job.json > figures.json

A process of its own, and cheap: requests are made before the clock starts, answers
are counted by their ``Content-Length`` and looked into only when the status is not
the one expected. What it used of the processor is part of the answer, so that nobody
has to believe that it was not what limited the rate.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

_END = b"\r\n\r\n"


def build_requests(job: dict[str, Any]) -> list[bytes]:
    """Write every request out; the connections take them in turns."""
    made = []
    for asked in job["requests"]:
        body = asked.get("body", "").encode()
        headers = {
            "Host": f"127.0.0.1:{job['port']}",
            "Accept": "application/json",
            **asked["headers"],
        }
        if body:
            headers["Content-Length"] = str(len(body))
            headers["Content-Type"] = "application/json"
        lines = [f"{asked['method']} {asked['path']} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        made.append("\r\n".join(lines).encode() + _END + body)
    return made


class Connection(asyncio.Protocol):
    """One keep-alive connection that asks again as soon as it has an answer."""

    def __init__(self, requests: Iterator[bytes], job: dict[str, Any]) -> None:
        self._requests = requests
        self._good = str(job["status"]).encode()
        self.seconds: list[tuple[float, float]] = []
        self.refused: list[str] = []
        self.ended = asyncio.get_running_loop().create_future()
        self._until = 0.0
        self._sent = 0.0
        self._missing = 0
        self._head = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def begin(self, until: float) -> None:
        self._until = until
        self._ask()

    def _ask(self) -> None:
        assert self._transport is not None
        wanted = next(self._requests, None)
        now = time.perf_counter()
        if wanted is None or now >= self._until:
            self._transport.close()
            self.ended.set_result(None)
            return
        self._sent = now
        self._transport.write(wanted)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._head += data
            head, found, rest = self._head.partition(_END)
            if not found:
                return
            self._read_head(head, rest)
        if self._missing <= 0:
            now = time.perf_counter()
            self.seconds.append((now, now - self._sent))
            self._head = b""
            self._missing = 0
            self._ask()

    def _read_head(self, head: bytes, rest: bytes) -> None:
        status = head[9:12]
        if status != self._good:
            self.refused.append(
                f"{status.decode()} {rest[:300].decode(errors='replace')}"
            )
        length = head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0]
        self._missing = int(length) - len(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the server hung up"))


async def ask(job: dict[str, Any], requests: Iterator[bytes]) -> dict[str, Any]:
    """Ask for ``seconds`` after ``warm`` seconds that do not count."""
    loop = asyncio.get_running_loop()
    connections = []
    for _ in range(job["connections"]):
        _, connection = await loop.create_connection(
            lambda: Connection(requests, job), "127.0.0.1", job["port"]
        )
        connections.append(connection)
    began = time.perf_counter() + job["warm"]
    until = began + job["seconds"]
    before = [0.0]
    loop.call_at(
        loop.time() + job["warm"], lambda: before.__setitem__(0, time.process_time())
    )
    for connection in connections:
        connection.begin(until)
    await asyncio.gather(*(c.ended for c in connections))
    used = time.process_time() - before[0]
    took = sorted(
        seconds
        for c in connections
        for ended, seconds in c.seconds
        if began <= ended <= until
    )
    refused = [words for c in connections for words in c.refused]
    return {
        "answers": len(took),
        "with_warming": sum(len(c.seconds) for c in connections),
        "refused": len(refused),
        "refusal": refused[0] if refused else "",
        "rate": round(len(took) / job["seconds"], 1),
        "p50": _quantile(took, 0.50),
        "p99": _quantile(took, 0.99),
        "generator": round(used / job["seconds"], 3),
        "generator_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def _quantile(ordered: list[float], share: float) -> float:
    """Return a quantile in milliseconds; the list is sorted."""
    if not ordered:
        return 0.0
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


def _endless(requests: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from requests


def main() -> None:
    job = json.load(sys.stdin)
    requests = build_requests(job)
    gc.disable()
    source = iter(requests) if job["once"] else _endless(requests)
    print(json.dumps(asyncio.run(ask(job, source))))


if __name__ == "__main__":
    main()
