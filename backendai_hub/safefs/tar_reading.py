"""Read the members of a tar file, plain or packed with gzip, in one pass.

The standard library reads single header blocks; what strings them together is ours,
since names, sizes and headers of headers come from whoever made the archive.
"""

from __future__ import annotations

import os
import re
import tarfile
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from backendai_hub.safefs.entries import Kind
from backendai_hub.safefs.errors import ArchiveRefusedError
from backendai_hub.safefs.members import CHUNK, Member, Meter, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 512
_MAX_HEADER: Final = 1024 * 1024
_WANTED: Final = 64 * 1024
_GZIP: Final = 31
_GZIP_MARK: Final = b"\x1f\x8b"
_LINKS: Final = frozenset({tarfile.LNKTYPE, tarfile.SYMTYPE})
_NUMBER: Final = re.compile("-?[0-9]{1,20}", re.ASCII)
_PAX_KEYS: Final = frozenset({"path", "size", "mtime"})


class _Header(NamedTuple):
    """One member's header with what the headers before it said."""

    block: tarfile.TarInfo
    name: str
    size: int
    modified: int


def read_tar(archive: int, meter: Meter) -> Iterator[Member]:
    """Yield the members of the file that *archive* is open on."""
    source = _open_source(archive, meter)
    general: dict[str, str] = {}
    while (header := _read_header(source, general, meter)) is not None:
        content = _Content(source, header.size)
        yield Member(
            name=header.name,
            kind=_kind(header.block),
            size=header.size,
            modified=header.modified,
            executable=bool(header.block.mode & 0o100),
            chunks=content.chunks(),
        )
        content.skip()


class _Content:
    """What follows a header, up to the next one."""

    def __init__(self, source: _Source, size: int) -> None:
        self._source = source
        self._left = size
        self._padding = -size % _BLOCK

    def chunks(self) -> Iterator[bytes]:
        """Yield what is left of the content."""
        while self._left:
            chunk = self._source.read_exactly(min(CHUNK, self._left))
            self._left -= len(chunk)
            yield chunk

    def skip(self) -> None:
        """Pass over what was not read."""
        for _ in self.chunks():
            pass
        self._source.read_exactly(self._padding)


def _read_header(
    source: _Source, general: dict[str, str], meter: Meter
) -> _Header | None:
    """Read the next member's header, and what stands before it; None at the end."""
    special: dict[str, str] = {}
    while True:
        meter.count_member()
        block = _read_block(source)
        if block is None:
            return None
        if block.type == tarfile.XHDTYPE:
            special |= _read_pax(_read_extra(source, block.size))
        elif block.type == tarfile.XGLTYPE:
            general |= _read_pax(_read_extra(source, block.size))
        elif block.type == tarfile.GNUTYPE_LONGNAME:
            text = _read_extra(source, block.size)
            special["path"] = os.fsdecode(text.partition(b"\0")[0])
        elif block.type == tarfile.GNUTYPE_LONGLINK:
            _read_extra(source, block.size)
        else:
            return _join(block, general | special)


def _join(block: tarfile.TarInfo, extra: dict[str, str]) -> _Header:
    if block.type == tarfile.GNUTYPE_SPARSE or "GNU.sparse" in extra:
        raise ArchiveRefusedError(
            "the archive has sparse files; pack it without '--sparse'"
        )
    size = _read_number(extra.get("size", ""), block.size)
    modified = _read_number(extra.get("mtime", "").partition(".")[0], block.mtime)
    if not block.isreg() and block.type in tarfile.SUPPORTED_TYPES:
        size = 0
    if size < 0:
        raise damaged("a member has less than no bytes")
    return _Header(block, extra.get("path", block.name), size, modified)


def _kind(block: tarfile.TarInfo) -> Kind:
    if block.isreg():
        return Kind.FILE
    if block.isdir():
        return Kind.FOLDER
    return Kind.LINK if block.type in _LINKS else Kind.OTHER


