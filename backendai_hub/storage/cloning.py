"""Copies of whole folders, which appear when they are complete."""

from __future__ import annotations

import os
from contextlib import suppress

from backendai_hub.safefs.entries import exists
from backendai_hub.safefs.errors import EntryMissingError, in_words
from backendai_hub.safefs.placing import rename_to_free
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.files import watch
from backendai_hub.storage.folders import open_shelf
from backendai_hub.storage.ops import CloneFolder, Done
from backendai_hub.storage.places import (
    CLONING,
    FOLDER_MODE,
    OURS,
    check_uuid,
    give,
    make_folders,
    parts_of,
)
from backendai_hub.storage.work import Host


def clone(host: Host, op: CloneFolder, channel: Channel) -> Done:
    """Copy a folder; begin anew what an earlier attempt left, and do nothing twice."""
    folder_id = check_uuid(op.target.folder_id, "folder_id")
    *_, name = parts_of(op.target)
    with (
        host.ground.scope(op.target.scope) as scope,
        host.ground.beside(op.target, CLONING) as cloning,
        in_words(()),
    ):
        with open_shelf(scope, op.target) as shelf:
            if exists(shelf, name):
                return Done()
        _discard(cloning, folder_id)
        try:
            copied = _copy(host, op, channel, cloning)
            durable.sync_filesystem(cloning)
            crashpoint("cloning.copied")
            with open_shelf(scope, op.target) as shelf:
                rename_to_free(cloning, folder_id, shelf, name)
                os.fsync(shelf)
            crashpoint("cloning.published")
        except BaseException:
            _discard(cloning, folder_id)
            raise
    return Done(bytes=copied)


def _copy(host: Host, op: CloneFolder, channel: Channel, cloning: int) -> int:
    """Copy everything into a folder that nobody sees yet."""
    made = make_folders(cloning, [op.target.folder_id], mode=FOLDER_MODE)
    target = Tree(made, owner=host.owner)
    with target, host.ground_of(op.source_host).tree(op.source) as source:
        total = source.usage(work=watch(channel)).bytes

        def tell(done: int) -> None:
            crashpoint("cloning.entry")
            channel.progress(done, total, "bytes")

        copied = source.copy_all(target, work=Work(tell, limit=op.most_bytes))
        if op.source.unmanaged:
            with suppress(EntryMissingError):
                target.remove((OURS,))
        give(made, host.owner)
    return copied.bytes


def _discard(cloning: int, folder_id: str) -> None:
    with suppress(EntryMissingError):
        Tree(cloning).remove((folder_id,))
