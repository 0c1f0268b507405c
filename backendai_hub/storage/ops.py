"""What can be asked of a storage host, and what it answers.

Each operation is a struct that names the type of its answer. Paths are texts with
slashes, relative to the folder; names that are no text are spelt as
:func:`backendai_hub.safefs.paths.show_name` does. Ids are UUIDs, chosen by who asks, so
that asking twice does once.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from backendai_hub.safefs.entries import Entry, Kind
from backendai_hub.safefs.listing import Order, Page
from backendai_hub.safefs.members import ArchiveKind, Limits
from backendai_hub.safefs.placing import Conflict

T_co = TypeVar("T_co", covariant=True)

ChecksumKind = Literal["sha1", "sha256", "md5", "crc32"]
RemainKind = Literal[
    "folder", "upload", "trash", "removing", "cloning", "staging", "unknown"
]
"""What something in a scope is by where it lies; *unknown* is nothing of ours."""


class Operation(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """Something a storage host does; ``answer`` is the type of what it says."""

    answer: ClassVar[Any] = None


class Place(msgspec.Struct, frozen=True):
    """One virtual folder: of a scope, or an absolute path of the host's machine.

    ``within`` is the id of somebody who has a part of their own in it: then only that
    part is seen, and is made if it is missing.
    """

    scope: str = ""
    folder_id: str = ""
    unmanaged: str = ""
    within: str = ""
    asker: str = ""
    """Who is waiting for it, so that nobody takes everybody's turn; or the platform."""


# --- answers -----------------------------------------------------------------------


class TrashedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What was thrown away inside a folder, and can be put back."""

    entry_id: str
    path: str
    thrown_at: str
    thrown_by: str = ""
    kind: Kind = Kind.FILE
    size: int = 0


class TrashPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what was thrown away, by id."""

    entries: list[TrashedEntry]
    after: str = ""


