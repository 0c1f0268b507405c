"""Any folder, on any filesystem: NFS, SMB, EFS and HDFS mounts, or the local disk.

Nothing keeps sessions within a limit here: it is *soft*, held to by uploads and by who
may start new sessions that write, from what the last scan counted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.storage.drivers.base import Limits, NoOptions
from backendai_hub.storage.ops import Operation, ScopeUse

SCOPE_MODE = 0o711


class DirDriver:
    """Folders, and no quota; the other drivers add theirs to this one."""

    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    needs_admin: ClassVar[bool] = False

    def __init__(self, host: str, path: str, options: Any) -> None:
        self.host, self.path, self.options = host, path, options

    def prepare(self) -> frozenset[str]:
        """Make the root if it is missing, closed to other users of the machine."""
        try:
            Path(self.path).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(f"{self.path}: {error.strerror}") from error
        return frozenset()

    def make_scope(self, root: int, name: str) -> None:
        """Make a plain folder."""
        with suppress(FileExistsError):
            os.mkdir(name, SCOPE_MODE, dir_fd=root)

    def remove_scope(self, root: int, name: str) -> None:
        """Remove a plain folder."""
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=root)

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Leave it: there is nothing here that could hold anybody to it."""

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Say that only a scan can tell."""
        return ScopeUse(known=False)

    def before(self, operation: Operation[Any]) -> None:
        """Have nothing to do."""
