"""One process of a kind per folder: a lock that dies with its holder.

Liveness by process id alone is a guess (ids are reused and survive in files after
a crash); an ``flock`` is let go of by the kernel when its holder ends, however it
ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

_held: Final[list[int]] = []


class AlreadyRunningError(RuntimeError):
    """Another process holds the lock; ``pid`` is what it wrote there."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is held by process {pid}: it is running already")
        self.pid = pid


def hold_lock(path: Path) -> None:
    """Take the lock at *path* until this process ends, and write our pid there.

    Raises :class:`AlreadyRunningError` if another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _read_pid(descriptor)
        os.close(descriptor)
        raise AlreadyRunningError(path, pid) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    _held.append(descriptor)


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock at *path*, if any does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
