"""A listening socket that lets in only so many at a time.

asyncio's own servers accept whatever comes, and log a traceback for every
connection they lack a descriptor for. Here what is too much waits in the kernel's
queue, which costs us nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from backendai_agent.forwarding import Connection, Server

BACKLOG: Final = 128
RETRY_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 1.0


class Door:
    """Lets at most *limit* connections at *listener* in to *server*.

    *complain* is called with every error of accepting; the next attempt comes a
    while later.
    """

    def __init__(
        self,
        listener: socket.socket,
        server: Server,
        *,
        limit: int,
        complain: Callable[[OSError], None],
        retry: float = RETRY_SECONDS,
    ) -> None:
        self._listener = listener
        self._server = server
        self._room = asyncio.Semaphore(limit)
        self._complain = complain
        self._retry = retry
        listener.listen(BACKLOG)
        self._accepting = asyncio.create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError as error:  # out of descriptors, mostly
                self._room.release()
                self._complain(error)
                await asyncio.sleep(self._retry)
                continue
            connection = self._server()
            connection.gone = self._room.release
            try:
                await loop.connect_accepted_socket(partial(_same, connection), accepted)
            except OSError as error:  # it went away at once
                accepted.close()
                if connection.gone is not None:
                    connection.gone = None
                    self._room.release()
                self._complain(error)

    async def close(self) -> None:
        """Shut the door, and end what is inside."""
        self._accepting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting
        self._listener.close()
        self._server.pre_shutdown()
        await self._server.shutdown(CLOSING_SECONDS)


def _same(connection: Connection) -> Connection:
    return connection
