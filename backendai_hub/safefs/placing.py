"""Put an entry where it belongs, in one step that others see whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backendai_hub.safefs import kernel
from backendai_hub.safefs.entries import look_at
from backendai_hub.safefs.opening import open_beneath
from backendai_hub.safefs.paths import MAX_NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backendai_hub.safefs.work import Tally

_replacing: Final = threading.Lock()
_MAX_COPIES: Final = 10_000
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})


class Conflict(StrEnum):
    """What to do when the name is taken: refuse, replace the file, take another."""

    FAIL = "fail"
    REPLACE = "replace"
    RENAME = "rename"


def place(
    source_folder: int,
    source: str,
    folder: int,
    name: str,
    conflict: Conflict,
    tally: Tally | None = None,
) -> str:
    """Move *source* to *name* in *folder*, and return the name it has there.

    ``FileExistsError`` says that the name is taken, and nothing was changed. What is
    replaced is added to *tally*.
    """
    if tally is None or conflict is not Conflict.REPLACE:
        return _place_or_unlock(source_folder, source, folder, name, conflict)
    # Of two that replace the same only one has replaced what was there.
    with _replacing:
        before = None
        with suppress(FileNotFoundError):
            before = look_at(folder, name)
        placed = _place_or_unlock(source_folder, source, folder, name, conflict)
        if before is not None:
            tally.add(before)
        return placed


def _place_or_unlock(
    source_folder: int, source: str, folder: int, name: str, conflict: Conflict
) -> str:
    try:
        return _place(source_folder, source, folder, name, conflict)
    except PermissionError:
        with _unlocked(source_folder, source):
            return _place(source_folder, source, folder, name, conflict)


def _place(
    source_folder: int, source: str, folder: int, name: str, conflict: Conflict
) -> str:
    if conflict is Conflict.REPLACE:
        _replace(source_folder, source, folder, name)
        return name
    if conflict is Conflict.FAIL:
        rename_to_free(source_folder, source, folder, name)
        return name
    for candidate in other_names(name):
        try:
            rename_to_free(source_folder, source, folder, candidate)
        except FileExistsError:
            continue
        return candidate
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


@contextmanager
def _unlocked(folder: int, name: str) -> Iterator[None]:
    """Let a folder of our own be moved although its owner locked it.

    Only root may move a folder elsewhere that it could not change.
    """
    try:
        seen = open_beneath(folder, (name,), os.O_PATH | os.O_DIRECTORY)
    except OSError as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error
    there = Path(f"/proc/self/fd/{seen}")
    try:
        mode = stat.S_IMODE(os.fstat(seen).st_mode)
        there.chmod(mode | stat.S_IWUSR)
        try:
            yield
        finally:
            there.chmod(mode)
    finally:
        os.close(seen)


def other_names(name: str) -> Iterator[str]:
    """Yield *name*, then ``name (1)``, ``name (2)``, … as long as names may be."""
    yield name
    stem, dot, suffix = name.rpartition(".")
    if not stem.strip(".") or len(suffix) > 16:
        stem, dot, suffix = name, "", ""
    for number in range(1, _MAX_COPIES):
        ending = f" ({number}){dot}{suffix}"
        yield _shorten(stem, MAX_NAME_BYTES - len(os.fsencode(ending))) + ending


def rename_to_free(source_folder: int, source: str, folder: int, name: str) -> None:
    """Rename to a name that must be free, also where the kernel has no call for it."""
    try:
        kernel.rename_without_replacing(
            source, name, source_folder=source_folder, target_folder=folder
        )
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _rename_by_hand(source_folder, source, folder, name)


def _rename_by_hand(source_folder: int, source: str, folder: int, name: str) -> None:
    """Rename to a free name by the calls that every file system has.

    A folder can replace at most an empty folder that is made at this very moment.
    """
    if stat.S_ISDIR(look_at(source_folder, source).st_mode):
        try:
            look_at(folder, name)
        except FileNotFoundError:
            os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=folder)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    try:
        os.link(
            source,
            name,
            src_dir_fd=source_folder,
            dst_dir_fd=folder,
            follow_symlinks=False,
        )
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _rename_over_own(source_folder, source, folder, name)
    else:
        os.unlink(source, dir_fd=source_folder)


def _rename_over_own(source_folder: int, source: str, folder: int, name: str) -> None:
    """Take the name with an empty file, then put the real one in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(name, flags, 0o600, dir_fd=folder))
    try:
        os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise


def _replace(source_folder: int, source: str, folder: int, name: str) -> None:
    """Rename over what is there; two names of one file become one name."""
    before = look_at(source_folder, source)
    os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=folder)
    if before.st_nlink == 1 or stat.S_ISDIR(before.st_mode):
        return
    same_place = source == name and os.path.sameopenfile(source_folder, folder)
    if same_place or not _is(source_folder, source, before):
        return
    os.unlink(source, dir_fd=source_folder)  # the kernel left both


def _is(folder: int, name: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(look_at(folder, name), wanted)
    except FileNotFoundError:
        return False


def _shorten(text: str, limit: int) -> str:
    while len(os.fsencode(text)) > limit:
        text = text[:-1]
    return text
