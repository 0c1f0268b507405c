"""The entries of a folder, as a worker handles them."""

from __future__ import annotations

from typing import Literal

from backendai_hub.safefs.entries import Entry, Kind
from backendai_hub.safefs.listing import Listing, Page
from backendai_hub.safefs.paths import show_path
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.ops import (
    CopyEntry,
    Counted,
    Done,
    ListEntries,
    MakeDirectory,
    MoveEntry,
    Placed,
    RemoveEntry,
    ScanUsage,
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


def move_entry(host: Host, op: MoveEntry, channel: Channel) -> Placed:
    """Move or rename an entry."""
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    with host.ground.tree(op.place) as tree:
        placed = tree.move(source, target, conflict=op.conflict)
    return Placed(path=show_path(placed))


def copy_entry(host: Host, op: CopyEntry, channel: Channel) -> Placed:
    """Copy an entry, which appears when it is complete."""
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    work = watch(channel, unit="bytes", limit=op.most_bytes)
    with host.tree(op.place) as tree:
        made = tree.copy(source, target, conflict=op.conflict, work=work)
    return Placed(path=show_path(made.parts), bytes=made.bytes, skipped=made.skipped)


def remove_entry(host: Host, op: RemoveEntry, channel: Channel) -> Done:
    """Remove an entry for good."""
    parts = read_visible(op.place, op.path)
    with host.ground.tree(op.place) as tree:
        return Done(count=tree.remove(parts, work=watch(channel)))


def scan(host: Host, op: ScanUsage, channel: Channel) -> Counted:
    """Count what is in a scope, or in one place."""
    if op.place is not None:
        parts = read_visible(op.place, op.path)
        with host.ground.tree(op.place) as tree:
            if parts and (entry := tree.stat(parts)).kind is not Kind.FOLDER:
                return Counted(bytes=entry.size, files=1)
            found = tree.usage(parts, work=watch(channel))
    else:
        with host.ground.scope(op.scope) as scope:
            found = Tree(scope).usage(work=watch(channel))
    return Counted(bytes=found.bytes, files=found.entries)


def watch(
    channel: Channel,
    *,
    total: int | None = None,
    unit: Literal["bytes", "entries"] = "entries",
    limit: int | None = None,
) -> Work:
    """Tell the service how far it is, and end when nobody waits any more."""
    return Work(lambda done: channel.progress(done, total, unit), limit=limit)
