"""Go through a tree of any depth and width with few descriptors and little memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from backendai_hub.safefs.opening import open_folder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Set

Unlock = Callable[[int, str], None]

_KEPT: Final = 16
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV})


class Ladder:
    """A place in a tree, of which only the last few folders are held open.

    Going up again it is made sure that the folder above is the one we came from.
    """

    def __init__(self, top: int) -> None:
        self._open = [os.dup(top)]
        self._names: list[str] = []
        self._above: list[os.stat_result] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._open:
            os.close(self._open.pop())

    @property
    def folder(self) -> int:
        """The folder where we are; valid until the next step."""
        return self._open[-1]

    @property
    def depth(self) -> int:
        """How many folders we are below the top."""
        return len(self._names)

    def down(self, name: str) -> None:
        """Step into the folder *name*, never over a link or onto another mount."""
        above = os.fstat(self.folder)
        self._open.append(open_folder(self.folder, (name,), one_mount=True))
        self._names.append(name)
        self._above.append(above)
        if len(self._open) > _KEPT:
            os.close(self._open.pop(0))

    def up(self) -> str:
        """Step back, and return the name of the folder that was left."""
        expected = self._above.pop()
        if len(self._open) == 1:
            self._open.insert(0, self._find_above(expected))
        os.close(self._open.pop())
        return self._names.pop()

    def _find_above(self, expected: os.stat_result) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        above = os.open("..", flags, dir_fd=self.folder)
        if not os.path.samestat(os.fstat(above), expected):
            os.close(above)
            raise OSError(errno.EAGAIN, "a folder was moved away while we were in it")
        return above


class Act(Enum):
    """What a visit is: an entry that is no folder, or the way into or out of one."""

    ENTRY = auto()
    ENTER = auto()
    LEAVE = auto()


class Visit(NamedTuple):
    """``folder`` holds ``name``; while entering it is the folder itself."""

    act: Act
    folder: int
    name: str


def walk(
    top: int, *, unlock: Unlock | None = None, hidden: Set[str] = frozenset()
) -> Generator[Visit]:
    """Visit everything below *top*, a folder's entries before its folders.

    What disappears meanwhile is passed over, and what is mounted in the tree, too; and
    what is directly in *top* by a name in *hidden*. *unlock* is asked to open up a
    folder that may not be entered.
    """
    with Ladder(top) as ladder:
        folders = _Names()
        yield from _read(ladder.folder, folders, hidden)
        waiting = [iter(folders)]
        while waiting:
            name = next(waiting[-1], None)
            if name is not None:
                if _step_into(ladder, name, unlock):
                    yield Visit(Act.ENTER, ladder.folder, name)
                    folders = _Names()
                    yield from _read(ladder.folder, folders)
                    waiting.append(iter(folders))
                continue
            waiting.pop()
            if waiting:
                left = ladder.up()
                yield Visit(Act.LEAVE, ladder.folder, left)


def _step_into(ladder: Ladder, name: str, unlock: Unlock | None) -> bool:
    try:
        try:
            ladder.down(name)
        except PermissionError:
            if unlock is None:
                raise
            unlock(ladder.folder, name)
            ladder.down(name)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return False
    return True


def _read(
    folder: int, folders: _Names, hidden: Set[str] = frozenset()
) -> Iterator[Visit]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in hidden:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.add(entry.name)
            else:
                yield Visit(Act.ENTRY, folder, entry.name)


class _Names:
    """Many names in little memory."""

    def __init__(self) -> None:
        self._text = bytearray()

    def add(self, name: str) -> None:
        self._text += os.fsencode(name) + b"\0"

    def __iter__(self) -> Iterator[str]:
        start = 0
        while (end := self._text.find(b"\0", start)) >= 0:
            yield os.fsdecode(bytes(self._text[start:end]))
            start = end + 1
