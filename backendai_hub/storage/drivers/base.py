"""What a kind of storage has to be able to do: the contract of drivers.

A driver runs in the worker of one host, in several threads at once, and may block. It
gets descriptors of the host's root and of scopes, opened and checked by the worker;
names of scopes are ours. What it cannot do it says in its capabilities, and leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import msgspec

from backendai_hub.storage.ops import Operation, ScopeUse

QUOTA: Final = "quota"
"""The filesystem keeps scopes within their limit of bytes, whoever writes."""
INODE_QUOTA: Final = "inode-quota"
"""… and within their limit of files."""
FAST_USAGE: Final = "fast-usage"
"""It knows how much a scope uses without looking through it."""
CLONE: Final = "clone"
"""Copies share their blocks until somebody writes to them."""


class NoOptions(msgspec.Struct, forbid_unknown_fields=True):
    """A driver that has none."""


@dataclass(frozen=True)
class Limits:
    """How much a scope may hold; ``None`` does not limit."""

    bytes: int | None = None
    files: int | None = None


class StorageDriver(Protocol):
    """One kind of storage. ``Options`` are the driver's own part of a host's settings.

    ``needs_admin`` says that a worker that is root has to keep CAP_SYS_ADMIN.
    """

    Options: ClassVar[type[msgspec.Struct]]
    needs_admin: ClassVar[bool]

    def __init__(self, host: str, path: str, options: Any) -> None:
        """Take the host's name, its root, and the driver's own ``Options``."""

    def prepare(self) -> frozenset[str]:
        """Get ready, and return what it can do here, having tried it.

        Called before anything else, and again after it raised
        :class:`~backendai_hub.core.errors.UnavailableError`: the storage cannot be
        used at the moment, and why.
        """

    def make_scope(self, root: int, name: str) -> None:
        """Make the folder of a scope in *root*; one that exists stays as it is."""

    def remove_scope(self, root: int, name: str) -> None:
        """Remove the folder of a scope, which is empty, and its limits."""

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Limit a scope; does nothing without the capability."""

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Tell how much is used; ``known`` is false without the capability."""

    def before(self, operation: Operation[Any]) -> None:
        """Do what is to be done before each operation: the ``fake`` fails here."""
