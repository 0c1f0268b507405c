"""What people threw away inside a folder: kept beside it until it is put back or gone.

Each has a folder of its own, called by an id: ``note`` says where it was, ``entry`` is
what it was. A note without an entry is of something that never got there, or is back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.ids import is_id
from backendai_hub.safefs.entries import Entry, exists
from backendai_hub.safefs.errors import EntryMissingError
from backendai_hub.safefs.opening import open_folder
from backendai_hub.safefs.paths import show_path
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Tally
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.files import scan, watch
from backendai_hub.storage.ops import (
    Counted,
    Done,
    EmptyTrash,
    ListTrash,
    Place,
    Placed,
    RestoreEntry,
    ScanUsage,
    TrashedEntry,
    TrashEntry,
    TrashPage,
)
from backendai_hub.storage.places import TRASH, check_uuid
from backendai_hub.storage.work import Host, read_visible

_NOTE: Final = "note"
_ENTRY: Final = "entry"
_UNMANAGED: Final = "unmanaged"
_PART: Final = "of-"


class _Note(msgspec.Struct, frozen=True):
    path: str
    at: str
    by: str = ""


def throw_away(host: Host, op: TrashEntry, channel: Channel) -> None:
    """Move an entry out of the folder, where it can be put back from."""
    parts = read_visible(op.place, op.path)
    entry_id = check_uuid(op.entry_id, "entry_id")
    with host.ground.tree(op.place) as tree, _open(host, op.place) as trash:
        with host.ground.beside(op.place, TRASH, *_keys(op.place), entry_id) as own:
            if exists(own, _ENTRY):
                return
            tree.stat(parts)
            note = _Note(show_path(parts), op.at, op.by)
            durable.write(own, _NOTE, msgspec.json.encode(note))
            crashpoint("trashing.noted")
            tree.move(parts, (_ENTRY,), to=Tree(own))
            Tree(own).sync_folder(())
            tree.sync_folder(parts[:-1])
            crashpoint("trashing.renamed")
        trash.sync_folder(())


def restore(host: Host, op: RestoreEntry, channel: Channel) -> Placed:
    """Put back what was thrown away, making the folders it was in if need be."""
    entry_id = check_uuid(op.entry_id, "entry_id")
    with _open(host, op.place) as trash, host.ground.tree(op.place) as tree:
        note = _read_note(trash, entry_id)
        if note is None:
            raise NotFoundError("there is no such thing in the trash")
        target = read_visible(op.place, op.target or note.path)
        made = 0
        if target[:-1]:
            made = tree.make_folder(target[:-1], parents=True, exist_ok=True)
        tally = Tally()
        placed = trash.move(
            (entry_id, _ENTRY), target, conflict=op.conflict, to=tree, tally=tally
        )
        tree.sync_folder(placed[:-1])
        trash.sync_folder((entry_id,))
        trash.remove((entry_id,))
    return Placed(
        path=show_path(placed),
        files=made,
        replaced_bytes=tally.bytes,
        replaced_files=tally.entries,
    )


def list_trash(host: Host, op: ListTrash, channel: Channel) -> TrashPage:
    """List what was thrown away, in the order of ids."""
    found: list[TrashedEntry] = []
    with _open(host, op.place) as trash:
        for entry_id in sorted(durable.list_names(trash.fileno())):
            if entry_id <= op.after or (one := _describe(trash, entry_id)) is None:
                continue
            if len(found) == op.limit:
                return TrashPage(entries=found, after=found[-1].entry_id)
            found.append(one)
    return TrashPage(entries=found)


def count(host: Host, op: ScanUsage, channel: Channel) -> Counted:
    """Count what is somewhere, and what was thrown away there if that is wanted."""
    found = scan(host, op, channel)
    if op.place is None or op.path or not op.with_trash:
        return found
    with (
        suppress(EntryMissingError),
        host.ground.beside(op.place, TRASH) as opened,
    ):
        trash = Tree(os.dup(opened)).enter(_keys(op.place))
        with trash:
            for part in _parts(trash, with_parts=True):
                for entry_id in durable.list_names(part.fileno()):
                    found = _add(found, _weigh(part, entry_id, channel))
    return found


def _add(one: Counted, other: Counted) -> Counted:
    return Counted(
        bytes=one.bytes + other.bytes,
        files=one.files + other.files,
        kept=one.kept + other.kept,
    )


def _weigh(trash: Tree, entry_id: str, channel: Channel) -> Counted:
    """Return how much people threw away under an id; notes of ours are nothing."""
    try:
        found = trash.weigh((entry_id, _ENTRY), work=watch(channel))
    except EntryMissingError:
        return Counted(bytes=0, files=0)
    return Counted(bytes=found.bytes, files=found.entries, kept=found.kept)


def empty(host: Host, op: EmptyTrash, channel: Channel) -> Done:
    """Remove for good what was thrown away."""
    work = watch(channel)
    freed = Counted(bytes=0, files=0)
    with _open(host, op.place) as whole:
        for trash in _parts(whole, with_parts=op.with_parts):
            for entry_id in _choose(trash, op):
                with suppress(EntryMissingError):
                    weight = _weigh(trash, entry_id, channel)
                    trash.remove((entry_id,), work=work)
                    freed = _add(freed, weight)
    return Done(count=work.done, bytes=freed.kept, files=freed.files)


def _parts(whole: Tree, *, with_parts: bool) -> Iterator[Tree]:
    """Yield the trash of a place, and those of people who have a part of it."""
    yield whole
    if not with_parts:
        return
    for name in durable.list_names(whole.fileno()):
        if name.startswith(_PART):
            with suppress(EntryMissingError), whole.enter((name,)) as part:
                yield part


def _choose(trash: Tree, op: EmptyTrash) -> Iterator[str]:
    if op.entry_ids is not None:
        yield from (check_uuid(entry_id, "entry_ids") for entry_id in op.entry_ids)
        return
    for entry_id in durable.list_names(trash.fileno()):
        if entry_id.startswith(_PART):
            continue  # somebody's own
        note = _read_note(trash, entry_id)
        if not op.before or note is None or note.at < op.before:
            yield entry_id


def _describe(trash: Tree, entry_id: str) -> TrashedEntry | None:
    note = _read_note(trash, entry_id)
    if note is None:
        return None
    try:
        entry: Entry = trash.stat((entry_id, _ENTRY))
    except EntryMissingError:
        return None
    return TrashedEntry(
        entry_id=entry_id,
        path=note.path,
        thrown_at=note.at,
        thrown_by=note.by,
        kind=entry.kind,
        size=entry.size,
    )


def _read_note(trash: Tree, entry_id: str) -> _Note | None:
    """Return what is known of something in the trash; ``None``: it is not there."""
    if not is_id(entry_id):
        return None
    with suppress(FileNotFoundError, NotADirectoryError):
        own = Tree(open_folder(trash.fileno(), [entry_id]))
        with own:
            if exists(own.fileno(), _ENTRY):
                written = durable.read(own.fileno(), _NOTE)
                return msgspec.json.decode(written, type=_Note)
    return None


@contextmanager
def _open(host: Host, place: Place) -> Iterator[Tree]:
    with host.ground.folder(place):
        pass  # without the folder there is no trash of it, either
    with host.ground.beside(place, TRASH, *_keys(place)) as opened:
        yield Tree(opened)


def _keys(place: Place) -> tuple[str, ...]:
    """Return where a folder's trash lies; who has a part of their own has one there."""
    whole = _UNMANAGED
    if not place.unmanaged:
        whole = check_uuid(place.folder_id, "folder_id")
    if not place.within:
        return (whole,)
    return whole, f"{_PART}{check_uuid(place.within, 'within')}"
