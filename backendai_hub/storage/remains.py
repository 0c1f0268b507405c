"""What lies in a scope, by where it lies; and its removal, when nobody knows it.

Crashes in the wrong moment, restored databases and hosts that were gone for a while
leave what no row of the platform tells of. The service compares; here is only looked,
and removed what it names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.safefs.errors import EntryMissingError, in_words
from backendai_hub.safefs.opening import open_folder
from backendai_hub.safefs.paths import Parts, read_name, show_name
from backendai_hub.safefs.tree import Tree
from backendai_hub.storage import folders, uploads
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.durable import list_names
from backendai_hub.storage.files import watch
from backendai_hub.storage.ops import (
    AbandonUpload,
    Done,
    ListRemains,
    Names,
    Place,
    RemoveFolder,
    RemoveRemain,
)
from backendai_hub.storage.places import (
    CLONING,
    REMOVING,
    STAGING,
    TRASH,
    UPLOADS,
)
from backendai_hub.storage.scopes import SHELF, find_folders, page_of
from backendai_hub.storage.work import Host

_PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        UPLOADS: "upload",
        TRASH: "trash",
        REMOVING: "removing",
        CLONING: "cloning",
        STAGING: "staging",
    }
)


def list_remains(host: Host, op: ListRemains, channel: Channel) -> Names:
    """List what lies in a scope, with what each thing is."""
    if op.place is not None:
        there = _find_kept(host, op.place)
    else:
        with host.ground.scope(op.scope) as scope:
            there = set(_find_all(host, scope))
    return page_of(sorted(one for one in there if one > op.after), op.limit)


def _find_kept(host: Host, place: Place) -> set[str]:
    """Find what an unmanaged folder keeps of this platform, if it keeps anything."""
    with host.ground.folder(_check_unmanaged(place)) as folder:
        try:
            ours = open_folder(folder, host.ground.marked)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        try:
            return {
                f"{kind}/{name}"
                for where, kind in _PLACES.items()
                if where != TRASH
                for name in _names_in(host, ours, where)
            }
        finally:
            os.close(ours)


def _check_unmanaged(place: Place) -> Place:
    if not place.unmanaged:
        raise InvalidRequestError("place: what is managed is found by its scope")
    return place


def _find_all(host: Host, scope: int) -> Iterator[str]:
    for folder_id in find_folders(scope):
        yield f"folder/{folder_id}"
    for name in list_names(scope):
        kind = _PLACES.get(name)
        if kind is not None:
            yield from (f"{kind}/{one}" for one in _names_in(host, scope, name))
        elif not SHELF.fullmatch(name):
            yield f"unknown/{show_name(name)}"


def _names_in(host: Host, scope: int, place: str) -> Iterator[str]:
    try:
        opened = open_folder(scope, [place])
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        names = list_names(opened)
    finally:
        os.close(opened)
    for name in names:
        if place == UPLOADS:
            # One upload leaves several files, all called by its id.
            yield show_name(name.partition(".")[0] or name)
        elif place != STAGING or name != host.token:
            yield show_name(name)


def remove_remain(host: Host, op: RemoveRemain, channel: Channel) -> Done:
    """Remove one thing that lies in a scope."""
    remove = _REMOVALS.get(op.kind)
    if op.place is not None:
        _check_unmanaged(op.place)
        if op.kind in {"folder", "trash"}:
            remove = None
    if remove is None:
        raise InvalidRequestError(f"kind: what is {op.kind} is not removed from here")
    try:
        return remove(host, op, channel)
    except NotFoundError:
        return Done()


def _remove_folder(host: Host, op: RemoveRemain, channel: Channel) -> Done:
    place = Place(scope=op.scope, folder_id=op.name)
    return folders.remove(host, RemoveFolder(place=place), channel)


def _remove_upload(host: Host, op: RemoveRemain, channel: Channel) -> Done:
    place = op.place or Place(scope=op.scope)
    with suppress(InvalidRequestError):
        uploads.abandon(host, AbandonUpload(place=place, upload_id=op.name), channel)
        return Done(count=1)
    return _remove_below(UPLOADS)(host, op, channel)


def _remove_below(place: str) -> Callable[[Host, RemoveRemain, Channel], Done]:
    def remove(host: Host, op: RemoveRemain, channel: Channel) -> Done:
        if place == STAGING and op.name == host.token:
            raise InvalidRequestError("name: this is being made at the moment")
        parts: Parts = (place, read_name(op.name))
        work = watch(channel)
        with (
            host.ground.beside(op.place or Place(scope=op.scope)) as base,
            in_words(parts),
            suppress(EntryMissingError),
        ):
            Tree(base).remove(parts, work=work)
        return Done(count=work.done)

    return remove


_REMOVALS: Final[Mapping[str, Callable[[Host, RemoveRemain, Channel], Done]]] = (
    MappingProxyType(
        {
            "folder": _remove_folder,
            "upload": _remove_upload,
            **{
                kind: _remove_below(place)
                for place, kind in _PLACES.items()
                if kind != "upload"
            },
        }
    )
)
