"""Files that are whole or absent, and readable by their owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def make_private_folder(path: Path) -> None:
    """Make *path* and its parents; *path* itself is closed to everybody else."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace the file at *path* in one step; readers see the old or the new one."""
    temporary = _write_beside(path, content)
    temporary.replace(path)
    _sync_folder(path.parent)


def create_private(path: Path, content: bytes) -> bool:
    """Make the file at *path* unless there is one, and tell whether it was made.

    An existing file is never touched, not even when two processes try at once.
    """
    if path.exists():
        return False
    temporary = _write_beside(path, content)
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    _sync_folder(path.parent)
    return True


def _write_beside(path: Path, content: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
