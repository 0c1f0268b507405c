"""Remove a file or a whole tree, whatever it holds and however deep it is."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backendai_hub.safefs.entries import look_at
from backendai_hub.safefs.opening import open_beneath, open_folder
from backendai_hub.safefs.walking import Act, walk

if TYPE_CHECKING:
    from backendai_hub.safefs.work import Work

_ROUNDS: Final = 8
_FULL: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def remove_entry(folder: int, name: str, work: Work) -> None:
    """Remove *name* from *folder*; links are removed, never followed.

    *work* counts entries. What others add meanwhile is removed, too, if it comes to
    an end.
    """
    if not stat.S_ISDIR(look_at(folder, name).st_mode):
        os.unlink(name, dir_fd=folder)
        work.advance(1)
        return
    for _ in range(_ROUNDS):
        top = _open_locked(folder, name)
        try:
            remove_content(top, work)
        finally:
            os.close(top)
        if _remove_empty(folder, name):
            work.advance(1)
            return
    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))


def remove_content(top: int, work: Work) -> None:
    """Remove what is in the folder *top*, and leave the folder."""
    for visit in walk(top, unlock=_unlock):
        if visit.act is Act.ENTRY:
            with suppress(FileNotFoundError):
                os.unlink(visit.name, dir_fd=visit.folder)
            work.advance(1)
        elif visit.act is Act.ENTER:
            _allow_changes(visit.folder)
        elif _remove_empty(visit.folder, visit.name):
            work.advance(1)


def _open_locked(folder: int, name: str) -> int:
    """Open a folder that is to be emptied, even if its owner locked it."""
    try:
        top = open_folder(folder, (name,), one_mount=True)
    except PermissionError:
        _unlock(folder, name)
        top = open_folder(folder, (name,), one_mount=True)
    _allow_changes(top)
    return top


def _unlock(folder: int, name: str) -> None:
    """Let ourselves into a folder of our own that is locked."""
    seen = open_beneath(folder, (name,), os.O_PATH | os.O_DIRECTORY, one_mount=True)
    try:
        Path(f"/proc/self/fd/{seen}").chmod(stat.S_IRWXU)
    finally:
        os.close(seen)


def _allow_changes(folder: int) -> None:
    """Let ourselves remove what is in a folder of our own."""
    facts = os.fstat(folder)
    if facts.st_mode & stat.S_IRWXU == stat.S_IRWXU or os.geteuid() == 0:
        return
    with suppress(PermissionError):  # it is not ours: removing will tell
        os.fchmod(folder, stat.S_IRWXU)


def _remove_empty(folder: int, name: str) -> bool:
    """Remove a folder if it is empty; tell whether it is gone."""
    try:
        os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in _FULL:
            raise
        return False
    return True
