"""Unpack archives by rules of our own.

Nothing is ever made but files and folders, each beneath the target and each only once.
Everything is unpacked beside the target first; it appears when all of it is there.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from backendai_hub.core.errors import HubError
from backendai_hub.safefs.entries import Kind, exists
from backendai_hub.safefs.errors import (
    ArchiveRefusedError,
    EntryExistsError,
    EntryMissingError,
    in_words,
)
from backendai_hub.safefs.making import make_file, make_folder
from backendai_hub.safefs.members import Limits, Member, Meter, read_member_name
from backendai_hub.safefs.opening import open_folder
from backendai_hub.safefs.paths import Parts, quote
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.tar_reading import read_tar
from backendai_hub.safefs.work import Tally, Work
from backendai_hub.safefs.zip_reading import read_zip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backendai_hub.safefs.measuring import Usage
    from backendai_hub.safefs.tree import Tree

_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644
_ZIP_MARKS: Final = (b"PK\3\4", b"PK\5\6")
_GZIP_MARK: Final = b"\x1f\x8b"
_TAR_MARK_AT: Final = 257


class Extracted(NamedTuple):
    """Where it is, how much it is, and how many links and the like were left out."""

    parts: Parts
    files: int
    bytes: int
    skipped: int
    usage: Usage
    """What has come: all entries, with the folder if that was made, too."""
    replaced: Tally


def extract(
    tree: Tree,
    archive: int,
    target: Parts,
    *,
    limits: Limits | None = None,
    conflict: Conflict = Conflict.FAIL,
    work: Work | None = None,
) -> Extracted:
    """Unpack the file that *archive* is open on into the folder *target*.

    A target that is missing is made. Into one that exists what the archive has at its
    top is moved entry by entry; *conflict* says what happens to names that are taken.
    *work* counts bytes.
    """
    limits = limits or Limits()
    work, tally = work or Work(), Tally()
    with tree.staged() as (unfinished, name):
        unfinished.make_folder((name,))
        with unfinished.enter((name,)) as top:
            unpacking = _Unpacking(top, limits, work)
            with in_words(target), closing(unpacking):
                for member in read_archive(archive, limits, unpacking.meter):
                    unpacking.add(member)
            usage = top.usage()
            if _is_folder(tree, target):
                merge(top, tree, target, conflict, tally)
                placed = target
            else:
                usage = msgspec.structs.replace(usage, entries=usage.entries + 1)
                placed = unfinished.move(
                    (name,), target, conflict=conflict, to=tree, tally=tally
                )
    return Extracted(
        placed, unpacking.files, work.done, unpacking.skipped, usage, tally
    )


def read_archive(archive: int, limits: Limits, meter: Meter) -> Iterator[Member]:
    """Yield the members of an archive of any kind that we know."""
    start = os.pread(archive, _TAR_MARK_AT + 5, 0)
    if start.startswith(_ZIP_MARKS):
        return read_zip(archive, limits, meter)
    nothing = start and not start.strip(b"\0")
    if start.startswith(_GZIP_MARK) or start[_TAR_MARK_AT:] == b"ustar" or nothing:
        return read_tar(archive, meter)
    raise ArchiveRefusedError("this is no archive: ZIP, tar and tar.gz are known here")


class _Unpacking:
    """One archive on its way into an empty folder."""

    def __init__(self, top: Tree, limits: Limits, work: Work) -> None:
        self._top = top
        self._limits = limits
        self._work = work
        self._folder: tuple[Parts, int] | None = None
        self.meter = Meter(limits)
        self.files = 0
        self.skipped = 0

    def add(self, member: Member) -> None:
        """Unpack one member."""
        parts = read_member_name(member.name, self._limits)
        if member.kind is Kind.FOLDER:
            self._enter(parts)
        elif member.kind is Kind.FILE and parts:
            self._add_file(parts, member)
        elif not self._limits.skip_links:
            raise ArchiveRefusedError(
                f"{quote(parts)} is a link or a device; only files and folders are "
                "unpacked"
            )
        else:
            self.skipped += 1
        self._work.advance(0)

    def close(self) -> None:
        """Let go of what is open."""
        if self._folder is not None:
            os.close(self._folder[1])
            self._folder = None

    def _add_file(self, parts: Parts, member: Member) -> None:
        self._work.expect(member.size)
        self.meter.expect(member.size)
        folder = self._enter(parts[:-1])
        mode = _EXECUTABLE if member.executable else _PLAIN
        try:
            made = make_file(folder, parts[-1:], self._top.owner, mode=mode)
        except FileExistsError:
            raise ArchiveRefusedError(
                f"{quote(parts)} is in the archive twice"
            ) from None
        try:
            for chunk in member.chunks:
                self._work.advance(len(chunk))
                _write(made, chunk)
            with suppress(OverflowError, PermissionError):
                os.utime(made, (member.modified, member.modified))
        finally:
            os.close(made)
        self.files += 1

    def _enter(self, parts: Parts) -> int:
        """Return the folder *parts*, and make it if it is not there yet."""
        if self._folder is not None and self._folder[0] == parts:
            return self._folder[1]
        folder = os.dup(self._top.fileno())
        try:
            for depth, name in enumerate(parts, 1):
                folder = self._step(folder, name, parts[:depth])
        except BaseException:
            os.close(folder)
            raise
        self.close()
        self._folder = parts, folder
        return folder

    def _step(self, folder: int, name: str, parts: Parts) -> int:
        """Exchange *folder* for the one in it that is called *name*."""
        try:
            deeper = open_folder(folder, (name,), one_mount=True)
        except NotADirectoryError:
            raise ArchiveRefusedError(
                f"{quote(parts)} is a file and a folder in the archive"
            ) from None
        except FileNotFoundError:
            self.meter.count_member()
            make_folder(folder, name, self._top.owner)
            deeper = open_folder(folder, (name,), one_mount=True)
        os.close(folder)
        return deeper


def _write(made: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(made, left) :]


def _is_folder(tree: Tree, parts: Parts) -> bool:
    try:
        return tree.stat(parts).kind is Kind.FOLDER
    except EntryMissingError:
        return False


def merge(
    top: Tree, tree: Tree, target: Parts, conflict: Conflict, tally: Tally
) -> None:
    """Move what is in *top* into a folder that exists, all of it or nothing.

    Only replaced files do not come back when something else fails after them.
    """
    with os.scandir(top.fileno()) as entries:
        names = sorted(entry.name for entry in entries)
    _check_free(top, tree, target, names, conflict)
    moved: list[tuple[str, Parts]] = []
    try:
        for name in names:
            into = (*target, name)
            placed = top.move((name,), into, conflict=conflict, to=tree, tally=tally)
            moved.append((name, placed))
    except HubError:
        if conflict is not Conflict.REPLACE:
            for name, placed in moved:
                with suppress(HubError):
                    tree.move(placed, (name,), to=top)
        raise


def _check_free(
    top: Tree, tree: Tree, target: Parts, names: list[str], conflict: Conflict
) -> None:
    """Refuse names that are taken before anything is moved."""
    if conflict is Conflict.RENAME:
        return
    with tree.enter(target) as into:
        for name in names:
            if not exists(into.fileno(), name):
                continue
            taken = (*target, name)
            if conflict is Conflict.FAIL:
                raise EntryExistsError(
                    f"{quote(taken)}: something of that name exists already"
                )
            if Kind.FOLDER in {into.stat((name,)).kind, top.stat((name,)).kind}:
                raise EntryExistsError(
                    f"{quote(taken)} exists already, and folders are not replaced"
                )
