"""Small files of ours, and large ones of others, written so that they stay."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from backendai_hub.safefs.opening import open_beneath

_SYNC_WRITE: Final = 2
_SYNC_WAIT: Final = 1 | 2 | 4
_STEP: Final = 8 << 20
_BEHIND: Final = 64 << 20
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


def sync_filesystem(folder: int) -> None:
    """Have everything on the disk that was written to this filesystem."""
    if _libc.syncfs(ctypes.c_int(folder)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Window:
    """Has a growing file written to the disk while it grows.

    Otherwise the last word, that all of it is safe, would take as long as everything
    before; and one large upload would fill the memory that all share.
    """

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor = descriptor
        self._begun = self._ended = start

    def reach(self, end: int) -> None:
        """Note that the file goes up to *end* now."""
        while end - self._begun >= _STEP:
            self._sync(self._begun, _STEP, _SYNC_WRITE)
            self._begun += _STEP
            if self._begun - self._ended > _BEHIND:
                self._sync(self._ended, _STEP, _SYNC_WAIT)
                self._ended += _STEP

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
