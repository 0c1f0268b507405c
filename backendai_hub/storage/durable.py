"""Small files of ours, and large ones of others, written so that they stay."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from typing import Final, Self

from backendai_hub.safefs.opening import open_beneath

_SYNC_WRITE: Final = 2
_SYNC_WAIT: Final = 1 | 2 | 4
_STEP: Final = 8 << 20
_BEHIND: Final = 64 << 20
_MOST: Final = 2 * _BEHIND
_CANNOT: Final = frozenset({errno.EINVAL, errno.ESPIPE, errno.ENOSYS})
_libc: Final = ctypes.CDLL(None, use_errno=True)


def open_file(folder: int, name: str, flags: int) -> int:
    """Open a file of ours in *folder*."""
    return open_beneath(folder, [name], flags, 0o600)


def list_names(folder: int) -> list[str]:
    """List what is in a folder of ours."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def read(folder: int, name: str) -> bytes:
    """Read a small file of ours."""
    opened = open_file(folder, name, os.O_RDONLY)
    with open(opened, "rb") as file:  # noqa: PTH123 - it is open already
        return file.read()


def write(folder: int, name: str, content: bytes) -> None:
    """Write a small file of ours: the whole of it, or none, and then for good."""
    draft = f"{name}.new"
    opened = open_file(folder, draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_at(opened, memoryview(content), 0)
        os.fsync(opened)
    finally:
        os.close(opened)
    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def write_at(descriptor: int, content: memoryview, offset: int) -> int:
    """Write all of *content* and return where it ends."""
    while content:
        written = os.pwrite(descriptor, content, offset)
        offset += written
        content = content[written:]
    return offset


def move_in(pipe: int, descriptor: int, offset: int, most: int) -> int:
    """Move bytes from a pipe into a file; return how many, 0 at the pipe's end."""
    try:
        return os.splice(pipe, descriptor, most, offset_dst=offset)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    content = os.read(pipe, most)
    write_at(descriptor, memoryview(content), offset)
    return len(content)


def sync_filesystem(folder: int) -> None:
    """Have everything on the disk that was written to this filesystem."""
    if _libc.syncfs(ctypes.c_int(folder)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Window:
    """Has a growing file written to the disk while it grows, by a thread of its own.

    Otherwise the last word, that all of it is safe, would take as long as everything
    before; and one large upload would fill the memory that all share. As a context it
    ends with whatever failed.
    """

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor = descriptor
        self._start = self._end = self._safe = start
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._error: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        # The kernel tells a failure once: the sync at the end will not tell this one.
        if self._error is not None and kind is None:
            raise self._error

    def reach(self, end: int) -> None:
        """Note that the file goes up to *end* now; wait if much of it is not safe.

        Raises :class:`OSError` if some of it could not be written.
        """
        if self._thread is None:
            if end - self._start < _STEP:
                return
            self._thread = threading.Thread(target=self._write, daemon=True)
            self._thread.start()
        with self._changed:
            self._end = end
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._error is not None or end - self._safe <= _MOST
            )
            if self._error is not None:
                raise self._error

    def _write(self) -> None:
        begun = self._start
        try:
            while self._awaits(begun + _STEP):
                self._sync(begun, _STEP, _SYNC_WRITE)
                begun += _STEP
                if begun - self._safe > _BEHIND:
                    self._sync(self._safe, _STEP, _SYNC_WAIT)
                    with self._changed:
                        self._safe += _STEP
                        self._changed.notify_all()
        except OSError as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _awaits(self, end: int) -> bool:
        """Wait until the file goes so far; false if that will not be."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._end >= end)
            return not self._is_over

    def _sync(self, offset: int, length: int, flags: int) -> None:
        failed = _libc.sync_file_range(
            ctypes.c_int(self._descriptor),
            ctypes.c_int64(offset),
            ctypes.c_int64(length),
            ctypes.c_uint(flags),
        )
        error = ctypes.get_errno()
        # What is refused here for lack of room the sync at the end will not say again.
        if failed and error not in _CANNOT:
            raise OSError(error, os.strerror(error))
