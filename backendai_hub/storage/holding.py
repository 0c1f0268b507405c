"""Telling the workers of other services that somebody is at work in a folder of ours.

Who lost the lead of the platform may have workers that end later than their successors
begin; and an unmanaged folder may be another platform's, too. The kernel lets go of
what a dead worker held.
"""

from __future__ import annotations

import errno
import fcntl
from typing import Final

_NO_LOCKS: Final = frozenset(
    {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
)
"""What file systems say that have no locks, for folders at least."""


def hold(folder: int) -> bool:
    """Hold an open folder until it is closed; tell whether nobody else has it.

    Where there are no locks everybody gets it.
    """
    try:
        _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(folder: int) -> None:
    """Hold it together with others who share it; who removes it is waited for."""
    _lock(folder, fcntl.LOCK_SH)


def _lock(folder: int, how: int) -> None:
    try:
        fcntl.flock(folder, how)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
