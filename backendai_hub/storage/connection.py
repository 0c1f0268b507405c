"""The service's side of one connection to a worker: never blocks the loop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from backendai_hub.core.errors import HubError, UnavailableError
from backendai_hub.storage import wire
from backendai_hub.storage.ops import Operation
from backendai_hub.storage.pipe import CutError, Pipe, ReaderLeftError

log = logging.getLogger("backendai_hub.storage")

T = TypeVar("T")
S = TypeVar("S")
MOST_READ: Final = 256 << 10


class Connection:
    """Sends an operation and hears what the worker says, each within a deadline."""

    def __init__(
        self,
        host: str,
        sock: socket.socket,
        deadline: float,
        on_silence: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
        *,
        tells_all: bool = False,
    ) -> None:
        self._host = host
        self._tells_all = tells_all
        self._on_close: Callable[[], None] | None = on_close
        self._on_silence = on_silence
        self._sock = sock
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        sock.setblocking(False)  # noqa: FBT003 - the standard library's signature
        wire.widen(sock)

    async def ask(self, operation: Operation[Any], stream: Pipe | None = None) -> None:
        """Send what is to be done, and the end of a stream that it is done with."""
        frame = wire.frame(wire.Request(operation))  # type: ignore[arg-type]
        if stream is not None:
            sent = socket.send_fds(self._sock, [frame[:1]], [stream.reader])
            stream.hand_on()
            frame = frame[sent:]
        await self.send(frame)

    async def hear(self, *, within: float | None = None) -> wire.Reply:
        """Wait for the next word of the worker; a refusal is raised."""
        (length,) = wire.LENGTH.unpack(await self._receive(wire.LENGTH.size, within))
        reply = wire.read_reply(await self._receive(length, within))
        if isinstance(reply, wire.Refusal):
            raise self._without_secrets(wire.error_of(reply))
        return reply

    def _without_secrets(self, error: HubError) -> HubError:
        """Tell everybody that something does not work; why is the administrators'."""
        if self._tells_all or not isinstance(error, UnavailableError) or error.fields:
            return error
        log.warning("storage host %s: %s", self._host, error.message)
        return UnavailableError(
            f"storage host {self._host} cannot do this at the moment; administrators"
            " see why; try again later"
        )

    async def send(self, content: bytes | memoryview) -> None:
        """Send bytes as fast as the worker takes them."""
        content = self._send_at_once(memoryview(content))
        if not content:
            return
        try:
            async with asyncio.timeout(self._deadline):
                await self._loop.sock_sendall(self._sock, content)
        except TimeoutError as error:
            raise self.silent() from error
        except OSError as error:
            raise self.ended() from error

    def _send_at_once(self, content: memoryview) -> memoryview:
        """Send what there is room for; mostly there is, and nobody has to wait."""
        try:
            return content[self._sock.send(content) :]
        except BlockingIOError:
            return content
        except OSError as error:
            raise self.ended() from error

    async def receive(self, most: int) -> bytes:
        """Return what has arrived, at least one byte."""
        try:
            async with asyncio.timeout(self._deadline):
                arrived = await self._loop.sock_recv(self._sock, most)
        except TimeoutError as error:
            raise self.silent() from error
        except OSError as error:
            raise self.ended() from error
        if not arrived:
            raise self.ended()
        return arrived

    def close(self) -> None:
        """End it; the worker stops what nobody waits for."""
        self._sock.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    async def _receive(self, count: int, within: float | None) -> bytes:
        deadline = self._deadline if within is None else within
        parts = []
        try:
            async with asyncio.timeout(deadline):
                while count:
                    part = await self._loop.sock_recv(self._sock, count)
                    if not part:
                        raise self.ended()
                    parts.append(part)
                    count -= len(part)
        except TimeoutError as error:
            raise self.silent(deadline) from error
        except OSError as error:
            raise self.ended() from error
        return b"".join(parts)

    def open_pipe(self) -> Pipe:
        """Make what a stream goes through."""
        return Pipe(self._deadline)

    def silent(self, seconds: float | None = None) -> HubError:
        """Say that the worker is silent, and have it looked at."""
        seconds = self._deadline if seconds is None else seconds
        self._on_silence()
        return SilentError(
            f"storage host {self._host} has not answered for {seconds:g} s; try again"
            " later"
        )

    def ended(self) -> HubError:
        """Say that the worker is gone."""
        return UnavailableError(
            f"storage host {self._host}: its worker has ended meanwhile; try again"
        )


class SilentError(UnavailableError):
    """The worker did not answer in time."""


class BodyWriter(Generic[T]):
    """Sends a stream to a worker. As a context it gives up what was not finished."""

    def __init__(
        self, connection: Connection, operation: Operation[T], pipe: Pipe
    ) -> None:
        self._connection = connection
        self._operation = operation
        self._pipe = pipe
        # The worker may refuse while we are still sending.
        self._reply = asyncio.ensure_future(connection.hear(within=_FOREVER))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def is_full(self) -> bool:
        """Whether it is the worker that is waited for."""
        return self._pipe.is_full

    async def write(self, chunk: bytes | memoryview) -> None:
        """Send a part, as fast as it is written; raise why the worker refused it."""
        await self._sent(self._pipe.write(chunk))

    async def take(self, source: int, most: int) -> int | None:
        """Send on what has come over a socket; see :meth:`.Pipe.take`."""
        return await self._sent(self._pipe.take(source, most))

    async def _sent(self, sending: Coroutine[Any, Any, S]) -> S:
        if self._reply.done():
            sending.close()
            self._reply.result()
        try:
            return await sending
        except TimeoutError as error:
            raise self._connection.silent() from error
        except CutError as error:
            raise self._connection.ended() from error
        except ReaderLeftError:
            # It has said why, or is gone.
            await self.finish()
            raise self._connection.ended() from None

    async def finish(self, *, deadline: float = 120.0) -> T:
        """End the stream and return what came of it, which is safe on the disk then."""
        self._pipe.end()
        try:
            async with asyncio.timeout(deadline):
                reply = await asyncio.shield(self._reply)
        except TimeoutError as error:
            raise UnavailableError(
                f"the storage has not finished writing within {deadline:g} s"
            ) from error
        finally:
            await self.close()
        assert isinstance(reply, wire.Answer)
        answer: T = wire.read_answer(self._operation, reply)
        return answer

    async def close(self) -> None:
        """Cut the stream off where it is, unless it is finished."""
        self._pipe.end()
        self._reply.cancel()
        await asyncio.gather(self._reply, return_exceptions=True)
        self._connection.close()


class BodyReader(Generic[T]):
    """Receives a stream from a worker: ``head`` first, then chunks."""

    def __init__(self, connection: Connection, head: T) -> None:
        self._connection = connection
        self.head = head

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield all that follows; raises if it breaks off before its end."""
        receive = self._connection.receive
        while True:
            length = await self._read_length()
            if not length:
                break
            while length:
                chunk = await receive(min(length, MOST_READ))
                length -= len(chunk)
                yield chunk
        await self._connection.hear()

    def close(self) -> None:
        """Stop, also before the end."""
        self._connection.close()

    async def _read_length(self) -> int:
        written = b""
        while len(written) < wire.LENGTH.size:
            written += await self._connection.receive(wire.LENGTH.size - len(written))
        (length,) = wire.LENGTH.unpack(written)
        return int(length)


_FOREVER: Final = 7 * 24 * 3600.0
