"""The files in a folder: looking, making folders, moving.

Whoever asks is asked for their permission anew each time. What is on the disk is what
there is: nothing here remembers files.
"""

from __future__ import annotations

from typing import Final

import msgspec

from backendai_hub.api.files import (
    DirectoryRequest,
    EntryKind,
    FileEntry,
    FilePage,
    FilePlace,
    MoveRequest,
    Sorting,
)
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import HubError, NotFoundError
from backendai_hub.core.events import EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.times import format_time
from backendai_hub.db import quota_scopes
from backendai_hub.operations.folder_access import OpenFolder, authorize_folder
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_work import tell
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.entries import Entry, Kind
from backendai_hub.safefs.listing import Order
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.ops import (
    ListEntries,
    MakeDirectory,
    MoveEntry,
    Placed,
    StatEntry,
)


class EntriesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of which folder, and in which order."""

    path: str = ""
    limit: int = 200
    after: str = ""
    sort: Sorting = "name"
    descending: bool = False
    search: str = ""


class PathQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the folder."""

    path: str = ""


async def open_for_reading(
    platform: Platform, principal: Principal, user: Actor | None, folder_id: str
) -> OpenFolder:
    """Return a folder that the caller may look into."""
    return await authorize_folder(platform, principal, user, folder_id)


async def open_for_writing(
    platform: Platform, principal: Principal, user: Actor | None, folder_id: str
) -> OpenFolder:
    """Return a folder that the caller may change, but bring nothing new into."""
    return await authorize_folder(platform, principal, user, folder_id, write=True)


async def open_for_adding(
    platform: Platform, principal: Principal, user: Actor | None, folder_id: str
) -> OpenFolder:
    """Return a folder that the caller may bring something into."""
    return await authorize_folder(
        platform, principal, user, folder_id, need=HostPermission.UPLOAD, write=True
    )


async def open_for_content(
    platform: Platform, principal: Principal, user: Actor | None, folder_id: str
) -> OpenFolder:
    """Return a folder whose content the caller may take away."""
    return await authorize_folder(
        platform, principal, user, folder_id, need=HostPermission.DOWNLOAD
    )


async def list_entries(
    platform: Platform, opened: OpenFolder, query: EntriesQuery
) -> FilePage:
    """List a part of a folder."""
    page = await platform.storage.call(
        opened.host,
        ListEntries(
            place=opened.place,
            path=query.path,
            after=query.after,
            limit=query.limit,
            sort=Order(query.sort),
            descending=query.descending,
            search=query.search,
        ),
    )
    return FilePage(
        items=[show_entry(entry) for entry in page.entries],
        total=page.total,
        next=page.after or None,
    )


async def stat_entry(platform: Platform, opened: OpenFolder, path: str) -> Entry:
    """Look at one entry."""
    return await platform.storage.call(
        opened.host, StatEntry(place=opened.place, path=path)
    )


async def find_entry(platform: Platform, opened: OpenFolder, path: str) -> Entry | None:
    """Look at one entry, which need not be there."""
    try:
        return await stat_entry(platform, opened, path)
    except NotFoundError:
        return None


async def make_directory(
    platform: Platform, opened: OpenFolder, body: DirectoryRequest
) -> FileEntry:
    """Make a folder in a folder."""
    room = quota_scopes.Room(files=1)
    async with platform.database.transaction() as tx:
        await quota_scopes.reserve(
            tx, opened.folder, 0, files=room.files, insider=opened.is_insider
        )
    try:
        made = await platform.storage.call(
            opened.host,
            MakeDirectory(
                place=opened.place,
                path=body.path,
                parents=body.parents,
                exist_ok=body.exist_ok,
            ),
        )
    except HubError:
        async with platform.database.transaction() as tx:
            await quota_scopes.give_back(tx, opened.folder, room)
        raise
    await note_change(
        platform,
        opened,
        Action.MAKE_DIRECTORY,
        f"the folder {body.path} was made in {opened.folder.name}",
        change=Change(reserved=room, files=made.folders),
        path=body.path,
    )
    return show_entry(made.entry)


async def move_entry(
    platform: Platform, opened: OpenFolder, body: MoveRequest
) -> FilePlace:
    """Move or rename an entry; what it replaces counts no more."""
    placed = await platform.storage.call(
        opened.host,
        MoveEntry(
            place=opened.place,
            path=body.path,
            target=body.target,
            conflict=Conflict(body.conflict),
        ),
    )
    await note_change(
        platform,
        opened,
        Action.MOVE_FILE,
        f"{body.path} is {placed.path} now in {opened.folder.name}",
        change=change_of(placed),
        path=body.path,
        target=placed.path,
    )
    return FilePlace(path=placed.path)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How much more is used, and what had been reserved for it."""

    used: int = 0
    files: int = 0
    reserved: quota_scopes.Room = quota_scopes.Room()


NOTHING: Final = Change()


def change_of(placed: Placed) -> Change:
    """Return what is used more because of what came, and less because of what went."""
    return Change(
        used=placed.kept - placed.replaced_bytes,
        files=placed.files - placed.replaced_files,
    )


async def note_change(
    platform: Platform,
    opened: OpenFolder,
    action: Action,
    text: str,
    *,
    change: Change | None = None,
    **after: str | int,
) -> None:
    """Write down that somebody has changed something in a folder."""
    async with platform.database.transaction() as tx:
        if change is not None:
            await quota_scopes.settle(
                tx,
                opened.folder,
                reserved=change.reserved,
                used=change.used,
                files=change.files,
            )
        tx.audit(act_of(action, opened.folder, after=after))
        tell(tx, EventKind.FOLDER_CHANGED, opened.folder, text)


def show_entry(entry: Entry) -> FileEntry:
    """Return what the API tells of an entry."""
    return FileEntry(
        name=entry.name,
        kind=KINDS[entry.kind],
        size=entry.size,
        modified=format_time(entry.modified) or "",
        mode=entry.mode,
        tag=entry.tag,
        target=entry.target,
    )


KINDS: Final[dict[Kind, EntryKind]] = {
    Kind.FILE: "file",
    Kind.FOLDER: "folder",
    Kind.LINK: "link",
    Kind.OTHER: "other",
}
