"""What a task makes in a folder appears once, however often the task is begun.

A task has a folder of its own, where nobody sees it. There it makes the whole of it,
as ``made``; all of it is on the disk before ``note`` says where it is to appear, and
what is answered. It appears by one step, which takes ``made`` away: with the note there
and nothing made any more it has appeared, whatever people have done to it since. With
both there it has not; but where a file system moves by two names of one file, and both
are there, it has.

What is unpacked into a folder that exists appears entry by entry, each by such a step:
whoever goes on does so with the rest. Where the rest cannot appear, what has counts.

Only one attempt at a time works for a task, in whatever process: who lost the lead of
the platform may have workers that end later than their successors begin.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec

from backendai_hub.core.errors import HubError, InvalidRequestError, UnavailableError
from backendai_hub.safefs.entries import Kind, exists, look_at
from backendai_hub.safefs.errors import EntryExistsError, EntryMissingError, in_words
from backendai_hub.safefs.extracting import merge
from backendai_hub.safefs.paths import Parts, read_path, show_path
from backendai_hub.safefs.placing import Conflict, other_names
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Tally
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.holding import hold
from backendai_hub.storage.ops import ForgetTask, Place, Placed
from backendai_hub.storage.places import STAGING, TASK, check_uuid
from backendai_hub.storage.work import Host

_MADE: Final = "made"
_NOTE: Final = "note"

Make = Callable[[Tree, Parts], Placed]
"""Makes the whole of it at a place of a tree, and tells how much it is."""


class _Note(msgspec.Struct, frozen=True):
    placed: Placed
    boot: str
    merges: bool = False


@contextmanager
def desk_of(host: Host, place: Place, task_id: str) -> Iterator[Desk]:
    """Open what belongs to a task; without an id, to this moment only."""
    if not task_id:
        with host.staging(place) as staging:
            name = uuid4().hex
            staging.make_folder((name,))
            try:
                with staging.enter((name,)) as tree:
                    yield Desk(tree)
            finally:
                staging.remove((name,))
        return
    name = TASK + check_uuid(task_id, "task_id")
    host.sweep(place)
    with _alone(host, name), host.ground.beside(place, STAGING, name) as opened:
        _hold(host, opened)
        yield Desk(Tree(opened, owner=host.owner))


def forget(host: Host, op: ForgetTask, channel: Channel) -> None:
    """Remove what belongs to a task that has ended."""
    name = TASK + check_uuid(op.task_id, "task_id")
    with (
        _alone(host, name),
        host.ground.beside(op.place, STAGING) as staging,
        in_words(()),
        suppress(EntryMissingError),
    ):
        tree = Tree(staging)
        with tree.enter((name,)) as desk:
            _hold(host, desk.fileno())
            tree.remove((name,))


@contextmanager
def _alone(host: Host, name: str) -> Iterator[None]:
    """Let an attempt that nobody waits for any more end first."""
    with host.lock:
        if name in host.writing:
            raise _wait_for_other(host)
        host.writing.add(name)
    try:
        yield
    finally:
        with host.lock:
            host.writing.discard(name)


def _hold(host: Host, desk: int) -> None:
    """Keep workers of other services away, until *desk* is closed or we are dead."""
    if not hold(desk):
        raise _wait_for_other(host)


def _wait_for_other(host: Host) -> UnavailableError:
    return UnavailableError(
        f"storage host {host.name}: an earlier attempt has not ended yet",
        retry_after=5,
    )


class Desk:
    """What one task has made so far, and where that is to go."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def appear(
        self, tree: Tree, target: Parts, conflict: Conflict, make: Make
    ) -> Placed:
        """Make it and let it appear at *target*; or say where it did before."""
        if not target:
            raise InvalidRequestError("the path is missing: name what is meant")
        return self._appear(tree, target, conflict, make)

    def _appear(
        self, tree: Tree, target: Parts, conflict: Conflict, make: Make
    ) -> Placed:
        note = self._read_note()
        is_made = exists(self._tree.fileno(), _MADE)
        if note is not None and not is_made:
            return note.placed
        if note is not None and note.placed.refused:
            self._tree.remove((_MADE,))
            return note.placed
        if note is not None and note.merges:
            # Some of it has appeared: it is gone on with, also after a power cut.
            return self._merge(tree, target, conflict, note.placed)
        if note is not None and self._is_linked(tree, read_path(note.placed.path)):
            self._tree.remove((_MADE,))
            return note.placed
        # After a power cut nothing is lost by making it anew, whatever disks promise.
        if note is None or note.boot != _boot():
            placed = self._make(make)
        else:
            placed = note.placed
        try:
            return self._place(tree, target, conflict, placed)
        except BaseException:
            self._clear()
            raise

    def _make(self, make: Make) -> Placed:
        """Make it anew; all of it is on the disk before anybody is told of it."""
        self._clear()
        placed = make(self._tree, (_MADE,))
        with in_words(()):
            durable.sync_filesystem(self._tree.fileno())
        return placed

    def _is_linked(self, tree: Tree, parts: Parts) -> bool:
        """Tell whether what is made has its place, too: a move that did not end."""
        with suppress(OSError), tree.folder_of(parts) as folder:
            made = look_at(self._tree.fileno(), _MADE)
            return os.path.samestat(made, look_at(folder, parts[-1]))
        return False

    def _place(
        self, tree: Tree, target: Parts, conflict: Conflict, placed: Placed
    ) -> Placed:
        """Take the first name that may be taken, having noted it."""
        renames = conflict is Conflict.RENAME
        how = Conflict.FAIL if renames else conflict
        for name in other_names(target[-1]) if renames else target[-1:]:
            parts = (*target[:-1], name)
            tally = Tally()
            with in_words(target), tree.folder_of(parts) as folder:
                taken = exists(folder, name)
                if taken and renames:
                    continue
                if taken:
                    tally.add(look_at(folder, name))
                said = _tell(placed, parts, tally)
                self._write_note(said)
                crashpoint("making.noted")
                tally = Tally()
                try:
                    self._tree.move((_MADE,), parts, conflict=how, to=tree, tally=tally)
                except EntryExistsError:
                    if not renames:
                        raise
                    continue
                os.fsync(folder)
            crashpoint("making.appeared")
            return _tell(said, parts, tally)
        raise EntryExistsError("every name like this is taken")

    def unpack(
        self, tree: Tree, target: Parts, conflict: Conflict, make: Make
    ) -> Placed:
        """Let what is unpacked appear: as a folder, or in the one that is there."""
        if self._read_note() is not None or not _is_folder(tree, target):
            return self._appear(tree, target, conflict, make)
        made = self._make(make)
        # The folder that it was unpacked into goes away again.
        made = msgspec.structs.replace(made, files=made.files - 1)
        with self._tree.enter((_MADE,)) as top:
            replaced = _find_replaced(top, tree, target, conflict)
        said = _tell(made, target, replaced)
        self._write_note(said, merges=True)
        crashpoint("making.noted")
        return self._merge(tree, target, conflict, said)

    def _merge(
        self, tree: Tree, target: Parts, conflict: Conflict, placed: Placed
    ) -> Placed:
        tally = Tally()
        with self._tree.enter((_MADE,)) as top:
            try:
                _drop_linked(top, tree, target, conflict)
                # Before a crash the others may have been replaced already.
                ahead = _find_replaced(top, tree, target, conflict)
                tally.bytes = placed.replaced_bytes - ahead.bytes
                tally.entries = placed.replaced_files - ahead.entries
                merge(top, tree, target, conflict, tally)
                tree.sync_folder(target)
            except UnavailableError:
                raise  # it is gone on with, later
            except HubError as error:
                return self._stop(top, _tell(placed, target, tally), error)
        crashpoint("making.appeared")
        self._tree.remove((_MADE,))
        return _tell(placed, target, tally)

    def _stop(self, top: Tree, placed: Placed, error: HubError) -> Placed:
        """Tell what has come although the rest cannot; refuse if nothing has."""
        left = top.usage()
        if left.entries >= placed.files:
            self._clear()
            raise error
        came = msgspec.structs.replace(
            placed,
            bytes=placed.bytes - left.bytes,
            kept=placed.kept - left.kept,
            files=placed.files - left.entries,
            refused=error.message,
        )
        self._write_note(came, merges=True)
        crashpoint("making.stopped")
        self._tree.remove((_MADE,))
        return came

    def _clear(self) -> None:
        """Begin anew; the note goes first, without which nothing ever appeared."""
        with suppress(FileNotFoundError):
            os.unlink(_NOTE, dir_fd=self._tree.fileno())
        self._tree.remove(())

    def _write_note(self, placed: Placed, *, merges: bool = False) -> None:
        note = _Note(placed, _boot(), merges)
        durable.write(self._tree.fileno(), _NOTE, msgspec.json.encode(note))

    def _read_note(self) -> _Note | None:
        try:
            written = durable.read(self._tree.fileno(), _NOTE)
        except FileNotFoundError:
            return None
        return msgspec.json.decode(written, type=_Note)


