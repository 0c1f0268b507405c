"""The kernel's calls about mounts, which Python does not offer.

A folder is opened first, and what is mounted is what that descriptor is open on: no
path is walked a second time, so nobody can put something else in its place meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from pathlib import Path
from typing import Final

READ_ONLY: Final = 0x1
NO_SUID: Final = 0x2
NO_DEVICES: Final = 0x4
_IDMAP: Final = 0x100000

# The same on every architecture.
_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442

_CLONE: Final = 0x1
_CLOSE_ON_EXEC: Final = os.O_CLOEXEC
_EMPTY_PATH: Final = 0x1000
_FROM_EMPTY_PATH: Final = 0x4
_TO_EMPTY_PATH: Final = 0x40
_MS_NO_SUID, _MS_NO_DEVICES, _MS_NO_PROGRAMS = 0x2, 0x4, 0x8
_MS_PRIVATE: Final = 0x40000
_DETACH: Final = 0x2
_NO_FOLLOW: Final = 0x8
_NEW_USERS: Final = 0x10000000
_DIE_WITH_PARENT: Final = 1
_KILL: Final = 9

_libc = ctypes.CDLL(None, use_errno=True)


def clone_tree(descriptor: int) -> int:
    """Return a mount of just the folder that is open: in no place yet.

    What is mounted further down is not in it.
    """
    flags = _CLONE | _CLOSE_ON_EXEC | _EMPTY_PATH
    return _call(_OPEN_TREE, _int(descriptor), _text(""), ctypes.c_uint(flags))


def change_tree(tree: int, flags: int, *, users: int | None = None) -> None:
    """Set *flags* on a mount that is in no place yet, and how it maps owners.

    *users* is a user namespace: what its inside calls an owner is the owner on disk.
    """
    if users is not None:
        flags |= _IDMAP
    how = ctypes.create_string_buffer(struct.pack("=QQQQ", flags, 0, 0, users or 0), 32)
    arguments = (_text(""), ctypes.c_uint(_EMPTY_PATH), how, ctypes.c_size_t(32))
    _call(_MOUNT_SETATTR, _int(tree), *arguments)


def put_tree(tree: int, place: int) -> None:
    """Mount *tree* on the folder that *place* is open on."""
    flags = ctypes.c_uint(_FROM_EMPTY_PATH | _TO_EMPTY_PATH)
    _call(_MOVE_MOUNT, _int(tree), _text(""), _int(place), _text(""), flags)


def try_tree(path: str) -> None:
    """Raise OSError if this kernel does not know the calls above."""
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        tree = clone_tree(descriptor)
        try:
            change_tree(tree, READ_ONLY | NO_SUID | NO_DEVICES)
        finally:
            os.close(tree)
    finally:
        os.close(descriptor)


def mount_room(path: str) -> None:
    """Mount a small file system of memory at *path*, for mounts to lie in.

    What is mounted in it is nobody else's: taking that away here must not take it out
    of a container that has bound it.
    """
    flags = _MS_NO_SUID | _MS_NO_DEVICES | _MS_NO_PROGRAMS
    options = b"mode=0700,size=64k,nr_inodes=1024"
    name, kind = b"backendai-mounts", b"tmpfs"
    where = os.fsencode(path)
    if _libc.mount(name, where, kind, ctypes.c_ulong(flags), options):
        raise _last_error()
    if _libc.mount(None, where, None, ctypes.c_ulong(_MS_PRIVATE), None):
        raise _last_error()


def detach(path: str) -> None:
    """Take what is mounted at *path* away, and all in it; whoever uses it keeps it.

    Never waits for a file system that does not answer.
    """
    if _libc.umount2(os.fsencode(path), ctypes.c_int(_DETACH | _NO_FOLLOW)):
        raise _last_error()


def map_users(owner: tuple[int, int], user: tuple[int, int]) -> int:
    """Return a user namespace that shows *owner* (a user and a group) as *user*.

    No other user or group has a number in it. Only for a process of one thread.
    """
    told, tell = os.pipe()
    wait, release = os.pipe()
    child = os.fork()
    if child == 0:  # it is there only so that its namespace is
        failed = _libc.unshare(ctypes.c_int(_NEW_USERS))
        os.write(tell, bytes([ctypes.get_errno() if failed else 0]))
        os.close(release)
        os.read(wait, 1)
        os._exit(0)
    try:
        if number := os.read(told, 1)[0]:
            raise OSError(number, os.strerror(number))
        for kind, outside, inside in zip(("uid", "gid"), owner, user, strict=True):
            Path(f"/proc/{child}/{kind}_map").write_text(f"{outside} {inside} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (told, tell, wait, release):
            os.close(descriptor)
        os.waitpid(child, 0)


def die_with(parent: int) -> None:
    """End this process when *parent* ends, however that happens."""
    _libc.prctl(ctypes.c_int(_DIE_WITH_PARENT), ctypes.c_ulong(_KILL))
    if os.getppid() != parent:
        os._exit(1)


def list_mounts(text: str | None = None) -> list[str]:
    """List where things are mounted, as this process sees it; later ones on top."""
    if text is None:
        with Path("/proc/self/mountinfo").open("rb") as file:
            text = os.fsdecode(file.read())
    return [_unescape(line.split(" ")[4]) for line in text.splitlines()]


def list_below(path: str | Path) -> list[str]:
    """List what is mounted at *path* or below it; a link at its end is not followed."""
    path = Path(path).absolute()
    whole = str(path.parent.resolve() / path.name)
    inside = whole.rstrip("/") + "/"
    return [at for at in list_mounts() if at == whole or at.startswith(inside)]


def _unescape(path: str) -> str:
    """Undo how the kernel writes blanks, line ends and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _int(value: int) -> ctypes.c_int:
    return ctypes.c_int(value)


def _text(value: str) -> ctypes.c_char_p:
    return ctypes.c_char_p(os.fsencode(value))


def _call(number: int, *arguments: object) -> int:
    answer: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        raise _last_error()
    return answer


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
