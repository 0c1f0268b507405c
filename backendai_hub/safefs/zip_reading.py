"""Read the members of a ZIP file, as its central directory tells them.

Every byte of the archive belongs to at most one member, every size is what was
promised, and every checksum is right; otherwise the archive is refused.
"""

from __future__ import annotations

import os
import stat
import struct
import time
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from backendai_hub.safefs.entries import Kind, kind_of
from backendai_hub.safefs.errors import ArchiveRefusedError
from backendai_hub.safefs.members import CHUNK, Limits, Member, Meter, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

_END: Final = struct.Struct("<4s4H2LH")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT: Final = 65535
_MAX_DIRECTORY: Final = 64 * 1024 * 1024
_UNIX: Final = 3
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _UTF_8 = 0x1, 0x800
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_WANTED: Final = 64 * 1024


class _Record(NamedTuple):
    """One line of the central directory."""

    name: bytes
    flags: int
    method: int
    date: int
    time: int
    crc: int
    packed: int
    size: int
    system: int
    attributes: int
    offset: int


class _Directory(NamedTuple):
    """Where the central directory is."""

    offset: int
    size: int
    members: int


def read_zip(archive: int, limits: Limits, meter: Meter) -> Iterator[Member]:
    """Yield the members of the file that *archive* is open on."""
    directory = _find_directory(archive, limits)
    records = sorted(
        _read_records(archive, directory, meter), key=lambda record: record.offset
    )
    nexts = [*(record.offset for record in records[1:]), directory.offset]
    for record, end in zip(records, nexts, strict=False):
        name = _decode(record)
        yield Member(
            name=name,
            kind=_kind(record, name),
            size=record.size,
            modified=_read_time(record.date, record.time),
            executable=bool(_unix_mode(record) & stat.S_IXUSR),
            chunks=_read_content(archive, record, end, meter),
        )


def _find_directory(archive: int, limits: Limits) -> _Directory:
    length = os.fstat(archive).st_size
    start = max(0, length - _END.size - _LONGEST_COMMENT)
    tail = _read_exactly(archive, start, length - start)
    found = tail.rfind(b"PK\5\6")
    if found < 0 or len(tail) - found < _END.size:
        raise damaged("its directory is missing")
    end = start + found
    _, disk, _, _, count, size, offset, _ = _END.unpack_from(tail, found)
    directory = _Directory(offset, size, count)
    if _FULL_16 in {disk, count} or _FULL_32 in {size, offset}:
        directory, end = _find_directory_64(archive, directory, end)
    elif disk:
        raise ArchiveRefusedError("the archive is one of several parts; join them")
    if directory.offset + directory.size > end:
        raise damaged("its directory is outside of it")
    if directory.members > limits.members:
        raise ArchiveRefusedError(
            f"the archive has {directory.members} members; "
            f"at most {limits.members} are allowed"
        )
    if directory.size > _MAX_DIRECTORY:
        raise ArchiveRefusedError("the list of the archive's members is too long")
    return directory


def _find_directory_64(
    archive: int, directory: _Directory, end: int
) -> tuple[_Directory, int]:
    """Read the larger fields; archives with 65,535 members need not have them."""
    at = end - _LOCATOR_64.size
    if at < 0:
        return directory, end
    mark, _, where, _ = _LOCATOR_64.unpack(_read_exactly(archive, at, _LOCATOR_64.size))
    if mark != b"PK\6\7":
        return directory, end
    fields = _END_64.unpack(_read_exactly(archive, where, _END_64.size))
    if fields[0] != b"PK\6\6" or where > at:
        raise damaged("its directory is missing")
    return _Directory(offset=fields[9], size=fields[8], members=fields[7]), where


def _read_records(
    archive: int, directory: _Directory, meter: Meter
) -> Iterator[_Record]:
    text = _read_exactly(archive, directory.offset, directory.size)
    place = 0
    while place + _ENTRY.size <= len(text):
        fields = _ENTRY.unpack_from(text, place)
        if fields[0] != b"PK\1\2":
            break
        meter.count_member()
        place += _ENTRY.size
        lengths = fields[10:13]
        if place + sum(lengths) > len(text):
            break
        name = text[place : place + lengths[0]]
        extra = text[place + lengths[0] : place + lengths[0] + lengths[1]]
        place += sum(lengths)
        yield _record(fields, name, extra)
    if place != len(text):
        raise damaged("its directory ends in the middle")


