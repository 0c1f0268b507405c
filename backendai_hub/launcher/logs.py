"""What the processes print: one file each, the previous ones kept for a while."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TextIO

from backendai_hub.launcher.folder import DataFolder

KEPT: Final = 3
LARGEST: Final = 64 << 20
_TAIL_BYTES: Final = 16_384


def rotate_logs(folder: DataFolder, process: str) -> None:
    """Set the previous run's output aside and forget the oldest."""
    path = folder.log(process)
    if not path.exists() or path.stat().st_size == 0:
        return
    for number in range(KEPT, 1, -1):
        older = path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
    path.replace(path.with_name(f"{path.name}.1"))


def shorten_log(path: Path) -> None:
    """Set a log that grew too large aside, while its process keeps writing to it.

    The writer has the file open for appending, so it goes on at the new end.
    """
    try:
        if path.stat().st_size <= LARGEST:
            return
    except FileNotFoundError:
        return
    aside = path.with_name(f"{path.name}.1")
    with path.open("rb") as source, aside.open("wb") as target:
        os.fchmod(target.fileno(), 0o600)
        source.seek(-LARGEST // 2, os.SEEK_END)
        target.write(source.read())
    os.truncate(path, 0)


def open_log(path: Path) -> TextIO:
    """Open *path* for appending, readable by its owner only."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(descriptor, "a")


def read_tail(path: Path, *, lines: int = 12) -> str:
    """Return the last *lines* of a log."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
