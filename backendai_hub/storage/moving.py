"""Moving whole folders from one scope to another, in which they count from then on."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.safefs.entries import exists
from backendai_hub.safefs.errors import EntryMissingError, in_words
from backendai_hub.safefs.placing import rename_to_free
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.files import watch
from backendai_hub.storage.folders import clear_shelves, open_shelf
from backendai_hub.storage.ops import Done, MoveFolder
from backendai_hub.storage.places import (
    CLONING,
    FOLDER_MODE,
    REMOVING,
    TRASH,
    check_uuid,
    give,
    make_folders,
    parts_of,
)
from backendai_hub.storage.work import Host


def move(host: Host, op: MoveFolder, channel: Channel) -> Done:
    """Move a folder and what was thrown away in it, wherever an attempt ended.

    Where the file system cannot rename across scopes, it is copied and then removed;
    at every moment all of it is in one of the two places.
    """
    source, target = op.source, op.target
    folder_id = check_uuid(target.folder_id, "folder_id")
    if source.unmanaged or target.unmanaged or source.folder_id != folder_id:
        raise InvalidRequestError("only managed folders move, and keep their ids")
    _, *shelves, name = parts_of(source)
    mover = _Mover(host, op, channel)
    with (
        host.ground.scope(source.scope) as old,
        host.ground.scope(target.scope) as new,
        in_words(()),
    ):
        with (
            host.ground.beside(source, TRASH) as there,
            host.ground.beside(target, TRASH) as here,
        ):
            mover.bring(there, here, folder_id, f"{folder_id}.trash")
        crashpoint("moving.trash")
        with open_shelf(old, source) as there, open_shelf(new, target) as here:
            mover.bring(there, here, name, folder_id)
            if not exists(here, name):
                raise NotFoundError(f"there is no folder {folder_id} on this host")
        clear_shelves(old, shelves)
    return Done(bytes=mover.copied)


class _Mover:
    """Brings what belongs to one folder from one scope to the other."""

    def __init__(self, host: Host, op: MoveFolder, channel: Channel) -> None:
        self._host = host
        self._op = op
        self._channel = channel
        self.copied = 0

    def bring(self, there: int, here: int, name: str, unique: str) -> None:
        """Bring one folder; done before, it is done."""
        if not exists(there, name):
            return
        if not exists(here, name):
            try:
                rename_to_free(there, name, here, name)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                # The scopes have quotas, or are file systems, of their own.
                self._copy(there, here, name, unique)
            else:
                os.fsync(here)
                os.fsync(there)
                return
        crashpoint("moving.copied")
        self._remove(there, name, unique)

    def _copy(self, there: int, here: int, name: str, unique: str) -> None:
        """Copy it into what nobody sees yet, from where it appears whole."""
        host = self._host
        with host.ground.beside(self._op.target, CLONING) as cloning:
            with suppress(EntryMissingError):
                Tree(cloning).remove((unique,))
            try:
                made = make_folders(cloning, [unique], mode=FOLDER_MODE)
                above = Tree(os.dup(there))
                with Tree(made, owner=host.owner) as target, above:
                    with above.enter((name,)) as source:
                        work = watch(self._channel, unit="bytes")
                        self.copied += source.copy_all(target, work=work).bytes
                    give(made, host.owner)
                durable.sync_filesystem(cloning)
                rename_to_free(cloning, unique, here, name)
                os.fsync(here)
            except BaseException:
                with suppress(EntryMissingError):
                    Tree(cloning).remove((unique,))
                raise

    def _remove(self, there: int, name: str, unique: str) -> None:
        """Remove what has been copied, at once out of sight."""
        with self._host.ground.beside(self._op.source, REMOVING) as removing:
            with suppress(EntryMissingError):
                Tree(removing).remove((unique,))
            rename_to_free(there, name, removing, unique)
            os.fsync(there)
            Tree(removing).remove((unique,), work=Work())
