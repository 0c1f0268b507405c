"""Write a ZIP file to something that cannot go back, member by member.

What ends up in the directory at the end of the file is kept packed, so that memory
stays small with a million members.
"""

from __future__ import annotations

import os
import stat
import struct
import time
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
_STORED, _DEFLATED = 0, 8
_SIZE_FOLLOWS, _UTF_8 = 0x8, 0x800
_VERSION, _VERSION_64, _UNIX = 20, 45, 3
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_LARGE: Final = 0xF0000000  # packed it may become a little longer
_MS_DOS_FOLDER: Final = 0x10
LONGEST_NAME: Final = 0xFFFF
LEVEL: Final = 1  # most of what is large here does not get smaller


class ZipWriter:
    """Writes members one after the other, then the directory."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._place = 0
        self._count = 0
        self._packer = zlib.compressobj(LEVEL)
        self._directory: list[bytes] = []

    def add_folder(self, name: bytes, facts: os.stat_result) -> None:
        """Write a folder; *name* is without the slash at its end."""
        self._add_whole(name + b"/", facts, b"")

    def add_link(self, name: bytes, facts: os.stat_result, target: bytes) -> None:
        """Write a symbolic link as the text it is."""
        self._add_whole(name, facts, target)

    def add_file(
        self, name: bytes, facts: os.stat_result, chunks: Iterable[bytes]
    ) -> None:
        """Write a file of at most the size that *facts* tell."""
        large = facts.st_size >= _LARGE
        offset = self._place
        version = _VERSION_64 if large else _VERSION
        extra = struct.pack("<HHQQ", 1, 16, 0, 0) if large else b""
        unknown = _FULL_32 if large else 0
        flags = _flags(name) | _SIZE_FOLLOWS
        moment = _dos_time(facts)
        head = version, flags, _DEFLATED, *moment, 0, unknown, unknown
        self._send(_LOCAL.pack(b"PK\3\4", *head, len(name), len(extra)) + name + extra)
        crc, packed, size = self._send_packed(chunks)
        shape = "<4sLQQ" if large else "<4s3L"
        self._send(struct.pack(shape, b"PK\7\x08", crc, packed, size))
        self._list(name, facts, flags, _DEFLATED, (crc, packed, size), offset)

    def finish(self) -> None:
        """Write the directory; nothing may follow it."""
        start = self._place
        self._directory.append(self._packer.flush())
        unpacker = zlib.decompressobj()
        for piece in self._directory:
            self._send(unpacker.decompress(piece))
        self._send(unpacker.flush())
        size = self._place - start
        if self._count >= _FULL_16 or self._place >= _FULL_32:
            self._send(self._end_64(start, size))
        count = min(self._count, _FULL_16)
        ends = min(size, _FULL_32), min(start, _FULL_32)
        self._send(_END.pack(b"PK\5\6", 0, 0, count, count, *ends, 0))

    def _end_64(self, start: int, size: int) -> bytes:
        versions = (_UNIX << 8) | _VERSION_64, _VERSION_64
        totals = self._count, self._count, size, start
        end = _END_64.pack(b"PK\6\6", _END_64.size - 12, *versions, 0, 0, *totals)
        return end + _LOCATOR_64.pack(b"PK\6\7", 0, self._place, 1)

    def _add_whole(self, name: bytes, facts: os.stat_result, content: bytes) -> None:
        offset, crc, size = self._place, zlib.crc32(content), len(content)
        flags = _flags(name)
        head = _VERSION, flags, _STORED, *_dos_time(facts), crc, size, size
        self._send(_LOCAL.pack(b"PK\3\4", *head, len(name), 0) + name + content)
        self._list(name, facts, flags, _STORED, (crc, size, size), offset)

    def _send_packed(self, chunks: Iterable[bytes]) -> tuple[int, int, int]:
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        crc = size = 0
        before = self._place
        for chunk in chunks:
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
            self._send(packer.compress(chunk))
        self._send(packer.flush())
        return crc, self._place - before, size

    def _list(
        self,
        name: bytes,
        facts: os.stat_result,
        flags: int,
        method: int,
        content: tuple[int, int, int],
        offset: int,
    ) -> None:
        """Note a member for the directory."""
        crc, packed, size = content
        large = [n for n in (size, packed, offset) if n >= _FULL_32]
        extra = b""
        if large:
            extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large)
        folder = _MS_DOS_FOLDER if stat.S_ISDIR(facts.st_mode) else 0
        version = _VERSION_64 if large else _VERSION
        line = _ENTRY.pack(
            b"PK\1\2",
            (_UNIX << 8) | _VERSION_64,
            version,
            flags,
            method,
            *_dos_time(facts),
            crc,
            min(packed, _FULL_32),
            min(size, _FULL_32),
            len(name),
            len(extra),
            0,
            0,
            0,
            (facts.st_mode & 0xFFFF) << 16 | folder,
            min(offset, _FULL_32),
        )
        self._directory.append(self._packer.compress(line + name + extra))
        self._count += 1

    def _send(self, content: bytes) -> None:
        if content:
            self._place += len(content)
            self._write(content)


def _flags(name: bytes) -> int:
    """Say that a name is UTF-8, where it is."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return 0
    return _UTF_8


def _dos_time(facts: os.stat_result) -> tuple[int, int]:
    """Spell a time as ZIP does: time, then date, from 1980 to 2107."""
    earliest, latest = 315_619_200, 4_354_732_800
    moment = time.localtime(min(max(facts.st_mtime, earliest), latest))
    clock = moment.tm_hour << 11 | moment.tm_min << 5 | moment.tm_sec // 2
    return clock, (moment.tm_year - 1980) << 9 | moment.tm_mon << 5 | moment.tm_mday
