"""What a worker keeps of root's powers, and whom it dies with.

A worker that is root gives people's files to their owner and changes quotas. It must
not go beyond a quota (on ext4 CAP_SYS_RESOURCE would), and has no use for the rest.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from typing import Final

_SET_PDEATHSIG: Final = 1
_CAPBSET_DROP: Final = 24
_SET_NO_NEW_PRIVS: Final = 38
_VERSION_3: Final = 0x20080522
_LAST: Final = 63

CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID = 0, 1, 2, 3, 4
SYS_ADMIN: Final = 21
FILES: Final = (CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID)
"""What it takes to handle files of others."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Part(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def die_with_parent(parent: int) -> None:
    """Be killed when *parent* ends; end now if it has ended already."""
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def keep_capabilities(kept: Iterable[int]) -> None:
    """Give up every capability but *kept*, for good and for programs started, too."""
    if os.geteuid() != 0:
        return
    have = _read()
    keep = sum(1 << number for number in kept) & have
    for number in range(_LAST + 1):
        if not keep >> number & 1:
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    parts = (_Part * 2)()
    for at, part in enumerate(parts):
        part.effective = part.permitted = keep >> 32 * at & 0xFFFFFFFF
    if _libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), parts):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    _libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _read() -> int:
    parts = (_Part * 2)()
    if _libc.capget(ctypes.byref(_Header(_VERSION_3, 0)), parts):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(parts[0].permitted) | int(parts[1].permitted) << 32
