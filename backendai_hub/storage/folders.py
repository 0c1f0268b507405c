"""Whole folders: made, removed and copied, each so that it can be done again.

What is removed is first renamed out of sight, what is copied appears by a rename when
it is complete. So whatever a crash leaves can be told apart, and done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from backendai_hub.core.errors import (
    InsufficientStorageError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.safefs.errors import EntryExistsError, EntryMissingError, in_words
from backendai_hub.safefs.paths import Parts
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.ops import Done, MakeFolder, Place, RemoveFolder
from backendai_hub.storage.places import (
    FOLDER_MODE,
    REMOVING,
    TRASH,
    check_uuid,
    give,
    make_folders,
    parts_of,
)
from backendai_hub.storage.work import Host

SHELF_MODE: Final = 0o711
"""Of the folders above a folder: they can be passed through, not listed."""


def make(host: Host, op: MakeFolder, channel: Channel) -> None:
    """Make an empty folder that belongs to the host's owner."""
    if op.place.unmanaged:
        with host.ground.folder(op.place):
            return  # it is there, which is all that is asked of it
    *_, name = parts_of(op.place)
    with (
        host.ground.scope(op.place.scope) as scope,
        in_words(()),
        open_shelf(scope, op.place) as shelf,
    ):
        made = make_folders(shelf, [name], mode=FOLDER_MODE)
        try:
            give(made, host.owner)
            os.fsync(made)
        finally:
            os.close(made)


def remove(host: Host, op: RemoveFolder, channel: Channel) -> Done:
    """Remove a folder, wherever an earlier attempt ended."""
    if op.place.unmanaged:
        raise InvalidRequestError("a folder that is not managed is never removed")
    folder_id = check_uuid(op.place.folder_id, "folder_id")
    try:
        with host.ground.beside(op.place, REMOVING) as removing:
            _take_away(host, op.place, removing, folder_id)
            return Done(count=_remove(removing, folder_id, channel))
    except NotFoundError:
        return Done()  # not even its scope is there
    except InsufficientStorageError:
        return _remove_in_place(host, op.place, channel)


def _take_away(host: Host, place: Place, removing: int, folder_id: str) -> None:
    """Rename a folder and what people threw away in it out of sight."""
    scope_name, *shelves, name = parts_of(place)
    with host.ground.scope(scope_name) as scope:
        tree, away = Tree(scope), Tree(removing)
        for source, suffix in (((*shelves, name), ""), ((TRASH, folder_id), ".trash")):
            with suppress(EntryMissingError):
                _move_away(tree, source, away, (folder_id + suffix,))
                tree.sync_folder(source[:-1])
        os.fsync(removing)
        crashpoint("removing.renamed")
        clear_shelves(scope, shelves)


def clear_shelves(scope: int, shelves: Sequence[str]) -> None:
    """Remove the folders that a folder lay in, unless others lie there, too."""
    with suppress(OSError):
        os.rmdir("/".join(shelves), dir_fd=scope)
        os.rmdir(shelves[0], dir_fd=scope)


def _remove_in_place(host: Host, place: Place, channel: Channel) -> Done:
    """Remove a folder where it is: without any room it cannot even be renamed."""
    _, *shelves, name = parts_of(place)
    work = Work(channel.progress)
    with host.ground.scope(place.scope) as scope:
        for parts in ((*shelves, name), (TRASH, place.folder_id)):
            with suppress(EntryMissingError):
                Tree(scope).remove(parts, work=work)
        clear_shelves(scope, shelves)
    return Done(count=work.done)


def _move_away(tree: Tree, source: Parts, away: Tree, target: Parts) -> None:
    try:
        tree.move(source, target, to=away)
    except EntryExistsError:
        # One of the same id was removed before, and made again.
        away.remove(target)
        tree.move(source, target, to=away)


def _remove(removing: int, folder_id: str, channel: Channel) -> int:
    def tell(done: int) -> None:
        crashpoint("removing.entry")
        channel.progress(done)

    count = 0
    for name in (folder_id, f"{folder_id}.trash"):
        with suppress(EntryMissingError):
            count += Tree(removing).remove((name,), work=Work(tell))
    os.fsync(removing)
    return count


@contextmanager
def open_shelf(scope: int, place: Place) -> Iterator[int]:
    """Open the folder that has a place, made if need be and not removed meanwhile."""
    shelves = parts_of(place)[1:-1]
    opened = -1
    while opened < 0:
        # Whoever removed the last folder in it has removed it, too.
        with suppress(FileNotFoundError):
            opened = make_folders(scope, shelves, mode=SHELF_MODE)
    try:
        yield opened
    finally:
        os.close(opened)
