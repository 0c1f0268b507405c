"""What all kinds of archives have in common: members, limits, and their refusals."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from backendai_hub.safefs.entries import Kind
from backendai_hub.safefs.errors import ArchiveRefusedError
from backendai_hub.safefs.paths import MAX_NAME_BYTES, MAX_PATH_BYTES, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backendai_hub.safefs.paths import Parts

CHUNK: Final = 256 * 1024


class ArchiveKind(StrEnum):
    """The archives that are written, and read."""

    ZIP = "zip"
    TAR = "tar"
    TAR_GZ = "tar.gz"


class Limits(msgspec.Struct, frozen=True):
    """What one archive may ask for.

    ``ratio`` is how many times its packed size it may become, as soon as that is more
    than ``ratio_from`` bytes. Folders count as members, also those that only other
    names imply. Links, devices and pipes refuse the archive, unless ``skip_links``.
    """

    members: int = 100_000
    bytes: int = 1 << 40
    ratio: int = 100
    ratio_from: int = 16 * 1024 * 1024
    depth: int = 64
    skip_links: bool = False


class Member(msgspec.Struct, frozen=True):
    """One member as the archive tells it: nothing of it has been checked.

    ``chunks`` has to be read before the next member; only files have any.
    """

    name: str
    kind: Kind
    size: int
    modified: int
    executable: bool
    chunks: Iterator[bytes]


class Meter:
    """Watches how much an archive becomes, and how many members it has."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._packed = 0
        self._unpacked = 0
        self._members = 0

    def count_member(self) -> None:
        """Count one more member, or folder, or header."""
        self._members += 1
        if self._members > self._limits.members:
            raise ArchiveRefusedError(
                f"the archive has more than {self._limits.members} members"
            )

    def expect(self, size: int) -> None:
        """Refuse the archive if *size* bytes more would be too many."""
        if self._unpacked + size > self._limits.bytes:
            raise ArchiveRefusedError(
                f"the archive becomes more than {self._limits.bytes} bytes"
            )

    def count_bytes(self, packed: int, unpacked: int) -> None:
        """Count bytes that were read and what they became."""
        self._packed += packed
        self._unpacked += unpacked
        self.expect(0)
        if self._unpacked <= self._limits.ratio_from:
            return
        if self._unpacked > self._packed * self._limits.ratio:
            raise ArchiveRefusedError(
                f"the archive becomes more than {self._limits.ratio} times as large; "
                "unpack it yourself and send the files"
            )


def read_member_name(name: str, limits: Limits) -> Parts:
    """Turn a member's name into parts beneath the target, or refuse the archive.

    ``.`` and empty parts count for nothing, as every archiver has it; ``..``, absolute
    names and what no file can be called are not harmless mistakes.
    """
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ArchiveRefusedError(
            f"the archive has a member outside its folder: {name[:120]!r}"
        )
    if len(parts) > limits.depth:
        raise ArchiveRefusedError(
            f"{quote(parts)} is {len(parts)} folders deep; the archive may have at "
            f"most {limits.depth}"
        )
    lengths = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if max(lengths, default=0) > MAX_NAME_BYTES or sum(lengths) > MAX_PATH_BYTES:
        raise ArchiveRefusedError(f"{quote(parts)} is too long for the name of a file")
    return parts


def damaged(why: str) -> ArchiveRefusedError:
    """Return the refusal of an archive that cannot be read."""
    return ArchiveRefusedError(f"the archive is damaged: {why}")
