"""The service's end of a stream to a worker: a pipe, written without blocking the loop.

What comes over a network goes from its socket into the pipe, and from there into the
file, inside the kernel: no process copies it.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from backendai_hub.storage.wire import PIECE

_NOW: Final = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE


class ReaderLeftError(Exception):
    """Nobody reads the pipe any more."""


class CutError(Exception):
    """The pipe was closed while somebody waited for it."""


class Pipe:
    """A pipe whose other end is the worker's."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC)
        """``reader`` is a descriptor; it is open until it was handed on."""
        os.set_blocking(self._writer, False)
        with suppress(OSError):  # who has many pipes gets no larger ones
            fcntl.fcntl(self._writer, fcntl.F_SETPIPE_SZ, PIECE)
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self.is_full = False
        """Whether somebody waits until the worker has taken what is in it."""

    def hand_on(self) -> None:
        """Let go of the reader's end: the worker has it."""
        os.close(self.reader)
        self.reader = -1

    async def write(self, content: bytes | memoryview) -> None:
        """Write bytes, as fast as they are read.

        Raises :class:`ReaderLeftError` and :class:`CutError`, and
        :class:`TimeoutError` if nothing is read for so many seconds.
        """
        content = memoryview(content)
        while content:
            try:
                content = content[os.write(self._open, content) :]
            except BlockingIOError:
                await self._has_room()
            except BrokenPipeError:
                raise ReaderLeftError from None

    async def take(self, source: int, most: int) -> int | None:
        """Move up to *most* bytes from a socket, and return how many: 0 at its end.

        Returns None if the kernel moves nothing from this kind of socket. Raises what
        :meth:`write` does, and what reading would.
        """
        while True:
            try:
                return os.splice(source, self._open, most, flags=_NOW)
            except BlockingIOError:
                if self._is_writable():
                    await self._has_come(source)
                else:
                    await self._has_room()
            except BrokenPipeError:
                raise ReaderLeftError from None
            except OSError as error:
                if error.errno == errno.EINVAL:
                    return None
                raise

    def end(self) -> None:
        """Say that nothing more follows; whoever still waits is told."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        if self.reader >= 0:
            self.hand_on()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(CutError())

    @property
    def _open(self) -> int:
        if self._writer < 0:
            raise CutError
        return self._writer

    def _is_writable(self) -> bool:
        poll = select.poll()
        poll.register(self._open, select.POLLOUT)
        return bool(poll.poll(0))

    async def _has_room(self) -> None:
        self.is_full = True
        try:
            async with asyncio.timeout(self._patience):
                await self._wait(
                    self._open, self._loop.add_writer, self._loop.remove_writer
                )
        finally:
            self.is_full = False

    async def _has_come(self, source: int) -> None:
        await self._wait(source, self._loop.add_reader, self._loop.remove_reader)

    async def _wait(
        self,
        descriptor: int,
        add: Callable[[int, Callable[[], None]], None],
        remove: Callable[[int], bool],
    ) -> None:
        self._waiting = waiting = self._loop.create_future()
        # A copy: the loop may be told to look at the socket itself for other reasons,
        # and both may be closed, and their numbers used again, meanwhile.
        watched = os.dup(descriptor)
        try:
            add(watched, partial(_settle, waiting))
            await waiting
        finally:
            remove(watched)
            os.close(watched)
            self._waiting = None


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
