"""CephFS: limits and usage are extended attributes of a scope's folder.

The clients keep the limits, each for itself, so a few seconds' writing may go beyond.
"""

from __future__ import annotations

import errno
import os
from typing import Any, ClassVar, Final, Protocol

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.safefs.opening import open_root
from backendai_hub.storage.drivers.base import (
    FAST_USAGE,
    INODE_QUOTA,
    QUOTA,
    Limits,
    NoOptions,
)
from backendai_hub.storage.drivers.dir import DirDriver
from backendai_hub.storage.ops import ScopeUse

MOST_BYTES: Final = "ceph.quota.max_bytes"
MOST_FILES: Final = "ceph.quota.max_files"
BYTES: Final = "ceph.dir.rbytes"
ENTRIES: Final = "ceph.dir.rentries"
_ABSENT: Final = frozenset({errno.ENODATA, errno.EOPNOTSUPP})


class Attributes(Protocol):
    """Reads and writes extended attributes of what is open."""

    def read(self, descriptor: int, name: str) -> bytes:
        """Return the value of one."""

    def write(self, descriptor: int, name: str, value: bytes) -> None:
        """Set one."""


class KernelAttributes:
    """Those of the filesystem."""

    def read(self, descriptor: int, name: str) -> bytes:
        """Return the value of one."""
        return os.getxattr(descriptor, name)

    def write(self, descriptor: int, name: str, value: bytes) -> None:
        """Set one."""
        os.setxattr(descriptor, name, value)


class CephfsDriver(DirDriver):
    """Scopes are folders that CephFS counts."""

    Options: ClassVar[type[msgspec.Struct]] = NoOptions

    def __init__(
        self,
        host: str,
        path: str,
        options: Any,
        attributes: Attributes | None = None,
    ) -> None:
        super().__init__(host, path, options)
        self._attributes = attributes or KernelAttributes()

    def prepare(self) -> frozenset[str]:
        """Look whether the root has what only CephFS tells."""
        super().prepare()
        root = open_root(self.path)
        try:
            self._attributes.read(root, ENTRIES)
        except OSError as error:
            raise UnavailableError(
                f"{self.path} does not lie on CephFS; mount it there, or use the driver"
                " dir"
            ) from error
        finally:
            os.close(root)
        return frozenset({QUOTA, INODE_QUOTA, FAST_USAGE})

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Set both limits; zero is CephFS's word for none."""
        self._attributes.write(scope, MOST_BYTES, str(limits.bytes or 0).encode())
        self._attributes.write(scope, MOST_FILES, str(limits.files or 0).encode())

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Read what CephFS has counted, which may be some seconds old."""
        return ScopeUse(
            bytes=self._read(scope, BYTES),
            # The folder itself is one of them.
            files=max(0, self._read(scope, ENTRIES) - 1),
            limit_bytes=self._read(scope, MOST_BYTES) or None,
            limit_files=self._read(scope, MOST_FILES) or None,
        )

    def _read(self, scope: int, name: str) -> int:
        try:
            return int(self._attributes.read(scope, name))
        except OSError as error:
            if error.errno in _ABSENT:
                return 0
            raise
