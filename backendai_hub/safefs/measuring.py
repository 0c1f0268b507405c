"""How much there is in a tree."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import msgspec

from backendai_hub.safefs.entries import look_at
from backendai_hub.safefs.walking import Act, walk

if TYPE_CHECKING:
    from backendai_hub.safefs.work import Work


class Usage(msgspec.Struct, frozen=True):
    """What a tree holds; a file with several names counts once.

    ``bytes`` is the length of all files, ``kept`` that without holes, ``allocated``
    what everything takes on the disk, ``entries`` how many names there are, folders
    and links included.
    """

    bytes: int
    allocated: int
    entries: int
    kept: int = 0


def measure(top: int, work: Work) -> Usage:
    """Add up everything below *top*; *work* counts entries."""
    length = allocated = kept = 0
    counted: set[tuple[int, int]] = set()
    for visit in walk(top):
        if visit.act is Act.LEAVE:
            continue
        work.advance(1)
        try:
            found = _look(visit.act, visit.folder, visit.name)
        except FileNotFoundError:
            continue
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            identity = found.st_dev, found.st_ino
            if identity in counted:
                continue
            counted.add(identity)
        allocated += found.st_blocks * 512
        if stat.S_ISREG(found.st_mode):
            length += found.st_size
            kept += min(found.st_size, found.st_blocks * 512)
    return Usage(bytes=length, allocated=allocated, entries=work.done, kept=kept)


def _look(act: Act, folder: int, name: str) -> os.stat_result:
    return os.fstat(folder) if act is Act.ENTER else look_at(folder, name)
