"""Everything a worker has, and which function does which operation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backendai_hub.core.errors import ForbiddenError, UnavailableError
from backendai_hub.safefs.making import Owner
from backendai_hub.safefs.paths import Parts, read_path
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.drivers.base import StorageDriver
from backendai_hub.storage.ops import Operation, Place
from backendai_hub.storage.places import OURS, Ground


@dataclass
class Host:
    """One storage host, inside of its worker."""

    name: str
    config: HostConfig
    driver: StorageDriver
    others: Mapping[str, HostConfig] = field(default_factory=dict)
    """The other hosts, to copy from."""
    capabilities: frozenset[str] | None = None
    """What the driver can do; ``None`` until it is prepared."""
    writing: set[str] = field(default_factory=set)
    """Uploads that somebody is writing to."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held for moments only: while the sets above are changed."""
    preparing: threading.Lock = field(default_factory=threading.Lock)
    scopes: threading.Lock = field(default_factory=threading.Lock)
    """Held while scopes are made, which need numbers that nobody else has."""

    def __post_init__(self) -> None:
        self.ground = Ground(self.config)

    @property
    def owner(self) -> Owner | None:
        """Whose people's files are."""
        return self.ground.owner

    def ready(self) -> frozenset[str]:
        """Return what the driver can do, having prepared it; refuse if it cannot."""
        found = self.capabilities
        if found is not None:
            return found
        with self.preparing:
            if self.capabilities is None:
                if self.config.require_mount:
                    with self.ground.root():
                        pass
                self.capabilities = self.driver.prepare()
            return self.capabilities

    def ground_of(self, other: str) -> Ground:
        """Return the ground of another host of this machine, or of this one."""
        if other in {"", self.name}:
            return self.ground
        if other not in self.others:
            raise UnavailableError(f"storage host {other} is not on this machine")
        return Ground(self.others[other])


Work = Callable[[Host, Any, Channel], Any]
"""Does one operation and returns what it answers."""


def hidden_names(place: Place) -> frozenset[str]:
    """Return the names directly in a folder that are ours."""
    return frozenset({OURS}) if place.unmanaged else frozenset()


def check_visible(place: Place, parts: Parts) -> Parts:
    """Return *parts*, unless they lead to what is ours."""
    if place.unmanaged and parts[:1] == (OURS,):
        raise ForbiddenError(f"{OURS} is kept by the platform; leave it alone")
    return parts


def read_visible(place: Place, path: str) -> Parts:
    """Read a path of people, which must not lead to what is ours."""
    return check_visible(place, read_path(path))


def tag_of(operation: Operation[Any]) -> str:
    """Return the operation's name, as the log and the ``fake`` say it."""
    return str(operation.__struct_config__.tag)
