"""A folder of a user as a tree: everything that may be done with what is in it."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.entries import Entry, describe, describe_entry, look_at
from backendai_hub.safefs.errors import (
    EntryExistsError,
    NotAFileError,
    in_words,
)
from backendai_hub.safefs.listing import Listing, Page, list_folder
from backendai_hub.safefs.opening import open_beneath, open_folder, open_root
from backendai_hub.safefs.paths import Parts, check_depth, quote
from backendai_hub.safefs.placing import Conflict, place
from backendai_hub.safefs.removing import remove_content, remove_entry
from backendai_hub.safefs.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755


class Owner(NamedTuple):
    """Whom new files belong to; None of these: whoever this process runs as."""

    user: int
    group: int


class Tree:
    """What lies beneath one folder. Paths are parts, as :mod:`.paths` reads them.

    The tree owns the descriptor it is made of, and closes it. Refusals are
    ``HubError`` whose words name the path; what they are about is unchanged.
    """

    def __init__(self, root: int, *, owner: Owner | None = None) -> None:
        self._root = root
        self._owner = owner

    @classmethod
    def at(cls, path: str | Path, *, owner: Owner | None = None) -> Self:
        """Open the tree at a path that the site chose, never a user."""
        return cls(open_root(path), owner=owner)

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
        return Tree(opened, owner=self._owner)

    def stat(self, parts: Parts) -> Entry:
        """Describe one entry; the root is a folder without a name."""
        with in_words(parts):
            if not parts:
                return describe("", os.fstat(self._root))
            with self.folder_of(parts) as folder:
                return describe_entry(folder, parts[-1])

    def list(self, parts: Parts, listing: Listing | None = None) -> Page:
        """Return one page of a folder's entries."""
        with in_words(parts):
            folder = open_folder(self._root, parts, one_mount=True)
            try:
                return list_folder(folder, listing or Listing())
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
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        with in_words(parts):
            made = open_beneath(self._root, parts, flags, mode, one_mount=True)
            return self._give(made)

    def make_folder(
        self, parts: Parts, *, parents: bool = False, exist_ok: bool = False
    ) -> None:
        """Make a folder, with ``parents`` also those above it that are missing."""
        _check_new(parts)
        if parents:
            for depth in range(1, len(parts)):
                self._make_one_folder(parts[:depth], exist_ok=True)
        self._make_one_folder(parts, exist_ok=exist_ok)

    def move(
        self,
        source: Parts,
        target: Parts,
        *,
        conflict: Conflict = Conflict.FAIL,
        to: Tree | None = None,
    ) -> Parts:
        """Move or rename an entry, also *to* another tree of the same file system.

        Returns where it is now: another name than *target* if that was the choice.
        """
        _check_inside(source)
        _check_new(target)
        with in_words(source), self.folder_of(source) as source_folder:
            look_at(source_folder, source[-1])
            with in_words(target), (to or self).folder_of(target) as folder:
                name = place(source_folder, source[-1], folder, target[-1], conflict)
        return (*target[:-1], name)

    def publish(
        self,
        source: Parts,
        target: Parts,
        *,
        conflict: Conflict = Conflict.FAIL,
        to: Tree | None = None,
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
        placed = self.move(source, target, conflict=conflict, to=to)
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
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> int:
        """Remove an entry with everything in it; of the root only what is in it.

        Returns how many entries were removed.
        """
        work = Work(progress, cancelled)
        with in_words(parts):
            if not parts:
                remove_content(self._root, work)
            else:
                with self.folder_of(parts) as folder:
                    remove_entry(folder, parts[-1], work)
        return work.done

    def _open_file(self, parts: Parts, flags: int) -> int:
        with in_words(parts):
            opened = open_beneath(self._root, parts, flags, one_mount=True)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise NotAFileError(f"{quote(parts)}: it is a folder, not a file")
        return opened

    def _make_one_folder(self, parts: Parts, *, exist_ok: bool) -> None:
        try:
            with in_words(parts), self.folder_of(parts) as folder:
                os.mkdir(parts[-1], FOLDER_MODE, dir_fd=folder)
                if self._owner is not None:
                    os.close(self._give(open_folder(folder, parts[-1:])))
        except EntryExistsError:
            if not exist_ok:
                raise
            with in_words(parts):
                os.close(open_folder(self._root, parts, one_mount=True))

    @contextmanager
    def folder_of(self, parts: Parts) -> Iterator[int]:
        """Hold the folder open that has, or will have, the last of *parts*."""
        folder = open_folder(self._root, parts[:-1], one_mount=True)
        try:
            yield folder
        finally:
            os.close(folder)

    def _give(self, made: int) -> int:
        """Let what was just made belong to the tree's owner."""
        if self._owner is not None:
            try:
                os.fchown(made, self._owner.user, self._owner.group)
            except OSError:
                os.close(made)
                raise
        return made


def _check_new(parts: Parts) -> None:
    _check_inside(parts)
    check_depth(parts)


def _check_inside(parts: Parts) -> None:
    if not parts:
        raise InvalidRequestError("the path is missing: name what is meant")
