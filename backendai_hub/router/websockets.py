"""WebSockets, passed on as bytes once both sides have agreed to speak it.

Nothing is unpacked, so subprotocols, compression, pings, fragments, close codes and
messages of any size are the two ends' own affair. Each direction stops reading when
the other side does not keep up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.http import StreamWriter
from aiohttp.web import BaseRequest

_HIGH_WATER: Final = 256 * 1024


class _Direction:
    """Takes bytes from one transport and writes them to the other.

    It has the two methods aiohttp calls on whatever reads an upgraded connection.
    """

    def __init__(
        self,
        source: asyncio.Transport,
        sink: asyncio.Transport,
        writer: StreamWriter,
        *,
        touch: Callable[[], None],
    ) -> None:
        self._source = source
        self._sink = sink
        self._writer = writer
        self._touch = touch
        self._waiting: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._touch()
        if self._sink.is_closing():
            return False, b""
        self._sink.write(data)
        if (
            self._waiting is None
            and self._sink.get_write_buffer_size() > _HIGH_WATER
            and not self._source.is_closing()
        ):
            self._source.pause_reading()
            self._waiting = asyncio.create_task(self._resume())
        return False, b""

    def feed_eof(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    async def _resume(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            self.feed_eof()
        else:
            self._waiting = None
            if not self._source.is_closing():
                self._source.resume_reading()


class Splices:
    """The WebSockets that are open through the router."""

    def __init__(self) -> None:
        self._open: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def close_all(self) -> None:
        """Hang up on everybody; they will come again to the router's successor."""
        for ended in self._open:
            if not ended.done():
                ended.set_result(None)

    async def run(
        self,
        request: BaseRequest,
        upstream: aiohttp.ClientResponse,
        *,
        touch: Callable[[], None],
    ) -> None:
        """Pass bytes both ways until either side ends."""
        loop = asyncio.get_running_loop()
        connection = upstream.connection
        client = request.transport
        if connection is None or connection.transport is None or client is None:
            return
        server = connection.transport
        inward = connection.protocol
        assert inward is not None
        assert isinstance(client, asyncio.Transport)
        up = _Direction(client, server, StreamWriter(inward, loop), touch=touch)
        down = _Direction(
            server,
            client,
            StreamWriter(request.protocol, loop),
            touch=lambda: None,
        )
        stopped: asyncio.Future[None] = loop.create_future()
        self._open.add(stopped)
        try:
            request.protocol.set_parser(up)  # type: ignore[arg-type]
            inward.set_parser(down, None)
            await asyncio.wait(
                (up.ended, down.ended, stopped), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._open.discard(stopped)
            up.stop()
            down.stop()
            # A closing transport still sends what it holds, such as the last frame.
            server.close()
            client.close()
