"""Bodies of requests that go from their socket into a pipe, past everybody."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tornado import httpserver, netutil, web

from backendai_hub.core.errors import HubError, InvalidRequestError
from backendai_hub.handlers.diversion import LEAST, Diversion, Moved, divert
from backendai_hub.storage.pipe import CutError, Pipe, ReaderLeftError

MIB = 1 << 20


class Sink:
    """Reads a pipe to its end, in a thread."""

    def __init__(self, pipe: Pipe) -> None:
        self.content = b""
        self._reader = os.dup(pipe.reader)
        pipe.hand_on()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while part := os.read(self._reader, MIB):
            self.content += part
        os.close(self._reader)

    async def end(self) -> bytes:
        await asyncio.to_thread(self._thread.join)
        return self.content


@web.stream_request_body
class Taking(web.RequestHandler):
    """Takes a body into a pipe, by whichever way it comes."""

    async def prepare(self) -> None:
        self.request.connection.set_max_body_size(1 << 30)
        self.pipe = Pipe(10)
        self.sink = Sink(self.pipe)
        self.pieces: list[Any] = []
        self.refusal: HubError | None = None
        self.settings["taken"].append(self)
        self.diversion: Diversion | None = divert(self.request, self.take, self.refuse)

    async def take(self, source: int, most: int) -> int | None:
        allowed: int = self.settings["allowed"]
        if sum(map(len, self.pieces)) >= allowed:
            raise InvalidRequestError("that is enough")
        return await self.pipe.take(source, most)

    def refuse(self, error: HubError) -> None:
        self.refusal = error

    async def data_received(self, chunk: bytes | Moved) -> None:
        self.pieces.append(chunk)
        if not isinstance(chunk, Moved) and self.refusal is None:
            await self.pipe.write(chunk)

    async def put(self) -> None:
        if self.diversion is not None:
            self.diversion.end()
        self.pipe.end()
        content = await self.sink.end()
        self.write(f"{len(content)} {self.refusal}")

    def on_connection_close(self) -> None:
        self.pipe.end()


class Server:
    """What people send to, and what became of it."""

    def __init__(self, **settings: Any) -> None:
        self.taken: list[Taking] = []
        self.application = web.Application(
            [("/", Taking)], **{"allowed": 1 << 40, "taken": self.taken, **settings}
        )
        self.server = httpserver.HTTPServer(self.application, chunk_size=MIB)
        (sock,) = netutil.bind_sockets(0, "127.0.0.1")
        self.server.add_socket(sock)
        self.port = sock.getsockname()[1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def close(self) -> None:
        self.server.stop()
        await self.server.close_all_connections()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    yield server
    await server.close()


def head(length: int) -> bytes:
    return f"PUT / HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n".encode()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return the body of the next answer on a connection that stays open."""
    async with asyncio.timeout(30):
        said = await reader.readuntil(b"\r\n\r\n")
        (length,) = (
            int(line.split(b":")[1])
            for line in said.lower().splitlines()
            if line.startswith(b"content-length")
        )
        return await reader.readexactly(length)


async def test_a_body_goes_on_whole_and_most_of_it_is_read_by_nobody(server: Server):
    content = os.urandom(40 * MIB)
    reader, writer = await server.connect()
    writer.write(head(len(content)) + content)
    assert await answer(reader) == f"{len(content)} None".encode()
    (taken,) = server.taken
    assert taken.sink.content == content
    moved = sum(len(p) for p in taken.pieces if isinstance(p, Moved))
    assert moved > len(content) * 0.9
    writer.close()


async def test_requests_follow_each_other_on_a_connection(server: Server):
    reader, writer = await server.connect()
    for size in (3 * MIB, 0, 10, LEAST - 1, LEAST + 1, 2 * MIB):
        content = os.urandom(size)
        writer.write(head(size) + content)
        assert await answer(reader) == f"{size} None".encode()
        assert server.taken[-1].sink.content == content
    # Also if the next one has come already while a body is taken.
    first, second = os.urandom(2 * MIB), os.urandom(5)
    writer.write(head(len(first)) + first + head(5) + second)
    await answer(reader)
    await answer(reader)
    assert [t.sink.content for t in server.taken[-2:]] == [first, second]
    writer.close()


async def test_a_body_in_chunks_goes_on_whole(server: Server):
    content = [os.urandom(size) for size in (5, 3 * MIB, 1)]
    reader, writer = await server.connect()
    writer.write(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for part in (*content, b""):
        writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
    await answer(reader)
    assert server.taken[-1].sink.content == b"".join(content)
    writer.close()


async def test_the_few_bytes_of_somebody_slow_are_taken_when_that_is_asked(
    server: Server,
):
    reader, writer = await server.connect()
    writer.write(head(20))
    while not server.taken:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    (taken,) = server.taken
    writer.write(b"x" * 10)
    assert taken.diversion is not None
    taken.diversion.take_anything()
    async with asyncio.timeout(10):
        while sum(map(len, taken.pieces)) < 10:
            await asyncio.sleep(0.01)
    writer.write(b"y" * 10)
    assert await answer(reader) == b"20 None"
    writer.close()


async def test_the_rest_of_what_is_refused_is_read_and_the_reason_told():
    server = Server(allowed=2 * MIB)
    content = os.urandom(20 * MIB)
    reader, writer = await server.connect()
    writer.write(head(len(content)) + content)
    said = (await answer(reader)).decode()
    assert said.endswith("that is enough")
    assert sum(map(len, server.taken[0].pieces)) == len(content)
    writer.close()
    await server.close()


async def test_what_came_before_a_connection_broke_is_kept(server: Server):
    content = os.urandom(5 * MIB)
    _, writer = await server.connect()
    writer.write(head(100 * MIB) + content)
    await writer.drain()
    writer.close()
    async with asyncio.timeout(30):
        while not server.taken:
            await asyncio.sleep(0.01)
        assert await server.taken[0].sink.end() == content


async def test_whoever_waits_for_a_pipe_is_told_that_it_was_cut_off():
    pipe = Pipe(10)
    filling = asyncio.create_task(pipe.write(bytes(9 * MIB)))
    while not pipe.is_full:
        await asyncio.sleep(0)
    pipe.end()
    with pytest.raises(CutError):
        await filling
    assert not pipe.is_full
    with pytest.raises(CutError):
        await pipe.write(b"more")


async def test_a_pipe_says_that_nobody_reads_it_or_not_any_more():
    pipe = Pipe(0.05)
    with pytest.raises(TimeoutError):
        await pipe.write(bytes(9 * MIB))
    pipe.hand_on()
    with pytest.raises(ReaderLeftError):
        await pipe.write(b"x")
    pipe.end()
