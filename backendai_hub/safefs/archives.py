"""Send files and folders as one archive while it is made; nothing of it is kept."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, Protocol

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.entries import Kind, kind_of, look_at
from backendai_hub.safefs.errors import in_words
from backendai_hub.safefs.extracting import Extracted, extract
from backendai_hub.safefs.members import CHUNK, ArchiveKind, Limits
from backendai_hub.safefs.opening import open_beneath, open_folder
from backendai_hub.safefs.tar_writing import TarWriter
from backendai_hub.safefs.walking import Act, walk
from backendai_hub.safefs.work import Work
from backendai_hub.safefs.zip_writing import LONGEST_NAME, ZipWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Set

    from backendai_hub.safefs.paths import Parts
    from backendai_hub.safefs.tree import Tree

__all__ = [
    "ArchiveKind",
    "Archived",
    "Extracted",
    "Limits",
    "extract",
    "stream_archive",
]


class Archived(NamedTuple):
    """How much was sent, and how many pipes and the like were left out."""

    members: int
    bytes: int
    skipped: int


class Writer(Protocol):
    """Writes one kind of archive."""

    def add_folder(self, name: bytes, facts: os.stat_result) -> None: ...

    def add_link(self, name: bytes, facts: os.stat_result, target: bytes) -> None: ...

    def add_file(
        self, name: bytes, facts: os.stat_result, chunks: Iterable[bytes]
    ) -> None: ...

    def finish(self) -> None: ...


def stream_archive(
    tree: Tree,
    paths: Sequence[Parts],
    kind: ArchiveKind,
    write: Callable[[bytes], None],
    *,
    work: Work | None = None,
    hidden: Set[str] = frozenset(),
) -> Archived:
    """Pass an archive of *paths* to *write*, piece by piece.

    Names in it are relative to the folder that all of them are in. What is missing is
    refused before the first byte. Links are sent as links; *work* counts bytes. Of the
    whole tree, what is called by a name in *hidden* is left out.
    """
    if not paths:
        raise InvalidRequestError("nothing is named to be put into the archive")
    for parts in paths:
        tree.stat(parts)
    packing = _Packing(_writer(kind, write), work or Work(), hidden)
    above = _common_folder(paths)
    for parts in _without_doubles(paths):
        with in_words(parts):
            packing.add(tree, parts, len(above))
    packing.finish()
    return packing.result


def _writer(kind: ArchiveKind, write: Callable[[bytes], None]) -> Writer:
    if kind is ArchiveKind.ZIP:
        return ZipWriter(write)
    return TarWriter(write, packed=kind is ArchiveKind.TAR_GZ)


def _common_folder(paths: Sequence[Parts]) -> Parts:
    """Return the deepest folder that has all of *paths* in it."""
    folders = [parts[:-1] for parts in paths]
    above = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        above.append(names[0])
    return tuple(above)


def _without_doubles(paths: Sequence[Parts]) -> Iterator[Parts]:
    """Yield each path once, and none that is in another one."""
    wanted = set(paths)
    for parts in dict.fromkeys(paths):
        if not any(parts[:depth] in wanted for depth in range(len(parts))):
            yield parts


class _Packing:
    """One archive on its way."""

    def __init__(self, writer: Writer, work: Work, hidden: Set[str]) -> None:
        self._writer = writer
        self._work = work
        self._hidden = hidden
        self._members = 0
        self._skipped = 0

    @property
    def result(self) -> Archived:
        """What was sent so far."""
        return Archived(self._members, self._work.done, self._skipped)

    def add(self, tree: Tree, parts: Parts, above: int) -> None:
        """Send an entry, under its name without the first *above* folders."""
        if not parts:
            self._add_content(tree.fileno(), [], self._hidden)
            return
        names = list(parts[above:])
        with tree.folder_of(parts) as folder:
            if kind_of(look_at(folder, parts[-1]).st_mode) is not Kind.FOLDER:
                self._add_flat(folder, parts[-1], names)
                return
            opened = open_folder(folder, parts[-1:], one_mount=True)
        try:
            self._add_folder(opened, names)
            self._add_content(opened, names)
        finally:
            os.close(opened)

    def finish(self) -> None:
        """Send the end of the archive."""
        self._writer.finish()

    def _add_content(
        self, top: int, above: list[str], hidden: Set[str] = frozenset()
    ) -> None:
        names = list(above)
        with closing(walk(top, hidden=hidden)) as visits:
            for visit in visits:
                if visit.act is Act.LEAVE:
                    names.pop()
                elif visit.act is Act.ENTER:
                    names.append(visit.name)
                    self._add_folder(visit.folder, names)
                else:
                    self._add_flat(visit.folder, visit.name, [*names, visit.name])

    def _add_folder(self, folder: int, names: list[str]) -> None:
        if (name := self._spell(names)) is not None:
            self._writer.add_folder(name, os.fstat(folder))
            self._count()

    def _add_flat(self, folder: int, own_name: str, names: list[str]) -> None:
        """Send what is no folder; what was removed meanwhile is left out."""
        name = self._spell(names)
        if name is None:
            return
        try:
            facts = look_at(folder, own_name)
            kind = kind_of(facts.st_mode)
            if kind is Kind.LINK:
                target = os.fsencode(os.readlink(own_name, dir_fd=folder))
                self._writer.add_link(name, facts, target)
                self._count()
            elif kind is Kind.FILE:
                opened = open_beneath(folder, (own_name,), os.O_RDONLY, one_mount=True)
                self._add_file(name, opened)
            else:
                self._skipped += 1
        except FileNotFoundError:
            self._skipped += 1

    def _add_file(self, name: bytes, opened: int) -> None:
        try:
            facts = os.fstat(opened)
            self._writer.add_file(name, facts, self._read(opened, facts.st_size))
            self._count()
        finally:
            os.close(opened)

    def _read(self, opened: int, size: int) -> Iterator[bytes]:
        """Yield at most *size* bytes, whatever is written to the file meanwhile."""
        while size and (chunk := os.read(opened, min(CHUNK, size))):
            size -= len(chunk)
            self._work.advance(len(chunk))
            yield chunk

    def _spell(self, names: list[str]) -> bytes | None:
        """Spell a member's name; None, and one more left out, if it is too long."""
        name = os.fsencode("/".join(names))
        if len(name) < LONGEST_NAME:
            return name
        self._skipped += 1
        return None

    def _count(self) -> None:
        self._members += 1
        self._work.advance(0)
