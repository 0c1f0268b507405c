"""Calls of the kernel that Python does not offer: openat2, renameat2 and fstatfs."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

RESOLVE_NO_XDEV: Final = 0x01
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
_RENAME_NOREPLACE: Final = 1
_SYS_OPENAT2: Final = 437  # the same on every architecture

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def openat2(folder: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
    """Open *path* as ``openat2`` does; raise the ``OSError`` of its refusal."""
    how = _OpenHow(flags, mode, resolve)
    opened: int = _libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(folder),
        ctypes.c_char_p(path),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if opened < 0:
        raise _last_error()
    return opened


def rename_without_replacing(
    source: str, target: str, *, source_folder: int, target_folder: int
) -> None:
    """Rename, unless *target* exists; ``ENOSYS`` where the C library cannot."""
    try:
        renameat2 = _libc.renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    failed = renameat2(
        ctypes.c_int(source_folder),
        ctypes.c_char_p(os.fsencode(source)),
        ctypes.c_int(target_folder),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(_RENAME_NOREPLACE),
    )
    if failed:
        raise _last_error()


def type_of_filesystem(folder: int) -> int:
    """Return the number by which the kernel knows the kind of an open file's system."""
    facts = (ctypes.c_long * 32)()  # more than any architecture's structure takes
    if _libc.fstatfs(ctypes.c_int(folder), ctypes.byref(facts)):
        raise _last_error()
    return facts[0]


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