def _record(fields: tuple[int, ...], name: bytes, extra: bytes) -> _Record:
    size, packed, offset = fields[9], fields[8], fields[16]
    if _FULL_32 in {size, packed, offset}:
        larger = _large_fields(extra)
        size = next(larger) if size == _FULL_32 else size
        packed = next(larger) if packed == _FULL_32 else packed
        offset = next(larger) if offset == _FULL_32 else offset
    return _Record(
        name=name,
        flags=fields[3],
        method=fields[4],
        time=fields[5],
        date=fields[6],
        crc=fields[7],
        packed=packed,
        size=size,
        system=fields[1] >> 8,
        attributes=fields[15],
        offset=offset,
    )


def _large_fields(extra: bytes) -> Iterator[int]:
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        place += 4
        if kind == 1:
            value = extra[place : place + length]
            yield from (n for (n,) in struct.iter_unpack("<Q", value[: length & ~7]))
            break
        place += length
    raise damaged("the size of a member is missing")


def _read_content(
    archive: int, record: _Record, end: int, meter: Meter
) -> Iterator[bytes]:
    """Yield a member's content; *end* is where the next one begins."""
    if record.flags & _ENCRYPTED:
        raise ArchiveRefusedError("the archive is encrypted; unpack it yourself")
    header = _LOCAL.unpack(_read_exactly(archive, record.offset, _LOCAL.size))
    if header[0] != b"PK\3\4":
        raise damaged("a member is not where its directory says")
    start = record.offset + _LOCAL.size + header[9] + header[10]
    if start + record.packed > end:
        raise ArchiveRefusedError("members of the archive overlap")
    crc = length = 0
    for chunk in _unpack(archive, record, start, meter):
        length += len(chunk)
        if length > record.size:
            break
        crc = zlib.crc32(chunk, crc)
        yield chunk
    if length != record.size or crc != record.crc:
        raise damaged("a member is not what its checksum says")


def _unpack(archive: int, record: _Record, start: int, meter: Meter) -> Iterator[bytes]:
    packed = _read_range(archive, start, record.packed)
    if record.method == _STORED:
        for chunk in packed:
            meter.count_bytes(len(chunk), len(chunk))
            yield chunk
    elif record.method == _DEFLATED:
        yield from _inflate(packed, meter)
    else:
        raise ArchiveRefusedError(
            f"the archive is packed by method {record.method}; only store and deflate "
            "are known here"
        )


def _inflate(packed: Iterator[bytes], meter: Meter) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for piece in packed:
            waiting = piece
            meter.count_bytes(len(piece), 0)
            while waiting and not inflater.eof:
                chunk = inflater.decompress(waiting, CHUNK)
                waiting = inflater.unconsumed_tail
                meter.count_bytes(0, len(chunk))
                yield chunk
        while not inflater.eof:
            chunk = inflater.decompress(b"", CHUNK)
            meter.count_bytes(0, len(chunk))
            if not chunk:
                raise damaged("a member ends too early")
            yield chunk
    except zlib.error as error:
        raise damaged("a member cannot be unpacked") from error


def _read_range(archive: int, start: int, length: int) -> Iterator[bytes]:
    for place in range(start, start + length, _WANTED):
        yield _read_exactly(archive, place, min(_WANTED, start + length - place))


def _read_exactly(archive: int, place: int, length: int) -> bytes:
    read = os.pread(archive, length, place) if 0 <= place < 1 << 62 else b""
    if len(read) != length:
        raise damaged("it ends too early")
    return read


def _decode(record: _Record) -> str:
    """Decode a name; those who do not say that it is UTF-8 often mean it."""
    try:
        return record.name.decode()
    except UnicodeDecodeError:
        if record.flags & _UTF_8 or record.system == _UNIX:
            return os.fsdecode(record.name)
        return record.name.decode("cp437")


def _unix_mode(record: _Record) -> int:
    return record.attributes >> 16 if record.system == _UNIX else 0


def _kind(record: _Record, name: str) -> Kind:
    if name.endswith("/"):
        return Kind.FOLDER
    mode = _unix_mode(record)
    return kind_of(mode) if stat.S_IFMT(mode) else Kind.FILE


def _read_time(date: int, clock: int) -> int:
    """Read the time of a day, whose zone the archive does not tell."""
    year, month, day = (date >> 9) + 1980, date >> 5 & 15, date & 31
    hour, minute, second = clock >> 11, clock >> 5 & 63, (clock & 31) * 2
    try:
        return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1)))
    except (OverflowError, ValueError):
        return 0
