"""Pages of large folders, told again without reading the folder while they are right.

A folder's names change only together with its times, and that of its last change nobody
can set. So what was read is right as long as the times are the same; but only under
three conditions, and without all of them nothing is kept. The file system is one that
keeps this promise, and by our clock. The folder had been left alone for some seconds
when it was read: clocks tick coarsely, and of two changes within a tick the second
cannot be seen. And the clock was not set since, so that later changes have later times.

Kept are names in their order; what is told of each is looked at anew.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from backendai_hub.safefs import kernel

Key = tuple[int, str, str]
"""What an entry is sorted by: a value, its name in any case, its name."""
FEWEST: Final = 2000
"""Folders with fewer entries are read too quickly to be worth it."""
MOST_NAMES: Final = 20_000
"""So many are kept in all, of the pages that were told last."""
SETTLED: Final = 5_000_000_000
LONGEST: Final = 600_000_000_000
"""For how many nanoseconds a folder was left alone, and a page is kept at most."""
_SECOND: Final = 1_000_000_000
_STEP: Final = _SECOND
"""By more no clock goes wrong in that time unless somebody sets it."""
_TRUSTED: Final = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994})
"""ext2 to ext4, XFS, btrfs and tmpfs: no other machine writes to them."""


class Moment(NamedTuple):
    """Now, by the clock that files are stamped with and by one that nobody sets."""

    wall: int
    steady: int

    @classmethod
    def now(cls) -> Moment:
        """Read both clocks."""
        return cls(time.time_ns(), time.monotonic_ns())


class State(NamedTuple):
    """What is another as soon as a folder has other names."""

    device: int
    inode: int
    modified: int
    changed: int

    @classmethod
    def of(cls, folder: int) -> State:
        """Look at an open folder."""
        found = os.fstat(folder)
        return cls(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


class Chosen(NamedTuple):
    """What is on a page, perhaps with one more, and how many entries match."""

    keys: list[Key]
    total: int


class Beginning(NamedTuple):
    """A folder before it is read, and when that was."""

    state: State
    moment: Moment


class _Kept(NamedTuple):
    began: Beginning
    chosen: Chosen


class Memory:
    """Pages by folder and by what was asked for, shared by threads."""

    def __init__(
        self, clock: Callable[[], Moment] = Moment.now, *, fewest: int = FEWEST
    ) -> None:
        self._clock = clock
        self._fewest = fewest
        self._lock = threading.Lock()
        self._pages: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._names = 0

    def find(self, folder: int, asked: Hashable) -> Chosen | None:
        """Return a page that is certainly what reading the folder would say."""
        state = State.of(folder)
        with self._lock:
            kept = self._pages.get((state.device, state.inode, asked))
            if kept is None:
                return None
            if state != kept.began.state or self._is_over(kept.began.moment):
                self._drop((state.device, state.inode, asked))
                return None
            self._pages.move_to_end((state.device, state.inode, asked))
        return kept.chosen

    def begin(self, folder: int) -> Beginning | None:
        """Look at a folder before it is read; ``None`` if nothing is to be kept."""
        state, moment = State.of(folder), self._clock()
        if max(state.modified, state.changed) + SETTLED > moment.wall:
            return None
        if not state.changed % _SECOND:  # most likely it is told in whole seconds only
            return None
        if kernel.type_of_filesystem(folder) not in _TRUSTED:
            return None
        return Beginning(state, moment)

    def keep(
        self, began: Beginning | None, asked: Hashable, chosen: Chosen, *, read: int
    ) -> None:
        """Keep a page of a folder that had *read* entries in all."""
        if began is None or read < self._fewest:
            return
        key = (began.state.device, began.state.inode, asked)
        with self._lock:
            self._drop(key)
            self._pages[key] = _Kept(began, chosen)
            self._names += 1 + len(chosen.keys)
            while self._names > MOST_NAMES:
                self._drop(next(iter(self._pages)))

    def _drop(self, key: Hashable) -> None:
        kept = self._pages.pop(key, None)
        if kept is not None:
            self._names -= 1 + len(kept.chosen.keys)

    def _is_over(self, began: Moment) -> bool:
        """Tell whether a page is too old, or the clock was set since then."""
        now = self._clock()
        steady = now.steady - began.steady
        return steady > LONGEST or abs(now.wall - began.wall - steady) > _STEP
