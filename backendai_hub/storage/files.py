"""The entries of a folder, as a worker handles them."""

from __future__ import annotations

from backendai_hub.safefs.entries import Entry
from backendai_hub.safefs.listing import Listing, Page
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.work import Work
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.ops import (
    Done,
    ListEntries,
    MakeDirectory,
    MoveEntry,
    RemoveEntry,
    StatEntry,
)
from backendai_hub.storage.work import Host, hidden_names, read_visible


def list_entries(host: Host, op: ListEntries, channel: Channel) -> Page:
    """List a part of a folder."""
    parts = read_visible(op.place, op.path)
    listing = Listing(
        after=op.after,
        limit=op.limit,
        sort=op.sort,
        descending=op.descending,
        search=op.search,
        hidden=frozenset() if parts else hidden_names(op.place),
    )
    with host.ground.tree(op.place) as tree:
        return tree.list(parts, listing)


def stat_entry(host: Host, op: StatEntry, channel: Channel) -> Entry:
    """Look at one entry."""
    with host.ground.tree(op.place) as tree:
        return tree.stat(read_visible(op.place, op.path))


def make_directory(host: Host, op: MakeDirectory, channel: Channel) -> Entry:
    """Make a folder inside the folder."""
    parts = read_visible(op.place, op.path)
    with host.ground.tree(op.place) as tree:
        tree.make_folder(parts, parents=op.parents, exist_ok=op.exist_ok)
        return tree.stat(parts)


def move_entry(host: Host, op: MoveEntry, channel: Channel) -> None:
    """Move or rename an entry."""
    conflict = Conflict.REPLACE if op.overwrite else Conflict.FAIL
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    with host.ground.tree(op.place) as tree:
        tree.move(source, target, conflict=conflict)


def remove_entry(host: Host, op: RemoveEntry, channel: Channel) -> Done:
    """Remove an entry for good."""
    parts = read_visible(op.place, op.path)
    with host.ground.tree(op.place) as tree:
        return Done(count=tree.remove(parts, work=watch(channel)))


def watch(channel: Channel) -> Work:
    """Tell the service how far it is, and end when nobody waits any more."""
    return Work(channel.progress)
