"""A folder's entries, a page at a time, in one reading of the folder.

Only what is shown is looked at closely where the order allows: by name and by kind
nothing else has to be, and what is on a page may be known from before. Memory does not
grow with the folder, and what cannot be on the page is thrown away before anything is
made for it: there may be a million.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from itertools import compress, islice
from operator import not_
from typing import TYPE_CHECKING, Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.entries import Entry, describe_entry
from backendai_hub.safefs.errors import StoppedError
from backendai_hub.safefs.paths import read_name, show_name
from backendai_hub.safefs.remembered import Chosen, Key, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Entries = list[os.DirEntry[str]]
_Found = tuple[list[Key], int]
"""Keys that may be on the page, and how many entries there are at all."""
MAX_PAGE: Final = 1000
_AT_ONCE: Final = 1000
"""So many are read together; then it is seen whether anybody still waits."""
_CURSOR_VALUE: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_LAST_TEXT: Final = "\U0010ffff" * 256
"""Comes after every name."""
_FIRST: Final[Key] = (-(10**20), "", "")
_LAST: Final[Key] = (10**20, "", "")
"""Come before and after whatever a cursor can say."""


class Order(StrEnum):
    """What entries are sorted by; equals by their names. ``kind``: folders first."""

    NAME = "name"
    KIND = "kind"
    SIZE = "size"
    MODIFIED = "modified"


class Page(msgspec.Struct, frozen=True):
    """Some entries of a folder, of ``total`` that match.

    ``after`` asks for the next page; it is empty on the last.
    """

    entries: tuple[Entry, ...]
    total: int
    after: str = ""


class Listing(msgspec.Struct, frozen=True):
    """Which entries to show: ``limit`` of those ``after`` the page before.

    ``search`` is a part of the name, in any case. ``hidden`` are names to leave out.
    """

    after: str = ""
    limit: int = 200
    sort: Order = Order.NAME
    descending: bool = False
    search: str = ""
    hidden: frozenset[str] = frozenset()


def list_folder(
    folder: int,
    listing: Listing,
    cancelled: Callable[[], bool] = lambda: False,
    memory: Memory | None = None,
) -> Page:
    """Return one page of what is directly in *folder*.

    Raises :class:`StoppedError` soon after it is *cancelled*.
    """
    if not 1 <= listing.limit <= MAX_PAGE:
        raise InvalidRequestError(f"a page has 1 to {MAX_PAGE} entries")
    if memory is None or listing.sort not in _BY_NAMES or listing.search:
        chosen, _ = _choose(folder, listing, cancelled)
    else:
        chosen = _recall(folder, listing, cancelled, memory)
    shown = chosen.keys[: listing.limit]
    more = len(chosen.keys) > listing.limit
    return Page(
        entries=tuple(_describe_all(folder, shown)),
        total=chosen.total,
        after=_write_cursor(shown[-1]) if more else "",
    )


def _recall(
    folder: int, listing: Listing, cancelled: Callable[[], bool], memory: Memory
) -> Chosen:
    """Return what is on the page as it is known, or as it is read now."""
    known = memory.find(folder, listing)
    if known is not None:
        return known
    began = memory.begin(folder)
    chosen, read = _choose(folder, listing, cancelled)
    memory.keep(began, listing, chosen, read=read)
    return chosen


def _choose(
    folder: int, listing: Listing, cancelled: Callable[[], bool]
) -> tuple[Chosen, int]:
    """Read the folder; return what is on the page, and how much was read."""
    find, best, total, read = _FINDERS[listing.sort], _Best(listing), 0, 0
    for entries in _read(folder, cancelled):
        keys, count = find(_match(entries, listing), best)
        best.add(keys)
        total += count
        read += len(entries)
        del entries  # the next ones take their memory, which is quicker than other
    return Chosen(best.take(), total), read


class _Best:
    """The keys that are on the page as far as it is read, and one more.

    What is not between ``low`` and ``high`` cannot become one of them.
    """

    def __init__(self, listing: Listing) -> None:
        last = _read_cursor(listing.after) if listing.after else None
        self.low, self.high = _FIRST, _LAST
        self._descending = listing.descending
        if self._descending:
            self.high = last or _LAST
        else:
            self.low = last or _FIRST
        self._most = listing.limit + 1
        self._keys: list[Key] = []

    def texts(self, value: int) -> tuple[str, str]:
        """Return between which texts an entry of this *value* has to be."""
        (low, first, _), (high, last, _) = self.low, self.high
        if not low <= value <= high:
            return _LAST_TEXT, ""
        return first if value == low else "", last if value == high else _LAST_TEXT

    def add(self, keys: list[Key]) -> None:
        """Keep those of *keys* that are better than what is kept."""
        low, high = self.low, self.high
        self._keys += [key for key in keys if low < key < high]
        if len(self._keys) >= 2 * self._most:
            self._narrow()

    def take(self) -> list[Key]:
        """Return them in order."""
        self._narrow()
        return self._keys

    def _narrow(self) -> None:
        self._keys.sort(reverse=self._descending)
        del self._keys[self._most :]
        if len(self._keys) < self._most:
            return
        if self._descending:
            self.low = self._keys[-1]
        else:
            self.high = self._keys[-1]


def _read(folder: int, cancelled: Callable[[], bool]) -> Iterator[_Entries]:
    with os.scandir(folder) as entries:
        while some := list(islice(entries, _AT_ONCE)):
            if cancelled():
                raise StoppedError("the list was stopped before its end")
            yield some
            del some


def _match(entries: _Entries, listing: Listing) -> _Entries:
    hidden, wanted = listing.hidden, listing.search.casefold()
    if hidden:
        entries = [entry for entry in entries if entry.name not in hidden]
    if wanted:
        entries = [entry for entry in entries if wanted in entry.name.casefold()]
    return entries


def _by_name(entries: _Entries, best: _Best) -> _Found:
    return _name(entries, 0, best), len(entries)


def _by_kind(entries: _Entries, best: _Best) -> _Found:
    folders = [entry.is_dir(follow_symlinks=False) for entry in entries]
    keys = _name(compress(entries, folders), 0, best)
    keys += _name(compress(entries, map(not_, folders)), 1, best)
    return keys, len(entries)


def _name(entries: Iterable[os.DirEntry[str]], value: int, best: _Best) -> list[Key]:
    """Return the keys of those that may be on the page, all of the same *value*."""
    first, last = best.texts(value)
    return [
        (value, folded, entry.name)
        for entry in entries
        if first <= (folded := entry.name.casefold()) <= last
    ]


def _by_size(entries: _Entries, best: _Best) -> _Found:
    return _measure(entries, best, _size)


def _by_time(entries: _Entries, best: _Best) -> _Found:
    return _measure(entries, best, _modified)


def _measure(
    entries: _Entries, best: _Best, measure: Callable[[os.DirEntry[str]], int]
) -> _Found:
    low, high = best.low[0], best.high[0]
    keys, gone = [], 0
    for entry in entries:
        try:
            value = measure(entry)
        except FileNotFoundError:
            gone += 1  # removed while we read
            continue
        if low <= value <= high:
            keys.append((value, entry.name.casefold(), entry.name))
    return keys, len(entries) - gone


def _size(entry: os.DirEntry[str]) -> int:
    if not entry.is_file(follow_symlinks=False):
        return 0
    return entry.stat(follow_symlinks=False).st_size


def _modified(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mtime_ns


_BY_NAMES: Final = frozenset({Order.NAME, Order.KIND})
"""What is on a page of these changes only when the folder's names do."""
_FINDERS: Final[dict[Order, Callable[[_Entries, _Best], _Found]]] = {
    Order.NAME: _by_name,
    Order.KIND: _by_kind,
    Order.SIZE: _by_size,
    Order.MODIFIED: _by_time,
}


def _write_cursor(key: Key) -> str:
    return f"{key[0]}/{show_name(key[2])}"


def _read_cursor(after: str) -> Key:
    value, slash, shown = after.partition("/")
    if not (slash and _CURSOR_VALUE.fullmatch(value)):
        raise InvalidRequestError("'after' is not what a page of this list said")
    name = read_name(shown)
    return int(value), name.casefold(), name


def _describe_all(folder: int, keys: Iterable[Key]) -> Iterator[Entry]:
    for _, _, name in keys:
        try:
            yield describe_entry(folder, name)
        except FileNotFoundError:
            continue  # removed while we read
