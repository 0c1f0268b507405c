"""XFS: a project quota for each scope, which stops everybody, root too.

The kernel is asked directly; the XFS programs are not needed. The filesystem has to be
mounted with ``prjquota``, and the kernel to have XFS's quotas. Each scope is a project
with a number of its own, kept where XFS keeps it: in the scope's folder, from where
all that is made below inherits it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.safefs.opening import open_folder
from backendai_hub.storage.drivers.base import (
    CLONE,
    FAST_USAGE,
    INODE_QUOTA,
    QUOTA,
    Limits,
    NoOptions,
)
from backendai_hub.storage.drivers.dir import DirDriver
from backendai_hub.storage.drivers.mounts import find_mount
from backendai_hub.storage.durable import list_names
from backendai_hub.storage.ops import ScopeUse

ATTRIBUTES: Final = struct.Struct("=5I8x")
READ_ATTRIBUTES: Final = 2 << 30 | ATTRIBUTES.size << 16 | ord("X") << 8 | 31
WRITE_ATTRIBUTES: Final = 1 << 30 | ATTRIBUTES.size << 16 | ord("X") << 8 | 32
INHERIT: Final = 0x200

DISK_QUOTA: Final = struct.Struct("=bbHI6Q2i2H4x3QiHh8x")
_VERSION: Final = 1
_PROJECT: Final = 2
_FIELD_FILES_HARD, _FIELD_BYTES_HARD = 1 << 1, 1 << 3
_TIMES: Final = (0,) * 10
_GET, _SET = 3, 4
BLOCK: Final = 512
FIRST_PROJECT: Final = 0x4000_0000
_MOST_PROJECTS: Final = 0x3FFF_FFFF
_NO_QUOTA: Final = frozenset(
    {errno.ESRCH, errno.ENOSYS, errno.ENOTTY, errno.EINVAL, errno.EPERM, errno.ENODEV}
)


def command(number: int) -> int:
    """Return what quotactl calls an operation on a project."""
    return (ord("X") << 8 | number) << 8 | _PROJECT


class Quota(NamedTuple):
    """One project's limits and use; limits of zero limit nothing."""

    project: int
    bytes: int = 0
    files: int = 0
    used_bytes: int = 0
    used_files: int = 0


def write_quota(quota: Quota) -> bytes:
    """Write down the limits to be set."""
    fields = _FIELD_BYTES_HARD | _FIELD_FILES_HARD
    blocks = -(-quota.bytes // BLOCK)
    head = (_VERSION, _PROJECT, fields, quota.project)
    return DISK_QUOTA.pack(*head, blocks, 0, quota.files, 0, 0, 0, *_TIMES)


def read_quota(written: bytes) -> Quota:
    """Read a project's limits and use."""
    found = DISK_QUOTA.unpack(written)
    blocks, _, files, _, used_blocks, used_files = found[4:10]
    return Quota(
        project=found[3],
        bytes=blocks * BLOCK,
        files=files,
        used_bytes=used_blocks * BLOCK,
        used_files=used_files,
    )


class Kernel(Protocol):
    """The calls that are made."""

    def ioctl(self, descriptor: int, request: int, content: bytes) -> bytes:
        """Ask for or change what a file or folder has."""

    def quotactl(self, number: int, device: str, project: int, content: bytes) -> bytes:
        """Ask for or change a project's quota on *device*."""


class RealKernel:
    """The one this runs on."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def ioctl(self, descriptor: int, request: int, content: bytes) -> bytes:
        """Do what the standard library does."""
        return fcntl.ioctl(descriptor, request, content)

    def quotactl(self, number: int, device: str, project: int, content: bytes) -> bytes:
        """Call what Python does not offer."""
        room = ctypes.create_string_buffer(content, len(content))
        failed = self._libc.quotactl(
            ctypes.c_int(number), os.fsencode(device), ctypes.c_int(project), room
        )
        if failed:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return room.raw


class XfsDriver(DirDriver):
    """Scopes are projects."""

    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    needs_admin: ClassVar[bool] = True

    def __init__(
        self, host: str, path: str, options: Any, kernel: Kernel | None = None
    ) -> None:
        super().__init__(host, path, options)
        self._kernel = kernel or RealKernel()
        self._device = ""

    def prepare(self) -> frozenset[str]:
        """Find the device, and see whether project quotas are on."""
        super().prepare()
        kind, self._device = find_mount(self.path)
        if kind != "xfs":
            raise UnavailableError(
                f"{self.path} lies on {kind}, not on XFS; mount an XFS filesystem"
                " there, or use the driver dir"
            )
        try:
            with suppress(FileNotFoundError):
                self._ask(0)
        except OSError as error:
            if error.errno not in _NO_QUOTA:
                raise
            raise UnavailableError(
                f"{self.path}: project quotas are not on ({error.strerror}); mount it"
                " with the option prjquota, on a kernel that has XFS quotas, and let"
                " the service run as root; or use the driver dir"
            ) from error
        return frozenset({QUOTA, INODE_QUOTA, FAST_USAGE, CLONE})

    def make_scope(self, root: int, name: str) -> None:
        """Make a folder that is a project with a number nobody else has."""
        super().make_scope(root, name)
        taken = set(self._list_projects(root, without=name))
        scope = open_folder(root, [name])
        try:
            flags, *rest = self._read_attributes(scope)
            if rest[2] and rest[2] not in taken and flags & INHERIT:
                return
            rest[2] = choose_project(name, taken)
            content = ATTRIBUTES.pack(flags | INHERIT, *rest)
            self._kernel.ioctl(scope, WRITE_ATTRIBUTES, content)
        finally:
            os.close(scope)

    def remove_scope(self, root: int, name: str) -> None:
        """Take the limits away, then the folder."""
        with suppress(FileNotFoundError):
            scope = open_folder(root, [name])
            try:
                self.set_limit(scope, name, Limits())
            finally:
                os.close(scope)
        super().remove_scope(root, name)

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Limit bytes and files of a project."""
        project = self._read_attributes(scope)[3]
        wanted = write_quota(Quota(project, limits.bytes or 0, limits.files or 0))
        self._kernel.quotactl(command(_SET), self._device, project, wanted)

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Read a project's quota."""
        project = self._read_attributes(scope)[3]
        try:
            found = self._ask(project)
        except FileNotFoundError:
            return ScopeUse()  # nothing was ever counted for it
        return ScopeUse(
            bytes=found.used_bytes,
            files=found.used_files,
            limit_bytes=found.bytes or None,
            limit_files=found.files or None,
        )

    def _ask(self, project: int) -> Quota:
        room = bytes(DISK_QUOTA.size)
        answer = self._kernel.quotactl(command(_GET), self._device, project, room)
        return read_quota(answer)

    def _read_attributes(self, folder: int) -> tuple[int, ...]:
        room = bytes(ATTRIBUTES.size)
        return ATTRIBUTES.unpack(self._kernel.ioctl(folder, READ_ATTRIBUTES, room))

    def _list_projects(self, root: int, *, without: str) -> Iterator[int]:
        for name in list_names(root):
            if name == without:
                continue
            with suppress(FileNotFoundError, NotADirectoryError):
                folder = open_folder(root, [name])
                try:
                    yield self._read_attributes(folder)[3]
                finally:
                    os.close(folder)


def choose_project(name: str, taken: set[int]) -> int:
    """Return a number for a scope: the same one each time, if it is free."""
    project = FIRST_PROJECT + zlib.crc32(name.encode()) % _MOST_PROJECTS
    while project in taken:
        project = FIRST_PROJECT + (project - FIRST_PROJECT + 1) % _MOST_PROJECTS
    return project
