"""A worker's side of one connection: blocking, used by one thread."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any, Final, Literal

from backendai_hub.core.errors import HubError
from backendai_hub.storage import wire
from backendai_hub.storage.ops import Operation, Progress

PAUSE_SECONDS: Final = 0.2
"""How often progress is told at most."""


class ServiceLeftError(Exception):
    """The service has closed the connection: nobody waits for this any more."""


class Channel:
    """One request, and everything that is said about it."""

    def __init__(
        self, sock: socket.socket, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sock = sock
        self._clock = clock
        self._told_at = clock()
        self._pipe: int | None = None
        sock.setblocking(True)  # noqa: FBT003 - the standard library's signature
        wire.widen(sock)

    def request(self) -> Operation[Any]:
        """Read what is asked."""
        try:
            start, pipes, _, _ = socket.recv_fds(self._sock, 1, 1)
        except ConnectionError:
            raise ServiceLeftError from None
        self._pipe = pipes[0] if pipes else None
        rest = self._receive(wire.LENGTH.size - len(start))
        (length,) = wire.LENGTH.unpack(start + rest)
        if length > wire.LARGEST_FRAME:
            raise ServiceLeftError
        return wire.read_request(bytes(self._receive(length)))

    def go(self) -> None:
        """Ask for the stream."""
        self._send(wire.frame(wire.Go()))

    def answer(self, value: Any) -> None:
        """Say that it is done."""
        self._send(wire.frame(wire.answer_of(value)))

    def refuse(self, error: HubError) -> None:
        """Say that it was not done, and let the service stop sending first."""
        self._send(wire.frame(wire.refusal_of(error)))

    def progress(
        self,
        done: int,
        total: int | None = None,
        unit: Literal["bytes", "entries"] = "entries",
    ) -> None:
        """Say how far it is, now and then; also notices that nobody listens."""
        now = self._clock()
        if now - self._told_at < PAUSE_SECONDS:
            return
        self._told_at = now
        self._send(wire.frame(Progress(done=done, total=total, unit=unit)))

    def is_left(self) -> bool:
        """Tell whether the service has closed the connection."""
        poll = select.poll()
        poll.register(self._sock, 0)
        return any(
            event & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
            for _, event in poll.poll(0)
        )

    @property
    def pipe(self) -> int:
        """What an upload comes through, as a descriptor."""
        if self._pipe is None:
            raise ServiceLeftError
        return self._pipe

    def piece(self, content: bytes | memoryview) -> None:
        """Send a piece of what is downloaded."""
        if content:
            self._send(wire.LENGTH.pack(len(content)))
            self._send(content)

    def file_piece(self, descriptor: int, offset: int, count: int) -> None:
        """Send a piece straight from a file, which has to have that much."""
        self._send(wire.LENGTH.pack(count))
        end = offset + count
        while offset < end:
            try:
                sent = os.sendfile(
                    self._sock.fileno(), descriptor, offset, end - offset
                )
            except ConnectionError as error:  # who downloads has gone away
                raise ServiceLeftError from error
            if not sent:
                # The rest that was promised cannot come: the connection ends here.
                raise ServiceLeftError
            offset += sent

    def end_pieces(self) -> None:
        """Say that nothing more follows."""
        self._send(wire.LENGTH.pack(0))

    def close(self) -> None:
        """Let go of the connection; what was said is still heard."""
        if self._pipe is not None:
            os.close(self._pipe)
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            # Unread bytes would turn our last words into an error at the other end.
            while self._sock.recv(wire.PIECE):
                pass
        self._sock.close()

    def _fill(self, buffer: memoryview) -> int:
        have = 0
        while have < len(buffer):
            try:
                count = self._sock.recv_into(buffer[have:], 0, socket.MSG_WAITALL)
            except ConnectionError:
                break
            have += count
            if not count:
                break
        return have

    def _receive(self, count: int) -> memoryview:
        buffer = memoryview(bytearray(count))
        if self._fill(buffer) < count:
            raise ServiceLeftError
        return buffer

    def _send(self, content: bytes | memoryview) -> None:
        try:
            self._sock.sendall(content)
        except OSError as error:
            raise ServiceLeftError from error
