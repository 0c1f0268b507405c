"""Open what lies beneath a root, and never anything else.

The kernel does it in one call (``openat2``). Where it does not know that call, or a
filter forbids it, the same is done name by name, each without following links. Both
ways refuse alike: ``ELOOP`` for a link, ``EXDEV`` for what leaves the root or crosses
a mount, ``ENXIO`` for what is neither file nor folder. The last is looked at before it
is opened: a pipe never blocks, and a device never notices.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backendai_hub.safefs import kernel
from backendai_hub.safefs.paths import MAX_PATH_BYTES, check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALWAYS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
_BENEATH: Final = (
    kernel.RESOLVE_BENEATH | kernel.RESOLVE_NO_SYMLINKS | kernel.RESOLVE_NO_MAGICLINKS
)
_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TRIES: Final = 128
_NEW: Final = os.O_CREAT | os.O_EXCL
_LOOKING: Final = os.O_PATH | _ALWAYS


class Way(StrEnum):
    """How a path is followed."""

    KERNEL = "openat2"
    STEPS = "steps"


class _Choice:
    """The way that this process goes, if it is not the best one."""

    way: Way | None = None


def choose_way(way: Way | None) -> None:
    """Go *way* from now on; None: the best that works here."""
    _Choice.way = way


def current_way() -> Way:
    """Tell which way this process goes."""
    return _Choice.way or _best_way()


def open_root(path: str | Path) -> int:
    """Open a folder that the site's configuration names: the one path we trust."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_beneath(
    root: int,
    parts: Sequence[str],
    flags: int,
    mode: int = 0o644,
    *,
    one_mount: bool = False,
) -> int:
    """Open *parts* beneath *root* and return a descriptor that is not inherited.

    What is opened for reading or writing is a file or a folder. With ``O_PATH`` it may
    be anything, also a link itself.
    """
    for name in parts:
        check_name(name)
    flags |= _ALWAYS
    if _is_harmless(flags):
        return _follow(root, parts, flags, mode, one_mount=one_mount)
    for _ in range(_MAX_TRIES):
        try:
            return _open_checked(root, parts, flags, one_mount=one_mount)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        try:
            return _follow(root, parts, flags | _NEW, mode, one_mount=one_mount)
        except FileExistsError:
            continue  # made by somebody else just now: open theirs
    raise OSError(errno.EAGAIN, "it changes faster than it can be opened")


def open_folder(root: int, parts: Sequence[str], *, one_mount: bool = False) -> int:
    """Open a folder for looking into it."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    return open_beneath(root, parts, flags, one_mount=one_mount)


def _is_harmless(flags: int) -> bool:
    """Tell whether opening with *flags* can only ever open a folder or a new file."""
    if flags & (os.O_PATH | os.O_DIRECTORY):
        return True
    return flags & _NEW == _NEW


def _open_checked(
    root: int, parts: Sequence[str], flags: int, *, one_mount: bool
) -> int:
    seen = _follow(root, parts, _LOOKING, 0, one_mount=one_mount)
    try:
        mode = os.fstat(seen).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.ENXIO, "neither a file nor a folder")
        return reopen(seen, flags)
    finally:
        os.close(seen)


def reopen(descriptor: int, flags: int) -> int:
    """Open again, with other *flags*, exactly what *descriptor* is open on."""
    return os.open(f"/proc/self/fd/{descriptor}", flags & ~os.O_NOFOLLOW)


def _follow(
    root: int, parts: Sequence[str], flags: int, mode: int, *, one_mount: bool
) -> int:
    if not parts:
        return os.open(".", flags, mode, dir_fd=root)
    if sum(len(os.fsencode(name)) + 1 for name in parts) > MAX_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if current_way() is Way.STEPS:
        return _follow_steps(root, parts, flags, mode, one_mount=one_mount)
    return _follow_at_once(root, parts, flags, mode, one_mount=one_mount)


def _follow_at_once(
    root: int, parts: Sequence[str], flags: int, mode: int, *, one_mount: bool
) -> int:
    path = os.fsencode("/".join(parts))
    resolve = _BENEATH | (kernel.RESOLVE_NO_XDEV if one_mount else 0)
    mode = mode & 0o7777 if flags & os.O_CREAT else 0
    for _ in range(_MAX_TRIES):
        try:
            return kernel.openat2(root, path, flags, mode, resolve)
        except (BlockingIOError, InterruptedError):
            continue  # something was renamed while it looked
        except NotADirectoryError:
            _refuse_link_at(root, path, resolve)
            raise
    raise OSError(errno.EAGAIN, "it changes faster than it can be opened")


def _follow_steps(
    root: int, parts: Sequence[str], flags: int, mode: int, *, one_mount: bool
) -> int:
    mount = _mount_of(root) if one_mount else None
    folder = root
    try:
        for name in parts[:-1]:
            deeper = _step(folder, name)
            if folder != root:
                os.close(folder)
            folder = deeper
        _stay_on(mount, folder)  # before anything could be made there
        opened = _last_step(folder, parts[-1], flags, mode)
        try:
            _stay_on(mount, opened)
        except OSError:
            os.close(opened)
            raise
        return opened
    finally:
        if folder != root:
            os.close(folder)


def _step(folder: int, name: str) -> int:
    return _last_step(folder, name, _STEP, 0)


def _last_step(folder: int, name: str, flags: int, mode: int) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except NotADirectoryError:
        _refuse_link(folder, name)
        raise


def _refuse_link(folder: int, name: str) -> None:
    """Say of a link that it is one, as the kernel's way does."""
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def _stay_on(mount: str | None, descriptor: int) -> None:
    if mount is not None and _mount_of(descriptor) != mount:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def _refuse_link_at(root: int, path: bytes, resolve: int) -> None:
    """Say of a link, where a folder was asked for, that it is one."""
    try:
        seen = kernel.openat2(root, path, _LOOKING, 0, resolve)
    except OSError:
        return
    try:
        if stat.S_ISLNK(os.fstat(seen).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
    finally:
        os.close(seen)


def _mount_of(descriptor: int) -> str:
    facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    return next(line for line in facts.splitlines() if line.startswith("mnt_id:"))


@cache
def _best_way() -> Way:
    try:
        os.close(kernel.openat2(_here(), b".", _STEP, 0, _BENEATH))
    except OSError as error:
        if error.errno in {errno.ENOSYS, errno.EPERM}:
            return Way.STEPS
        raise
    return Way.KERNEL


def _here() -> int:
    return -100  # AT_FDCWD, which Python does not name
