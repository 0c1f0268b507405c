"""btrfs: a subvolume for each scope, with a quota group that the kernel keeps.

Everything is asked of the kernel itself; the btrfs programs are not needed. Copies of
folders share their blocks, as files do everywhere on btrfs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.safefs.opening import open_folder, open_root
from backendai_hub.storage.drivers.base import CLONE, FAST_USAGE, QUOTA, Limits
from backendai_hub.storage.drivers.dir import SCOPE_MODE, DirDriver
from backendai_hub.storage.drivers.mounts import find_mount
from backendai_hub.storage.ops import ScopeUse

_VOLUME: Final = struct.Struct("=q4088s")
_SEARCH: Final = struct.Struct("=7Q4I4Q3992s")
_FOUND: Final = struct.Struct("=3Q2I")
_LOOKUP: Final = struct.Struct("=QQ4080s")
_QUOTA: Final = struct.Struct("=QQ")
_LIMIT: Final = struct.Struct("=6Q")
_VALUES: Final = struct.Struct("=5Q")
_ROOM: Final = 3992
_COUNT: Final = 9
"""Which of the fields of a search says how many were found."""

_READ, _WRITE = 2, 1


def _number(direction: int, number: int, size: int) -> int:
    return direction << 30 | size << 16 | 0x94 << 8 | number


MAKE_SUBVOLUME: Final = _number(_WRITE, 14, _VOLUME.size)
REMOVE_SUBVOLUME: Final = _number(_WRITE, 15, _VOLUME.size)
SEARCH: Final = _number(_READ | _WRITE, 17, _SEARCH.size)
LOOK_UP: Final = _number(_READ | _WRITE, 18, _LOOKUP.size)
SWITCH_QUOTA: Final = _number(_READ | _WRITE, 40, _QUOTA.size)
LIMIT_GROUP: Final = _number(_READ, 43, _LIMIT.size)

_QUOTA_ON: Final = 1
_QUOTA_TREE: Final = 8
_ROOT_FOLDER: Final = 256
_INFO_KEY: Final = 242
_LIMIT_KEY: Final = 244
_LIMITS_BYTES: Final = 1
_NO_LIMIT: Final = (1 << 64) - 1
_ALL: Final = (1 << 64) - 1


class _Group(NamedTuple):
    used: int
    limit: int | None


class BtrfsOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What can be said of a btrfs host."""

    quota: bool = True
    """Turn the filesystem's quotas on; with false they are left as they are."""


class BtrfsDriver(DirDriver):
    """Scopes are subvolumes."""

    Options: ClassVar[type[msgspec.Struct]] = BtrfsOptions
    needs_admin: ClassVar[bool] = True

    def __init__(self, host: str, path: str, options: Any) -> None:
        super().__init__(host, path, options)
        self._quota = False

    def prepare(self) -> frozenset[str]:
        """Look whether it is btrfs, and turn quotas on."""
        super().prepare()
        self._check_kind()
        root = open_root(self.path)
        try:
            self._quota = self._has_quota(root)
        finally:
            os.close(root)
        return frozenset({CLONE, QUOTA, FAST_USAGE} if self._quota else {CLONE})

    def make_scope(self, root: int, name: str) -> None:
        """Make a subvolume that others may pass through."""
        with suppress(FileExistsError):
            _call(root, MAKE_SUBVOLUME, _VOLUME.pack(0, name.encode()))
            made = open_folder(root, [name])
            try:
                os.fchmod(made, SCOPE_MODE)
            finally:
                os.close(made)

    def remove_scope(self, root: int, name: str) -> None:
        """Remove an empty subvolume, as the folder it is if that is all we may."""
        try:
            super().remove_scope(root, name)
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENOTEMPTY}:
                raise
            _call(root, REMOVE_SUBVOLUME, _VOLUME.pack(0, name.encode()))

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Limit the bytes of a subvolume; btrfs cannot limit the number of files."""
        if not self._quota:
            return
        most = _NO_LIMIT if limits.bytes is None else limits.bytes
        wanted = _LIMIT.pack(_find_subvolume(scope), _LIMITS_BYTES, most, 0, 0, 0)
        _call(scope, LIMIT_GROUP, wanted)

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Read the quota group of a subvolume."""
        if not self._quota:
            return super().usage(scope, name)
        group = _read_group(scope, _find_subvolume(scope))
        return ScopeUse(bytes=group.used, limit_bytes=group.limit, counts_files=False)

    def _check_kind(self) -> None:
        kind, _ = find_mount(self.path)
        if kind != "btrfs":
            raise UnavailableError(
                f"{self.path} lies on {kind}, not on btrfs; mount a btrfs filesystem"
                " there, or use the driver dir"
            )

    def _has_quota(self, root: int) -> bool:
        try:
            if self.options.quota:
                _call(root, SWITCH_QUOTA, _QUOTA.pack(_QUOTA_ON, 0))
            _read_group(root, _find_subvolume(root))
        except OSError:
            return False
        return True


def _find_subvolume(folder: int) -> int:
    """Return the number of the subvolume whose root *folder* is."""
    answer = _call(folder, LOOK_UP, _LOOKUP.pack(0, _ROOT_FOLDER, b""))
    return int(_LOOKUP.unpack(answer)[0])


def _read_group(folder: int, subvolume: int) -> _Group:
    """Read what a subvolume's quota group has used and may use."""
    used = _search(folder, subvolume, _INFO_KEY)
    limit = _search(folder, subvolume, _LIMIT_KEY)
    limited = limit is not None and limit[0] & _LIMITS_BYTES
    return _Group(
        used=used[1] if used is not None else 0,
        limit=limit[1] if limit is not None and limited else None,
    )


def _search(folder: int, subvolume: int, kind: int) -> tuple[int, ...] | None:
    """Return the numbers that the quota tree has of one group."""
    group, anything = (subvolume, subvolume), (0, _ALL)
    asked = _SEARCH.pack(
        *(_QUOTA_TREE, 0, 0, *group, *anything),
        *(kind, kind, 1, 0),
        *(0, 0, 0, 0, b""),
    )
    answer = _call(folder, SEARCH, asked)
    if not _SEARCH.unpack(answer)[_COUNT]:
        return None
    return _VALUES.unpack_from(answer, _SEARCH.size - _ROOM + _FOUND.size)


def _call(folder: int, request: int, content: bytes) -> bytes:
    """Ask the kernel something; what it answers takes the place of what was asked."""
    room = bytearray(content)
    fcntl.ioctl(folder, request, room)
    return bytes(room)
