"""Everything a worker has, and which function does which operation."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from backendai_hub.core.errors import ForbiddenError, HubError, UnavailableError
from backendai_hub.safefs.errors import (
    EntryMissingError,
    LinkRefusedError,
    NotAFolderError,
)
from backendai_hub.safefs.making import Owner
from backendai_hub.safefs.paths import Parts, read_path
from backendai_hub.safefs.remembered import Memory
from backendai_hub.safefs.tree import Tree
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.drivers.base import StorageDriver
from backendai_hub.storage.durable import list_names
from backendai_hub.storage.holding import hold, share
from backendai_hub.storage.ops import Operation, Place
from backendai_hub.storage.places import OURS, STAGING, TASK, UNMARKED, Ground

log = logging.getLogger("backendai_hub.storage.worker")


@dataclass
class Host:
    """One storage host, inside of its worker."""

    name: str
    config: HostConfig
    driver: StorageDriver
    others: Mapping[str, HostConfig] = field(default_factory=dict)
    """The other hosts, to copy from."""
    mark: str = UNMARKED
    """What tells this platform's things from others' where both may be."""
    capabilities: frozenset[str] | None = None
    """What the driver can do; ``None`` until it is prepared."""
    writing: set[str] = field(default_factory=set)
    """Uploads that somebody is writing to."""
    abandoned: set[str] = field(default_factory=set)
    """Those of them of which nothing is to be left."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held for moments only: while the sets above are changed."""
    preparing: threading.Lock = field(default_factory=threading.Lock)
    scopes: threading.Lock = field(default_factory=threading.Lock)
    """Held while scopes are made, which need numbers that nobody else has."""
    texts: threading.Lock = field(default_factory=threading.Lock)
    """Held while a small file is looked at and replaced."""
    token: str = field(default_factory=lambda: uuid4().hex)
    """This worker's own: what lies about under another's nobody will finish."""
    pages: Memory = field(default_factory=Memory)
    """What is on pages of large folders."""
    swept: set[Place] = field(default_factory=set)
    """Where somebody has looked for that."""

    def __post_init__(self) -> None:
        self.ground = Ground(self.config, self.mark)

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

    @contextmanager
    def staging(self, place: Place) -> Iterator[Tree]:
        """Open where things of *place* are made before they appear."""
        self.sweep(place)
        for is_last in (False, False, True):
            with self.ground.beside(place, STAGING, self.token) as opened:
                share(opened)
                # Others may have swept it away in the moment before it was held.
                if os.fstat(opened).st_nlink or is_last:
                    yield Tree(opened, owner=self.owner)
                    return

    @contextmanager
    def tree(self, place: Place) -> Iterator[Tree]:
        """Open a folder in which things can be made; they appear when complete."""
        with self.ground.folder(place) as opened, self.staging(place) as staging:
            yield Tree(opened, owner=self.owner, staging=staging)

    def sweep(self, place: Place) -> None:
        """Remove, beside all else, what workers before this one left unfinished."""
        key = Place(scope=place.scope, unmanaged=place.unmanaged)
        with self.lock:
            if key in self.swept:
                return
            self.swept.add(key)
        sweep = threading.Thread(
            target=self._remove_unfinished, args=(key,), name="sweep"
        )
        sweep.daemon = True
        sweep.start()

    def _remove_unfinished(self, place: Place) -> None:
        try:
            with self.ground.beside(place, STAGING) as opened:
                for name in list_names(opened):
                    # What belongs to tasks is gone on with, and forgotten with them.
                    if name != self.token and not name.startswith(TASK):
                        self._remove_left(Tree(opened), name)
        except HubError as error:
            log.warning("host %s: unfinished work stays: %s", self.name, error)

    @staticmethod
    def _remove_left(staging: Tree, name: str) -> None:
        """Remove what nobody works on any more."""
        with suppress(EntryMissingError):
            try:
                with staging.enter((name,)) as left:
                    if hold(left.fileno()):
                        staging.remove((name,))
            except (NotAFolderError, LinkRefusedError):  # nobody works in it
                staging.remove((name,))

    def ground_of(self, other: str) -> Ground:
        """Return the ground of another host of this machine, or of this one."""
        if other in {"", self.name}:
            return self.ground
        if other not in self.others:
            raise UnavailableError(f"storage host {other} is not on this machine")
        return Ground(self.others[other], self.mark)


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
