"""Copy files, links and whole trees, without ever following a link.

Permissions (not set-user-id and its like) and times go along. A link stays the text it
is. Pipes, sockets and devices are left out and counted. Each name of a file with
several becomes a file of its own. What shares blocks on its file system still does.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from backendai_hub.safefs.entries import Kind, kind_of, look_at
from backendai_hub.safefs.making import Owner, make_file, make_folder, make_link
from backendai_hub.safefs.opening import open_beneath, open_folder
from backendai_hub.safefs.walking import Act, Ladder, walk

if TYPE_CHECKING:
    from backendai_hub.safefs.work import Work

_CHUNK: Final = 8 * 1024 * 1024
_FICLONE: Final = 0x40049409
_NOT_IN_KERNEL: Final = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF}
)
_PLAIN_MODE: Final = 0o777


class Copier:
    """Copies for one owner; *work* counts bytes, ``skipped`` what was left out."""

    def __init__(self, owner: Owner | None, work: Work) -> None:
        self._owner = owner
        self._work = work
        self.skipped = 0

    def copy(self, folder: int, name: str, target: int, new_name: str) -> None:
        """Copy *name* of *folder* to *new_name* in *target*, where that is free."""
        if kind_of(look_at(folder, name).st_mode) is not Kind.FOLDER:
            self._copy_flat(folder, name, target, new_name)
            return
        source = open_folder(folder, (name,), one_mount=True)
        try:
            make_folder(target, new_name, self._owner)
            made = open_folder(target, (new_name,), one_mount=True)
            try:
                self.copy_content(source, made)
            finally:
                os.close(made)
        finally:
            os.close(source)

    def copy_content(self, source: int, target: int) -> None:
        """Copy everything that is in the folder *source* into the folder *target*."""
        facts: list[os.stat_result] = [os.fstat(source)]
        with Ladder(target) as ladder:
            for visit in walk(source):
                if visit.act is Act.ENTRY:
                    name = visit.name
                    self._copy_flat(visit.folder, name, ladder.folder, name)
                elif visit.act is Act.ENTER:
                    facts.append(os.fstat(visit.folder))
                    make_folder(ladder.folder, visit.name, self._owner)
                    ladder.down(visit.name)
                    self._work.advance(0)
                else:
                    _take_over(ladder.folder, facts.pop())
                    ladder.up()
        _take_over(target, facts.pop())

    def _copy_flat(self, folder: int, name: str, target: int, new_name: str) -> None:
        """Copy what is no folder. What was removed meanwhile is no part of the copy."""
        try:
            kind = kind_of(look_at(folder, name).st_mode)
            if kind is Kind.LINK:
                text = os.readlink(name, dir_fd=folder)
                make_link(target, new_name, text, self._owner)
            elif kind is Kind.FILE:
                source = open_beneath(folder, (name,), os.O_RDONLY, one_mount=True)
                try:
                    self._copy_file(source, target, new_name)
                finally:
                    os.close(source)
            else:
                self.skipped += 1
        except FileNotFoundError:
            self.skipped += 1
        self._work.advance(0)

    def _copy_file(self, source: int, target: int, new_name: str) -> None:
        facts = os.fstat(source)
        self._work.expect(facts.st_size)
        made = make_file(target, (new_name,), self._owner, mode=0o600)
        try:
            if _share(source, made):
                self._work.advance(facts.st_size)
            else:
                self._copy_bytes(source, made, facts.st_size)
            _take_over(made, facts)
        finally:
            os.close(made)

    def _copy_bytes(self, source: int, made: int, size: int) -> None:
        """Copy *size* bytes, and leave holes where the source has holes."""
        place = 0
        while place < size:
            start = min(_seek_data(source, place, size), size)
            self._work.advance(start - place)
            end = min(_seek_hole(source, start, size), size)
            place = start
            while place < end:
                copied = _copy_range(source, made, place, min(_CHUNK, end - place))
                if not copied:  # it became shorter
                    return
                place += copied
                self._work.advance(copied)
        os.ftruncate(made, size)


def _take_over(made: int, facts: os.stat_result) -> None:
    """Give *made* the permissions and the times of what it is a copy of.

    File systems of other worlds have none; a copy is a copy there all the same.
    """
    with suppress(PermissionError):
        os.fchmod(made, stat.S_IMODE(facts.st_mode) & _PLAIN_MODE)
    with suppress(PermissionError, OverflowError):
        os.utime(made, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _share(source: int, made: int) -> bool:
    """Let both files have the same blocks, where the file system can."""
    try:
        fcntl.ioctl(made, _FICLONE, source)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        return False
    return True


def _copy_range(source: int, made: int, place: int, count: int) -> int:
    try:
        return os.copy_file_range(source, made, count, place, place)
    except OSError as error:
        if error.errno not in _NOT_IN_KERNEL:
            raise
    content = memoryview(os.pread(source, min(count, 1024 * 1024), place))
    written = 0
    while written < len(content):
        written += os.pwrite(made, content[written:], place + written)
    return written


def _seek_data(source: int, place: int, size: int) -> int:
    try:
        return os.lseek(source, place, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left
            return size
        return place


def _seek_hole(source: int, place: int, size: int) -> int:
    try:
        return os.lseek(source, place, os.SEEK_HOLE)
    except OSError:
        return size
