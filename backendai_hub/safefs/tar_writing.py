"""Write a tar file, plain or packed with gzip, member by member."""

from __future__ import annotations

import os
import stat
import tarfile
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_BLOCK: Final = 512
_GZIP: Final = 31
_LEVEL: Final = 1


class TarWriter:
    """Writes members one after the other; *packed* with gzip or plain."""

    def __init__(self, write: Callable[[bytes], None], *, packed: bool) -> None:
        self._write = write
        self._packer = (
            zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if packed else None
        )

    def add_folder(self, name: bytes, facts: os.stat_result) -> None:
        """Write a folder."""
        self._add_header(name, facts, tarfile.DIRTYPE)

    def add_link(self, name: bytes, facts: os.stat_result, target: bytes) -> None:
        """Write a symbolic link as the text it is."""
        self._add_header(name, facts, tarfile.SYMTYPE, link=os.fsdecode(target))

    def add_file(
        self, name: bytes, facts: os.stat_result, chunks: Iterable[bytes]
    ) -> None:
        """Write a file of exactly the size that *facts* tell.

        One that became shorter is filled with zeros: its size is written already.
        """
        self._add_header(name, facts, tarfile.REGTYPE, size=facts.st_size)
        missing = facts.st_size
        for chunk in chunks:
            self._send(chunk)
            missing -= len(chunk)
        while missing:
            filling = bytes(min(missing, 1024 * 1024))
            self._send(filling)
            missing -= len(filling)
        self._send(bytes(-facts.st_size % _BLOCK))

    def finish(self) -> None:
        """Write the end; nothing may follow it."""
        self._send(bytes(2 * _BLOCK))
        if self._packer is not None:
            self._write(self._packer.flush())

    def _add_header(
        self,
        name: bytes,
        facts: os.stat_result,
        kind: bytes,
        *,
        size: int = 0,
        link: str = "",
    ) -> None:
        header = tarfile.TarInfo(os.fsdecode(name))
        header.type = kind
        header.size = size
        header.linkname = link
        header.mode = stat.S_IMODE(facts.st_mode)
        header.mtime = int(facts.st_mtime)
        self._send(header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))

    def _send(self, content: bytes) -> None:
        if content and self._packer is not None:
            content = self._packer.compress(content)
        if content:
            self._write(content)