def _read_block(source: _Source) -> tarfile.TarInfo | None:
    text = source.read_up_to(_BLOCK)
    if not text.strip(b"\0"):
        return None
    try:
        return tarfile.TarInfo.frombuf(text, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise damaged("a header cannot be read") from error


def _read_extra(source: _Source, size: int) -> bytes:
    if not 0 <= size <= _MAX_HEADER:
        raise ArchiveRefusedError("the archive has a header that is far too long")
    text = source.read_exactly(size)
    source.read_exactly(-size % _BLOCK)
    return text


def _read_pax(text: bytes) -> dict[str, str]:
    """Read the lines ``length key=value`` that are of any use here."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text) and text[place]:
        digits = text[place : place + 20].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        line = text[place + len(digits) + 1 : place + length - 1]
        if length <= len(digits) or place + length > len(text):
            raise damaged("a header cannot be read")
        key, _, value = line.partition(b"=")
        name = os.fsdecode(key)
        if name.startswith("GNU.sparse."):
            name = "GNU.sparse"
        if name in _PAX_KEYS or name == "GNU.sparse":
            found[name] = os.fsdecode(value)
        place += length
    return found


def _read_number(text: str, otherwise: float) -> int:
    if not text:
        return int(otherwise)
    if not _NUMBER.fullmatch(text):
        raise damaged("a header has a number that is none")
    return int(text)


class _Source:
    """The bytes of a tar file."""

    def __init__(self, archive: int, meter: Meter) -> None:
        self._archive = archive
        self._meter = meter
        self._place = 0

    def read_up_to(self, length: int) -> bytes:
        """Return *length* bytes, none at the very end; refuse a part of them."""
        parts = []
        missing = length
        while missing:
            piece = self._read_some(missing)
            if not piece:
                break
            missing -= len(piece)
            parts.append(piece)
        if parts and missing:
            raise damaged("it ends too early")
        return b"".join(parts)

    def read_exactly(self, length: int) -> bytes:
        """Return *length* bytes; at the end of the archive refuse it."""
        read = self.read_up_to(length)
        if len(read) != length:
            raise damaged("it ends too early")
        return read

    def _read_some(self, length: int) -> bytes:
        piece = self._read_packed(length)
        self._meter.count_bytes(0, len(piece))
        return piece

    def _read_packed(self, length: int) -> bytes:
        piece = os.pread(self._archive, length, self._place)
        self._place += len(piece)
        self._meter.count_bytes(len(piece), 0)
        return piece


class _GzipSource(_Source):
    """The bytes of a tar file that is packed with gzip, in one piece or several."""

    def __init__(self, archive: int, meter: Meter) -> None:
        super().__init__(archive, meter)
        self._inflater = zlib.decompressobj(_GZIP)
        self._waiting = b""

    def _read_some(self, length: int) -> bytes:
        while True:
            if self._inflater.eof:
                self._waiting = self._inflater.unused_data.lstrip(b"\0")
                self._inflater = zlib.decompressobj(_GZIP)
                if not (self._waiting or self._fill()):
                    return b""
            ended = not (self._waiting or self._fill())
            piece = self._inflate(length)
            if piece:
                self._meter.count_bytes(0, len(piece))
                return piece
            if ended and not self._inflater.eof:
                raise damaged("it ends too early")

    def _fill(self) -> bool:
        self._waiting = self._read_packed(_WANTED)
        return bool(self._waiting)

    def _inflate(self, length: int) -> bytes:
        try:
            piece = self._inflater.decompress(self._waiting, length)
        except zlib.error as error:
            raise damaged("it cannot be unpacked") from error
        self._waiting = self._inflater.unconsumed_tail
        return piece


def _open_source(archive: int, meter: Meter) -> _Source:
    packed = os.pread(archive, len(_GZIP_MARK), 0) == _GZIP_MARK
    return _GzipSource(archive, meter) if packed else _Source(archive, meter)
