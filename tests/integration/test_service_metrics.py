"""Operators' instruments read how the service does, where that is configured."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from tornado import netutil

from backendai_hub.handlers.metrics import build_metrics, make_watch
from tests.harness import Stack, free_port


async def test_the_service_tells_prometheus_how_long_its_loop_is_busy(tmp_path: Path):
    stack, port = Stack(tmp_path, None), free_port(set())
    try:
        await stack.start_service(f"--HubService.metrics_port={port}")
        url = f"http://127.0.0.1:{port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/plain"
            text = await answer.text()
    finally:
        stack.stop()
    said = dict(line.split() for line in text.splitlines() if line[0] != "#")
    assert float(said["backendai_hub_loop_turn_seconds_count"]) > 0
    assert float(said["backendai_hub_loop_longest_turn_seconds"]) > 0
    assert float(said["backendai_hub_loop_longest_work_seconds"]) > 0


@pytest.mark.parametrize(
    "more", [b"Content-Length: 50000000\r\n\r\n", b"X: " + b"x" * 10_000]
)
async def test_who_sends_much_to_that_address_is_sent_away_at_once(more: bytes):
    """Strangers may reach it: nothing of theirs is kept, nor waited for."""
    server = build_metrics(make_watch())
    (socket,) = netutil.bind_sockets(0, "127.0.0.1")
    server.add_socket(socket)
    try:
        port = socket.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"POST /metrics HTTP/1.1\r\nHost: here\r\n" + more)
            async with asyncio.timeout(60):
                answer = await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()
    finally:
        server.stop()
        await server.close_all_connections()
    assert answer in {b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"}