def _drop_linked(top: Tree, tree: Tree, target: Parts, conflict: Conflict) -> None:
    """Let go of what has its place already: a move that did not end."""
    with in_words(target), tree.enter(target) as into:
        for name in durable.list_names(top.fileno()):
            made = look_at(top.fileno(), name)
            if stat.S_ISDIR(made.st_mode) or made.st_nlink == 1:
                continue
            renames = conflict is Conflict.RENAME
            places = other_names(name) if renames else (name,)
            if any(_is(into.fileno(), place, made) for place in places):
                os.unlink(name, dir_fd=top.fileno())


def _find_replaced(top: Tree, tree: Tree, target: Parts, conflict: Conflict) -> Tally:
    """Count what goes from the folder *target* when what is in *top* comes there."""
    tally = Tally()
    if conflict is Conflict.REPLACE:
        with in_words(target), tree.enter(target) as into:
            for name in durable.list_names(top.fileno()):
                with suppress(FileNotFoundError):
                    found = look_at(into.fileno(), name)
                    if not stat.S_ISDIR(found.st_mode):  # those are not replaced
                        tally.add(found)
    return tally


def _is(folder: int, name: str, wanted: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(look_at(folder, name), wanted)
    return False


def _tell(placed: Placed, parts: Parts, tally: Tally) -> Placed:
    return msgspec.structs.replace(
        placed,
        path=show_path(parts),
        replaced_bytes=tally.bytes,
        replaced_files=tally.entries,
    )


def _is_folder(tree: Tree, parts: Parts) -> bool:
    try:
        return tree.stat(parts).kind is Kind.FOLDER
    except EntryMissingError:
        return False


@cache
def _boot() -> str:
    """Name the time since the machine was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
