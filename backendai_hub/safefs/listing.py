"""A folder's entries, a page at a time, in one reading of the folder.

Only what is shown is looked at closely where the order allows: by name and by kind
nothing else has to be. Memory does not grow with the folder.
"""

from __future__ import annotations

import heapq
import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.entries import Entry, describe_entry
from backendai_hub.safefs.paths import read_name, show_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Key = tuple[int, str, str]
MAX_PAGE: Final = 1000
_CURSOR_VALUE: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)


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


def list_folder(folder: int, listing: Listing) -> Page:
    """Return one page of what is directly in *folder*."""
    if not 1 <= listing.limit <= MAX_PAGE:
        raise InvalidRequestError(f"a page has 1 to {MAX_PAGE} entries")
    scan = _Scan(folder, listing)
    pick = heapq.nlargest if listing.descending else heapq.nsmallest
    chosen = pick(listing.limit + 1, _after(scan.keys(), listing))
    shown = chosen[: listing.limit]
    more = len(chosen) > listing.limit
    return Page(
        entries=tuple(_describe_all(folder, shown)),
        total=scan.total,
        after=_write_cursor(shown[-1]) if more else "",
    )


class _Scan:
    """One reading of a folder, which counts what matches."""

    def __init__(self, folder: int, listing: Listing) -> None:
        self._folder = folder
        self._wanted = listing.search.casefold()
        self._hidden = listing.hidden
        self._value = _VALUES[listing.sort]
        self.total = 0

    def keys(self) -> Iterator[Key]:
        """Yield what each matching entry is sorted by."""
        if self._value or self._wanted or self._hidden:
            return self._chosen()
        return self._all()

    def _all(self) -> Iterator[Key]:
        """Yield every name, with nothing to spare: there may be a million."""
        count = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name
                count += 1
                yield 0, name.casefold(), name
        self.total = count

    def _chosen(self) -> Iterator[Key]:
        wanted, hidden, value = self._wanted, self._hidden, self._value
        with os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name
                folded = name.casefold()
                if name in hidden or wanted not in folded:
                    continue
                try:
                    key = (value(entry) if value else 0, folded, name)
                except FileNotFoundError:
                    continue  # removed while we read
                self.total += 1
                yield key


def _rank(entry: os.DirEntry[str]) -> int:
    return 0 if entry.is_dir(follow_symlinks=False) else 1


def _size(entry: os.DirEntry[str]) -> int:
    if not entry.is_file(follow_symlinks=False):
        return 0
    return entry.stat(follow_symlinks=False).st_size


def _modified(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mtime_ns


_VALUES: Final[dict[Order, Callable[[os.DirEntry[str]], int] | None]] = {
    Order.NAME: None,
    Order.KIND: _rank,
    Order.SIZE: _size,
    Order.MODIFIED: _modified,
}


def _after(keys: Iterator[Key], listing: Listing) -> Iterator[Key]:
    if not listing.after:
        return keys
    last = _read_cursor(listing.after)
    if listing.descending:
        return (key for key in keys if key < last)
    return (key for key in keys if key > last)


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
