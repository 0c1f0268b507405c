"""Content of requests that goes on without being read: from a socket into a pipe.

tornado reads a body piece by piece and hands each on. Here the kernel moves what has
come over the connection, and tornado is given something that only says how much that
was, so that it still counts what belongs to the request, as it does by itself.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from tornado import httputil, iostream

from backendai_hub.core.errors import HubError

Take = Callable[[int, int], Awaitable[int | None]]
"""Moves up to so many bytes from a socket; see :meth:`.pipe.Pipe.take`."""


LEAST: Final = 256 << 10
"""So much is waited for at first: each time costs the same, however little it is."""


class Moved:
    """A piece of a body that went another way."""

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count


class Diversion:
    """Takes what comes over a connection, until its end; see :func:`divert`."""

    def __init__(
        self,
        stream: iostream.IOStream,
        take: Take,
        on_refusal: Callable[[HubError], None],
    ) -> None:
        # Whether it looks at its socket, and what it has read already, are its own
        # affairs; nobody else may look at the socket while we do.
        self._stream = cast("Any", stream)
        self._read = stream.read_bytes
        self._take = take
        self._on_refusal = on_refusal
        self._least = LEAST
        self._awaited = 1
        self._stream.read_bytes = self._read_bytes

    def end(self) -> None:
        """Let the stream read by itself again."""
        if self._stream is not None:
            self._await_bytes(1)
            del self._stream.read_bytes
            self._stream = None

    def take_anything(self) -> None:
        """Take also the few bytes that have come from somebody slow."""
        self._least = 1
        self._await_bytes(1)

    def _await_bytes(self, least: int) -> None:
        """Be told of what comes only when it is so much, or when it ends."""
        if least != self._awaited and not self._stream.closed():
            self._awaited = least
            self._stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    async def _read_bytes(self, num_bytes: int, partial: bool = False) -> bytes:  # noqa: FBT001, FBT002 - its signature
        stream = self._stream
        if not partial or stream.closed():
            return await self._read(num_bytes, partial)
        self._look_away()
        if stream._read_buffer_size:  # noqa: SLF001 - nothing else tells it
            piece = await self._read(num_bytes, partial)
            self._look_away()
            return piece
        self._await_bytes(min(self._least, num_bytes))
        try:
            moved = await self._take(stream.socket.fileno(), num_bytes)
        except HubError as error:
            self.end()
            self._on_refusal(error)
            return await self._read(num_bytes, partial)
        except OSError as error:
            stream.close(exc_info=error)
            raise iostream.StreamClosedError(error) from error
        if moved is None:
            self.end()
            return await self._read(num_bytes, partial)
        if not moved:
            stream.close()
            raise iostream.StreamClosedError
        if moved >= LEAST:
            self._least = LEAST
        return cast("bytes", Moved(moved))

    def _look_away(self) -> None:
        """Have the stream look at its socket no more; it does when it needs to."""
        stream = self._stream
        if stream is not None and stream._state is not None:  # noqa: SLF001
            stream.io_loop.remove_handler(stream.fileno())
            stream._state = None  # noqa: SLF001 - as before it looked the first time


def divert(
    request: httputil.HTTPServerRequest,
    take: Take,
    on_refusal: Callable[[HubError], None],
) -> Diversion | None:
    """Move the body of a request, from now on, if that is possible.

    Where it is not, as with TLS or with a body in chunks, all of it is read as usual.
    *on_refusal* is told why *take* takes nothing more; the rest is read then.
    """
    stream = getattr(request.connection, "stream", None)
    if type(stream) is not iostream.IOStream or "Transfer-Encoding" in request.headers:
        return None
    return Diversion(stream, take, on_refusal)
