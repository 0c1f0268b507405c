"""A host that misbehaves by configuration: for tests and rehearsals.

It is a ``dir`` with troubles. They can be changed while it runs, through a file: see
``troubles``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from backendai_hub.core.errors import InsufficientStorageError, UnavailableError
from backendai_hub.storage.drivers.base import (
    FAST_USAGE,
    INODE_QUOTA,
    QUOTA,
    Limits,
)
from backendai_hub.storage.drivers.dir import DirDriver
from backendai_hub.storage.ops import AppendUpload, Operation, ScopeUse

LOOK_SECONDS: Final = 0.05
"""How often what hangs looks whether it still has to."""


class Troubles(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong, by the tag of an operation (``"make-folder"``) or ``"*"``."""

    hang: list[str] = []
    """These do not come back for as long as it says so."""
    slow: dict[str, float] = {}
    """These take so many seconds longer."""
    fail: dict[str, str] = {}
    """These say that the storage is unavailable, in these words."""
    full: bool = False
    """No upload finds any room."""
    down: str = ""
    """The whole host cannot be used, for this reason."""


class FakeOptions(Troubles, forbid_unknown_fields=True):
    """Troubles from the start, and what the host says it can do."""

    troubles_file: str = ""
    """A JSON file of troubles, read before each operation; takes the others' place."""
    capabilities: list[str] = []


class FakeDriver(DirDriver):
    """A plain folder that fails as it is told."""

    Options: ClassVar[type[msgspec.Struct]] = FakeOptions

    def __init__(self, host: str, path: str, options: FakeOptions) -> None:
        super().__init__(host, path, options)
        self._limits: dict[str, Limits] = {}

    def prepare(self) -> frozenset[str]:
        """Do as a folder does, and claim what was asked for."""
        return super().prepare() | frozenset(self.options.capabilities)

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Remember the limit; nothing keeps it."""
        self._limits[name] = limits

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Tell the limits that were set."""
        claimed = {QUOTA, INODE_QUOTA, FAST_USAGE} & {*self.options.capabilities}
        limits = self._limits.get(name, Limits())
        return ScopeUse(
            limit_bytes=limits.bytes, limit_files=limits.files, known=bool(claimed)
        )

    def before(self, operation: Operation[Any]) -> None:
        """Hang, wait or fail, as configured."""
        names = {str(operation.__struct_config__.tag), "*"}
        while names & {*(now := self._read_troubles()).hang}:
            time.sleep(LOOK_SECONDS)
        time.sleep(sum(s for name, s in now.slow.items() if name in names))
        for name in sorted(names & {*now.fail}):
            raise UnavailableError(now.fail[name])
        if now.down:
            raise UnavailableError(now.down)
        if now.full and isinstance(operation, AppendUpload):
            raise InsufficientStorageError("the storage is full, as it was told to be")

    def _read_troubles(self) -> Troubles:
        if not self.options.troubles_file:
            found: Troubles = self.options
            return found
        try:
            written = Path(self.options.troubles_file).read_bytes()
        except FileNotFoundError:
            return Troubles()
        return msgspec.json.decode(written, type=Troubles) if written else Troubles()
