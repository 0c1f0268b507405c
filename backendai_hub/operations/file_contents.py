"""What is in files: whole or in part, several as an archive, small ones as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

from backendai_hub.api.files import FileEntry, Packing, TextFile
from backendai_hub.core.access import Action
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InvalidRequestError,
    PreconditionFailedError,
    TooLargeError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.files import (
    MOST_TEXT,
    ByteRange,
    is_unchanged_since,
    names_tag,
    read_range,
)
from backendai_hub.core.times import format_time
from backendai_hub.db import quota_scopes
from backendai_hub.operations.files import show_entry, stat_entry
from backendai_hub.operations.folder_access import OpenFolder
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_work import tell
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.entries import Entry, Kind
from backendai_hub.safefs.members import ArchiveKind
from backendai_hub.storage.ops import Archive, ReadFile, WriteText

MOST_PACKED: Final = 1000
_TRIES: Final = 3


class Stream(Protocol):
    """Bytes that come as they are read; to be closed whatever happens."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield all of them."""

    def close(self) -> None:
        """Stop, also before the end."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The headers of a request that say when, and of what, to send something."""

    if_match: str | None = None
    if_none_match: str | None = None
    if_range: str | None = None
    range: str | None = None

    @property
    def are_none(self) -> bool:
        """Whether the file is asked for as it is."""
        return all(getattr(self, name) is None for name in self.__struct_fields__)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent of a file; nothing, where ``is_known`` to who asks."""

    entry: Entry
    part: ByteRange | None = None
    is_known: bool = False
    stream: Stream | None = None


class ArchiveQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to pack into an archive of which kind."""

    path: list[str] = []
    kind: Packing = "zip"


async def look_at_content(
    platform: Platform, opened: OpenFolder, path: str, conditions: Conditions
) -> Content:
    """Tell what would be sent of a file."""
    entry = await stat_entry(platform, opened, path)
    if entry.kind is not Kind.FILE:
        raise InvalidRequestError(
            f"path: {path!r} is a {entry.kind}; only files have content"
        )
    return _choose(entry, conditions)


async def open_content(
    platform: Platform, opened: OpenFolder, path: str, conditions: Conditions
) -> Content:
    """Begin to read a file: what is told of it is of the very content that follows."""
    if conditions.are_none:
        operation = ReadFile(place=opened.place, path=path)
        reader = await platform.storage.download(opened.host, operation)
        return Content(entry=reader.head.entry, stream=reader)
    for _ in range(_TRIES):
        wanted = await look_at_content(platform, opened, path, conditions)
        if wanted.is_known:
            return wanted
        part = wanted.part or ByteRange(0, wanted.entry.size)
        reader = await platform.storage.download(
            opened.host,
            ReadFile(place=opened.place, path=path, start=part.start, end=part.end),
        )
        if reader.head.entry.tag == wanted.entry.tag:
            return msgspec.structs.replace(wanted, stream=reader)
        reader.close()  # replaced between looking and reading: look again
    raise ConflictError(f"{path!r} is being changed all the time; try again")


def _choose(entry: Entry, conditions: Conditions) -> Content:
    """Decide by the conditions, in the order that HTTP names."""
    tag = entry.tag
    if conditions.if_match is not None and not names_tag(conditions.if_match, tag):
        raise PreconditionFailedError("If-Match: the file was changed", tag=tag)
    if names_tag(conditions.if_none_match, tag, weakly=True):
        return Content(entry=entry, is_known=True)
    given = conditions.if_range
    if given is not None and not is_unchanged_since(given, tag, entry.modified):
        return Content(entry=entry)
    return Content(entry=entry, part=read_range(conditions.range, entry.size))


async def open_archive(
    platform: Platform, opened: OpenFolder, query: ArchiveQuery
) -> Stream:
    """Begin to pack several paths, or the whole folder."""
    if len(query.path) > MOST_PACKED:
        raise InvalidRequestError(
            f"path: there are {len(query.path)}; at most {MOST_PACKED} are packed"
        )
    return await platform.storage.download(
        opened.host,
        Archive(
            place=opened.place, paths=query.path or [""], kind=ArchiveKind(query.kind)
        ),
    )


# --- text --------------------------------------------------------------------------


async def load_text(platform: Platform, opened: OpenFolder, path: str) -> TextFile:
    """Read a small file of text."""
    reader = await platform.storage.download(
        opened.host, ReadFile(place=opened.place, path=path)
    )
    async with reader:
        entry = reader.head.entry
        if entry.size > MOST_TEXT:
            raise TooLargeError(
                f"{path!r} has {entry.size} bytes; up to {MOST_TEXT} are edited as"
                " text: download it instead"
            )
        content = b"".join([chunk async for chunk in reader])
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError(
            f"{path!r} is not text in UTF-8; download it instead"
        ) from None
    return TextFile(
        text=text, tag=entry.tag, modified=format_time(entry.modified) or ""
    )


async def _count(platform: Platform, opened: OpenFolder, content: bytes) -> None:
    """Count a text before it appears, if there is room for it.

    So who replaces it at once never takes away what has not been counted yet.
    """
    room = quota_scopes.Room(len(content), 1)
    async with platform.database.transaction() as tx:
        await quota_scopes.reserve(
            tx, opened.folder, room.bytes, files=1, insider=opened.is_insider
        )
        await quota_scopes.settle(
            tx, opened.folder, reserved=room, used=room.bytes, files=1
        )


async def store_text(
    platform: Platform,
    opened: OpenFolder,
    path: str,
    text: str,
    *,
    if_tag: str | None,
) -> FileEntry:
    """Replace a small file, if it still has *if_tag*; ``""``: if there is none.

    Without a tag it is replaced whatever it is, with ``ANY_TAG`` only if it is there.
    """
    content = text.encode()
    if len(content) > MOST_TEXT:
        raise TooLargeError(
            f"text: {len(content)} bytes; up to {MOST_TEXT} are edited as text"
        )
    await _count(platform, opened, content)
    try:
        written = await platform.storage.call(
            opened.host,
            WriteText(place=opened.place, path=path, content=content, if_tag=if_tag),
        )
    except HubError:
        async with platform.database.transaction() as tx:
            await quota_scopes.settle(
                tx, opened.folder, reserved=0, used=-len(content), files=-1
            )
        raise
    async with platform.database.transaction() as tx:
        await quota_scopes.settle(
            tx,
            opened.folder,
            reserved=0,
            used=-written.replaced_bytes,
            files=-written.replaced_files,
        )
        after = {"path": path, "bytes": len(content)}
        tx.audit(act_of(Action.WRITE_FILE, opened.folder, after=after))
        said = f"{path} was written in {opened.folder.name}"
        tell(tx, EventKind.FOLDER_CHANGED, opened.folder, said)
    return show_entry(written.entry)
