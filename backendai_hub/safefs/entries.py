"""What is told of one file, folder or link."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.safefs.paths import show_name

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST: Final = int((datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds())
_LATEST: Final = int((datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds()) - 1


class Kind(StrEnum):
    """What an entry is; ``other`` are pipes, sockets and devices."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


class Entry(msgspec.Struct, frozen=True):
    """One entry of a folder. ``name`` and ``target`` are as they are shown.

    ``target`` is the text of a link: told, never followed. ``tag`` changes with the
    content.
    """

    name: str
    kind: Kind
    size: int
    modified: datetime
    mode: int
    tag: str
    target: str = ""


def kind_of(mode: int) -> Kind:
    """Tell the kind from the mode of a file."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER


def look_at(folder: int, name: str) -> os.stat_result:
    """Return what is known of *name* itself, be it a link."""
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def exists(folder: int, name: str) -> bool:
    """Tell whether *folder* has an entry *name*, be it a link to nowhere."""
    try:
        look_at(folder, name)
    except FileNotFoundError:
        return False
    return True


def kept_by(found: os.stat_result) -> int:
    """Return how many bytes a file keeps, of which holes are none.

    One of several names of a file keeps nothing: the others have it as well.
    """
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return 0
    return min(found.st_size, found.st_blocks * 512)


def describe(name: str, found: os.stat_result, *, target: str = "") -> Entry:
    """Write down what is *found*."""
    kind = kind_of(found.st_mode)
    return Entry(
        name=show_name(name),
        kind=kind,
        size=found.st_size if kind is Kind.FILE else 0,
        modified=_read_time(found.st_mtime_ns),
        mode=stat.S_IMODE(found.st_mode),
        tag=tag_of(found),
        target=show_name(target),
    )


def describe_entry(folder: int, name: str) -> Entry:
    """Describe what *folder* has under *name*."""
    found = look_at(folder, name)
    target = ""
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=folder)
    return describe(name, found, target=target)


def tag_of(found: os.stat_result) -> str:
    """Name one state of a file's content."""
    return f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"


def _read_time(nanoseconds: int) -> datetime:
    """Read a time; what no calendar has is its nearest day (anybody may set these)."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    whole = min(max(seconds, _EARLIEST), _LATEST)
    return _EPOCH + timedelta(seconds=whole, microseconds=rest // 1000)
