"""A folder of a user as a tree: everything that may be done with what is in it."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import uuid4

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.copying import Copier
from backendai_hub.safefs.entries import Entry, describe, describe_entry, look_at
from backendai_hub.safefs.errors import (
    EntryExistsError,
    EntryMissingError,
    NotAFileError,
    in_words,
)
from backendai_hub.safefs.listing import Listing, Page, list_folder
from backendai_hub.safefs.making import FILE_MODE, Owner, make_file, make_folder
from backendai_hub.safefs.measuring import Usage, measure
from backendai_hub.safefs.opening import open_beneath, open_folder, open_root
from backendai_hub.safefs.paths import Parts, check_depth, quote
from backendai_hub.safefs.placing import Conflict, place
from backendai_hub.safefs.remembered import Memory
from backendai_hub.safefs.removing import remove_content, remove_entry
from backendai_hub.safefs.work import Tally, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Copied(NamedTuple):
    """Where a copy is, its bytes, and how many pipes and the like were left out."""

    parts: Parts
    bytes: int
    skipped: int


class Tree:
    """What lies beneath one folder. Paths are parts, as :mod:`.paths` reads them.

    The tree owns the descriptor it is made of, and closes it. Refusals are
    ``HubError`` whose words name the path; what they are about is unchanged.

    What takes long to make is made in *staging*, a tree of the same file system, and
    moved to its place when it is complete. A tree without one uses its own root.
    """

    def __init__(
        self, root: int, *, owner: Owner | None = None, staging: Tree | None = None
    ) -> None:
        self._root = root
        self._owner = owner
        self._staging = staging

    @classmethod
    def at(
        cls,
        path: str | Path,
        *,
        owner: Owner | None = None,
        staging: Tree | None = None,
    ) -> Self:
        """Open the tree at a path that the site chose, never a user."""
        return cls(open_root(path), owner=owner, staging=staging)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tree's own descriptor."""
        os.close(self._root)

    def fileno(self) -> int:
        """Return the descriptor of the tree's root."""
        return self._root

    def enter(self, parts: Parts) -> Tree:
        """Open the tree beneath a folder of this one."""
        with in_words(parts):
            opened = open_folder(self._root, parts, one_mount=True)
        return Tree(opened, owner=self._owner, staging=self._staging)

    def stat(self, parts: Parts) -> Entry:
        """Describe one entry; the root is a folder without a name."""
        with in_words(parts):
            if not parts:
                return describe("", os.fstat(self._root))
            with self.folder_of(parts) as folder:
                return describe_entry(folder, parts[-1])

    def list(
        self,
        parts: Parts,
        listing: Listing | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        memory: Memory | None = None,
    ) -> Page:
        """Return one page of a folder's entries, perhaps as *memory* knows it."""
        with in_words(parts):
            folder = open_folder(self._root, parts, one_mount=True)
            try:
                return list_folder(folder, listing or Listing(), cancelled, memory)
            finally:
                os.close(folder)

    def open_read(self, parts: Parts) -> int:
        """Open a regular file for reading; the caller closes the descriptor."""
        return self._open_file(parts, os.O_RDONLY)

    def open_write(self, parts: Parts) -> int:
        """Open a regular file that exists for writing, its content kept."""
        return self._open_file(parts, os.O_RDWR)

    def create(self, parts: Parts, *, mode: int = FILE_MODE) -> int:
        """Make a new, empty file and open it for reading and writing."""
        _check_new(parts)
        with in_words(parts):
            return make_file(self._root, parts, self._owner, mode=mode)

    def make_folder(
        self, parts: Parts, *, parents: bool = False, exist_ok: bool = False
    ) -> int:
        """Make a folder, with ``parents`` also those above it that are missing.

        Returns how many were made.
        """
        _check_new(parts)
        made = 0
        if parents:
            for depth in range(1, len(parts)):
                made += self._make_one_folder(parts[:depth], exist_ok=True)
        return made + self._make_one_folder(parts, exist_ok=exist_ok)

    def move(
        self,
        source: Parts,
        target: Parts,
        *,
        conflict: Conflict = Conflict.FAIL,
        to: Tree | None = None,
        tally: Tally | None = None,
    ) -> Parts:
        """Move or rename an entry, also *to* another tree of the same file system.

        Returns where it is now: another name than *target* if that was the choice.
        *tally* counts what was replaced.
        """
        _check_inside(source)
        _check_new(target)
        with in_words(source), self.folder_of(source) as source_folder:
            look_at(source_folder, source[-1])
            with in_words(target), (to or self).folder_of(target) as folder:
                name = place(
                    source_folder, source[-1], folder, target[-1], conflict, tally
                )
        return (*target[:-1], name)

    def publish(
        self,
        source: Parts,
        target: Parts,
        *,
        conflict: Conflict = Conflict.FAIL,
        to: Tree | None = None,
        tally: Tally | None = None,
    ) -> Parts:
        """Move a finished file to where it is seen, so that a power cut cannot undo it.

        The file's content is on the disk before it appears, and its name before this
        returns.
        """
        written = self.open_read(source)
        try:
            with in_words(source):
                os.fsync(written)
        finally:
            os.close(written)
        placed = self.move(source, target, conflict=conflict, to=to, tally=tally)
        (to or self).sync_folder(placed[:-1])
        self.sync_folder(source[:-1])
        return placed

    def sync_folder(self, parts: Parts) -> None:
        """Have the names of a folder on the disk before returning."""
        with in_words(parts):
            folder = open_folder(self._root, parts, one_mount=True)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(
        self,
        parts: Parts,
        *,
        work: Work | None = None,
    ) -> int:
        """Remove an entry with everything in it; of the root only what is in it.

        Returns how many entries were removed, which *work* counts. What was not
        removed when it was stopped is where it was.
        """
        work = work or Work()
        with in_words(parts):
            if not parts:
                remove_content(self._root, work)
            else:
                with self.folder_of(parts) as folder:
                    remove_entry(folder, parts[-1], work)
        return work.done

    def copy(
        self,
        source: Parts,
        target: Parts,
        *,
        conflict: Conflict = Conflict.FAIL,
        to: Tree | None = None,
        work: Work | None = None,
        tally: Tally | None = None,
    ) -> Copied:
        """Copy an entry, also *to* another tree; it appears when it is complete.

        *work* counts bytes, and may limit them.
        """
        _check_inside(source)
        _check_new(target)
        other, work = to or self, work or Work()
        copier = Copier(other.owner, work)
        with other.staged() as (unfinished, made):
            with in_words(source), self.folder_of(source) as folder:
                copier.copy(folder, source[-1], unfinished.fileno(), made)
            placed = unfinished.move(
                (made,), target, conflict=conflict, to=other, tally=tally
            )
        return Copied(placed, work.done, copier.skipped)

    def copy_all(self, to: Tree, *, work: Work | None = None) -> Copied:
        """Copy everything of this tree into an empty one; what fails stays there."""
        work = work or Work()
        copier = Copier(to.owner, work)
        with in_words(()):
            copier.copy_content(self._root, to.fileno())
        return Copied((), work.done, copier.skipped)

    def usage(self, parts: Parts = (), *, work: Work | None = None) -> Usage:
        """Add up what is below a folder; *work* counts entries."""
        with in_words(parts):
            folder = open_folder(self._root, parts, one_mount=True)
            try:
                return measure(folder, work or Work())
            finally:
                os.close(folder)

    def weigh(self, parts: Parts, *, work: Work | None = None) -> Usage:
        """Add up an entry with everything below it; *work* counts entries."""
        with in_words(parts), self.folder_of(parts) as folder:
            found = look_at(folder, parts[-1])
        if not stat.S_ISDIR(found.st_mode):
            size = found.st_size if stat.S_ISREG(found.st_mode) else 0
            blocks = found.st_blocks * 512
            return Usage(size, blocks, entries=1, kept=min(size, blocks))
        below = self.usage(parts, work=work)
        return msgspec.structs.replace(below, entries=below.entries + 1)

    @property
    def owner(self) -> Owner | None:
        """Whom new files belong to."""
        return self._owner

    @contextmanager
    def staged(self) -> Iterator[tuple[Tree, str]]:
        """Name a place for what is unfinished; what is left there at the end goes."""
        unfinished = self._staging or self
        name = f".unfinished-{uuid4().hex}"
        try:
            yield unfinished, name
        finally:
            with suppress(EntryMissingError):
                unfinished.remove((name,))

    def _open_file(self, parts: Parts, flags: int) -> int:
        with in_words(parts):
            opened = open_beneath(self._root, parts, flags, one_mount=True)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise NotAFileError(f"{quote(parts)}: it is a folder, not a file")
        return opened

    def _make_one_folder(self, parts: Parts, *, exist_ok: bool) -> bool:
        try:
            with in_words(parts), self.folder_of(parts) as folder:
                make_folder(folder, parts[-1], self._owner)
        except EntryExistsError:
            if not exist_ok:
                raise
            with in_words(parts):
                os.close(open_folder(self._root, parts, one_mount=True))
            return False
        return True

    @contextmanager
    def folder_of(self, parts: Parts) -> Iterator[int]:
        """Hold the folder open that has, or will have, the last of *parts*."""
        folder = open_folder(self._root, parts[:-1], one_mount=True)
        try:
            yield folder
        finally:
            os.close(folder)


def _check_new(parts: Parts) -> None:
    _check_inside(parts)
    check_depth(parts)


def _check_inside(parts: Parts) -> None:
    if not parts:
        raise InvalidRequestError("the path is missing: name what is meant")