class ScopeUse(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a scope is used; ``None`` limits nothing, or is not known."""

    bytes: int = 0
    files: int = 0
    limit_bytes: int | None = None
    limit_files: int | None = None
    known: bool = True
    """Whether the filesystem counts for itself; otherwise only a scan can tell."""
    counts_files: bool = True
    """Whether it counts files, too."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found."""

    bytes: int
    """Their length, of which a copy may need all."""
    files: int
    """And folders, and links."""
    kept: int = 0
    """What they keep: their length without holes."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How much a long operation did."""

    count: int = 0
    bytes: int = 0
    files: int = 0
    """How many entries of people's were removed, with nothing of ours."""


class UploadState(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an upload has safely arrived."""

    offset: int


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is now, which may be under another name than was asked for."""

    path: str
    bytes: int = 0
    """How much was copied or unpacked."""
    kept: int = 0
    """How much of that counts: no holes."""
    files: int = 0
    """How many entries there are more, folders among them."""
    replaced_bytes: int = 0
    """What is free because something else took its place."""
    replaced_files: int = 0
    skipped: int = 0
    """Pipes, devices and, in archives, links, which were left out."""
    refused: str = ""
    """Why no more of an archive came than is told here; mostly all of it has."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """Where an upload ended up."""

    path: str
    size: int
    tag: str = ""
    folders: int = 0
    """How many folders were made on the way to it."""
    replaced_bytes: int = 0
    replaced_files: int = 0


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in a folder, and how many had to be made for it."""

    entry: Entry
    folders: int


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is now, and what it has replaced."""

    entry: Entry
    replaced_bytes: int = 0
    replaced_files: int = 0


class FileHead(msgspec.Struct, frozen=True, kw_only=True):
    """What comes before the content of a file that is read."""

    entry: Entry
    start: int = 0
    length: int = 0
    """How many bytes follow."""


class ArchiveHead(msgspec.Struct, frozen=True, kw_only=True):
    """What comes before the content of an archive."""

    kind: ArchiveKind


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Names of scopes, or ids of folders, in order."""

    names: list[str]
    after: str = ""


class UploadNames(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of uploads, and how much of each has arrived."""

    names: list[str]
    sizes: list[int]


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of its host."""

    capabilities: list[str]
    total_bytes: int = 0
    free_bytes: int = 0
    total_files: int = 0
    free_files: int = 0
    busy: int = 0
    """Operations under way."""
    stuck: int = 0
    """Operations that nobody waits for any more, and which do not end."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """How far a long operation is; ``total`` is ``None`` while it is not known."""

    done: int
    total: int | None = None
    unit: Literal["bytes", "entries"] = "entries"


# --- hosts and scopes --------------------------------------------------------------


class Health(Operation[HostReport], frozen=True, kw_only=True, tag="health"):
    """Look whether the filesystem answers, and how full it is."""

    answer: ClassVar[Any] = HostReport


class MakeScope(Operation[None], frozen=True, kw_only=True, tag="make-scope"):
    """Make a scope with these limits, or give them to it if it exists."""

    scope: str
    limit_bytes: int | None = None
    limit_files: int | None = None


class RemoveScope(Operation[None], frozen=True, kw_only=True, tag="remove-scope"):
    """Remove a scope that has no folders any more."""

    scope: str


class SetLimit(Operation[None], frozen=True, kw_only=True, tag="set-limit"):
    """Change a scope's limits; where the filesystem has no quotas nothing happens."""

    scope: str
    bytes: int | None = None
    files: int | None = None


class ScopeUsage(Operation[ScopeUse], frozen=True, kw_only=True, tag="scope-usage"):
    """Ask the filesystem how much a scope uses, without looking through it."""

    answer: ClassVar[Any] = ScopeUse
    scope: str


class ScanUsage(Operation[Counted], frozen=True, kw_only=True, tag="scan-usage"):
    """Look through a whole scope, or one place, or what is at a path of it; of a whole
    place also through what was thrown away in it, if *with_trash*."""

    answer: ClassVar[Any] = Counted
    scope: str = ""
    place: Place | None = None
    path: str = ""
    with_trash: bool = False


class ListScopes(Operation[Names], frozen=True, kw_only=True, tag="list-scopes"):
    """List the scopes that exist on the host."""

    answer: ClassVar[Any] = Names
    after: str = ""
    limit: int = 1000


class ListFolders(Operation[Names], frozen=True, kw_only=True, tag="list-folders"):
    """List the ids of the folders that exist in a scope."""

    answer: ClassVar[Any] = Names
    scope: str
    after: str = ""
    limit: int = 1000


class ListRemains(Operation[Names], frozen=True, kw_only=True, tag="list-remains"):
    """List what lies in a scope, each as its :data:`RemainKind`, a slash and its name.

    Of an unmanaged *place* it is what the platform keeps in it, without what was thrown
    away. What this very worker is making at the moment is left out.
    """

    answer: ClassVar[Any] = Names
    scope: str = ""
    place: Place | None = None
    after: str = ""
    limit: int = 1000


class RemoveRemain(Operation[Done], frozen=True, kw_only=True, tag="remove-remain"):
    """Remove what :class:`ListRemains` has found; removed already is removed."""

    answer: ClassVar[Any] = Done
    scope: str = ""
    place: Place | None = None
    kind: RemainKind
    name: str


# --- folders -----------------------------------------------------------------------


class MakeFolder(Operation[None], frozen=True, kw_only=True, tag="make-folder"):
    """Make a folder's place; its scope has to exist. Made already is made."""

    place: Place


class RemoveFolder(Operation[Done], frozen=True, kw_only=True, tag="remove-folder"):
    """Remove a folder with all that is in it, at once out of sight. Goes on where an
    earlier attempt ended."""

    answer: ClassVar[Any] = Done
    place: Place


class CloneFolder(Operation[Done], frozen=True, kw_only=True, tag="clone-folder"):
    """Copy a folder; the copy is complete when it appears. *source_host* is another
    host of the same machine, or empty."""

    answer: ClassVar[Any] = Done
    source: Place
    target: Place
    source_host: str = ""
    most_bytes: int | None = None


class MoveFolder(Operation[Done], frozen=True, kw_only=True, tag="move-folder"):
    """Move a folder, with what was thrown away in it, into another scope, which has to
    exist; it keeps its id. Goes on where an earlier attempt ended."""

    answer: ClassVar[Any] = Done
    source: Place
    target: Place


# --- entries -----------------------------------------------------------------------


class ListEntries(Operation[Page], frozen=True, kw_only=True, tag="list-entries"):
    """List a part of a folder."""

    answer: ClassVar[Any] = Page
    place: Place
    path: str = ""
    after: str = ""
    limit: int = 200
    sort: Order = Order.NAME
    descending: bool = False
    search: str = ""


class StatEntry(Operation[Entry], frozen=True, kw_only=True, tag="stat-entry"):
    """Look at one entry."""

    answer: ClassVar[Any] = Entry
    place: Place
    path: str = ""


class MakeDirectory(Operation[Made], frozen=True, kw_only=True, tag="make-directory"):
    """Make a folder inside the folder."""

    answer: ClassVar[Any] = Made
    place: Place
    path: str
    parents: bool = False
    exist_ok: bool = False


class MoveEntry(Operation[Placed], frozen=True, kw_only=True, tag="move-entry"):
    """Move or rename an entry inside its folder."""

    answer: ClassVar[Any] = Placed
    place: Place
    path: str
    target: str
    conflict: Conflict = Conflict.FAIL


class CopyEntry(Operation[Placed], frozen=True, kw_only=True, tag="copy-entry"):
    """Copy an entry inside its folder; the copy appears when it is complete.

    Asked again for the same *task_id* it says the same, until that is forgotten.
    """

    answer: ClassVar[Any] = Placed
    place: Place
    path: str
    target: str
    conflict: Conflict = Conflict.FAIL
    most_bytes: int | None = None
    task_id: str = ""


class RemoveEntry(Operation[Done], frozen=True, kw_only=True, tag="remove-entry"):
    """Remove an entry for good, with all that is in it."""

    answer: ClassVar[Any] = Done
    place: Place
    path: str


class TrashEntry(Operation[None], frozen=True, kw_only=True, tag="trash-entry"):
    """Throw an entry away, so that it can be put back. *at* is a time as text."""

    place: Place
    path: str
    entry_id: str
    at: str
    by: str = ""


class RestoreEntry(Operation[Placed], frozen=True, kw_only=True, tag="restore-entry"):
    """Put back what was thrown away; to *target*, or to where it was."""

    answer: ClassVar[Any] = Placed
    place: Place
    entry_id: str
    target: str = ""
    conflict: Conflict = Conflict.FAIL


class ListTrash(Operation[TrashPage], frozen=True, kw_only=True, tag="list-trash"):
    """List what was thrown away inside a folder."""

    answer: ClassVar[Any] = TrashPage
    place: Place
    after: str = ""
    limit: int = 200


class EmptyTrash(Operation[Done], frozen=True, kw_only=True, tag="empty-trash"):
    """Remove what was thrown away: *entry_ids*, or all that is older than *before*, or
    all. *with_parts*: also what people have thrown away in parts of their own."""

    answer: ClassVar[Any] = Done
    place: Place
    entry_ids: list[str] | None = None
    before: str = ""
    with_parts: bool = False


# --- uploads -----------------------------------------------------------------------


class BeginUpload(
    Operation[UploadState], frozen=True, kw_only=True, tag="begin-upload"
):
    """Begin an upload. Begun already is begun."""

    answer: ClassVar[Any] = UploadState
    place: Place
    upload_id: str


class UploadOffset(
    Operation[UploadState], frozen=True, kw_only=True, tag="upload-offset"
):
    """Ask how much of an upload is safe on the disk."""

    answer: ClassVar[Any] = UploadState
    place: Place
    upload_id: str


class AppendUpload(
    Operation[UploadState], frozen=True, kw_only=True, tag="append-upload"
):
    """Add a chunk, which follows as a stream, at *offset*, which has to be the end.

    What arrived counts even if the stream is cut off, unless there is a *checksum* (in
    hexadecimal digits) that it does not have: then nothing of it counts. More than
    *most* bytes are refused.
    """

    answer: ClassVar[Any] = UploadState
    place: Place
    upload_id: str
    offset: int
    most: int | None = None
    checksum_kind: ChecksumKind | None = None
    checksum: str = ""


class FinishUpload(
    Operation[Published], frozen=True, kw_only=True, tag="finish-upload"
):
    """Make an upload of *length* bytes appear at *path*, complete. Asked again it says
    the same, until the upload is abandoned."""

    answer: ClassVar[Any] = Published
    place: Place
    upload_id: str
    path: str
    length: int
    conflict: Conflict = Conflict.FAIL
    parents: bool = True


class AbandonUpload(Operation[None], frozen=True, kw_only=True, tag="abandon-upload"):
    """Forget an upload: what arrived of it, or that it was finished."""

    place: Place
    upload_id: str


class ListUploads(
    Operation[UploadNames], frozen=True, kw_only=True, tag="list-uploads"
):
    """List the uploads that have left something on the disk, in a scope or place."""

    answer: ClassVar[Any] = UploadNames
    scope: str = ""
    place: Place | None = None


# --- content -----------------------------------------------------------------------


class ReadFile(Operation[FileHead], frozen=True, kw_only=True, tag="read-file"):
    """Read a file, or the part from *start* up to before *end*; negative *start* is
    counted from the file's end."""

    answer: ClassVar[Any] = FileHead
    place: Place
    path: str
    start: int = 0
    end: int | None = None


class WriteText(Operation[Written], frozen=True, kw_only=True, tag="write-text"):
    """Replace a small file as a whole. With *if_tag*, only if it is as it was then;
    ``""`` only makes new files, ``ANY_TAG`` makes none, ``None`` does not look."""

    answer: ClassVar[Any] = Written
    place: Place
    path: str
    content: bytes
    if_tag: str | None = None


class Archive(Operation[ArchiveHead], frozen=True, kw_only=True, tag="archive"):
    """Read several paths as one archive."""

    answer: ClassVar[Any] = ArchiveHead
    place: Place
    paths: list[str]
    kind: ArchiveKind = ArchiveKind.ZIP


class ExtractArchive(
    Operation[Placed], frozen=True, kw_only=True, tag="extract-archive"
):
    """Unpack the archive at *path* into the folder *target*, all of it or nothing.

    Asked again for the same *task_id* it says the same, until that is forgotten.
    """

    answer: ClassVar[Any] = Placed
    place: Place
    path: str
    target: str
    conflict: Conflict = Conflict.FAIL
    limits: Limits = Limits()
    most_bytes: int | None = None
    task_id: str = ""


class ForgetTask(Operation[None], frozen=True, kw_only=True, tag="forget-task"):
    """Forget what was made for a task that has ended."""

    place: Place
    task_id: str


AnyOperation = (
    Health
    | MakeScope
    | RemoveScope
    | SetLimit
    | ScopeUsage
    | ScanUsage
    | ListScopes
    | ListFolders
    | ListRemains
    | RemoveRemain
    | MakeFolder
    | RemoveFolder
    | CloneFolder
    | MoveFolder
    | ListEntries
    | StatEntry
    | MakeDirectory
    | MoveEntry
    | CopyEntry
    | RemoveEntry
    | TrashEntry
    | RestoreEntry
    | ListTrash
    | EmptyTrash
    | BeginUpload
    | UploadOffset
    | AppendUpload
    | FinishUpload
    | AbandonUpload
    | ListUploads
    | ReadFile
    | WriteText
    | Archive
    | ExtractArchive
    | ForgetTask
)
