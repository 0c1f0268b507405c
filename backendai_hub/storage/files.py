"""The entries of a folder, as a worker handles them."""

from __future__ import annotations

from typing import Literal

from backendai_hub.safefs.entries import Entry
from backendai_hub.safefs.listing import Listing, Page
from backendai_hub.safefs.paths import Parts, show_path
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Tally, Work
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.once import desk_of
from backendai_hub.storage.ops import (
    CopyEntry,
    Counted,
    Done,
    ListEntries,
    Made,
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
        return tree.list(parts, listing, cancelled=channel.is_left, memory=host.pages)


def stat_entry(host: Host, op: StatEntry, channel: Channel) -> Entry:
    """Look at one entry."""
    with host.ground.tree(op.place) as tree:
        return tree.stat(read_visible(op.place, op.path))


def make_directory(host: Host, op: MakeDirectory, channel: Channel) -> Made:
    """Make a folder inside the folder."""
    parts = read_visible(op.place, op.path)
    with host.ground.tree(op.place) as tree:
        made = tree.make_folder(parts, parents=op.parents, exist_ok=op.exist_ok)
        return Made(entry=tree.stat(parts), folders=made)


def move_entry(host: Host, op: MoveEntry, channel: Channel) -> Placed:
    """Move or rename an entry."""
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    tally = Tally()
    with host.ground.tree(op.place) as tree:
        placed = tree.move(source, target, conflict=op.conflict, tally=tally)
    return Placed(
        path=show_path(placed),
        replaced_bytes=tally.bytes,
        replaced_files=tally.entries,
    )


def copy_entry(host: Host, op: CopyEntry, channel: Channel) -> Placed:
    """Copy an entry, which appears when it is complete."""
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    work = watch(channel, unit="bytes", limit=op.most_bytes)
    with (
        host.ground.tree(op.place) as tree,
        desk_of(host, op.place, op.task_id) as desk,
    ):

        def make(to: Tree, parts: Parts) -> Placed:
            made = tree.copy(source, parts, to=to, work=work)
            usage = to.weigh(parts, work=watch(channel))
            return Placed(
                path="",
                bytes=made.bytes,
                kept=usage.kept,
                files=usage.entries,
                skipped=made.skipped,
            )

        return desk.appear(tree, target, op.conflict, make)


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
            count = tree.weigh if parts else tree.usage
            found = count(parts, work=watch(channel))
    else:
        with host.ground.scope(op.scope) as scope:
            found = Tree(scope).usage(work=watch(channel))
    return Counted(bytes=found.bytes, files=found.entries, kept=found.kept)


def watch(
    channel: Channel,
    *,
    total: int | None = None,
    unit: Literal["bytes", "entries"] = "entries",
    limit: int | None = None,
) -> Work:
    """Tell the service how far it is, and end when nobody waits any more."""
    return Work(lambda done: channel.progress(done, total, unit), limit=limit)
