"""Requests and answers about the files in a virtual folder.

Paths are relative to the folder, with slashes; the folder itself is ``""``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from backendai_hub.core.vfolders import FolderTask

EntryKind = Literal["file", "folder", "link", "other"]
Sorting = Literal["name", "kind", "size", "modified"]
Clash = Literal["fail", "replace", "rename"]
"""What to do where something has that name: refuse, replace it, or take another."""
Packing = Literal["zip", "tar", "tar.gz"]


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request holds, and nothing else."""


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file, a folder in a folder, or a link (told, never followed)."""

    name: str
    kind: EntryKind
    size: int
    modified: str
    mode: int
    tag: str
    """Changes with the content."""
    target: str = ""


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what is in a folder; ``total`` is how much matches."""

    items: list[FileEntry]
    total: int
    next: str | None = None


class DirectoryRequest(_Body, frozen=True, kw_only=True):
    """A folder to be made, with those on the way to it if ``parents``."""

    path: str
    parents: bool = False
    exist_ok: bool = False


class MoveRequest(_Body, frozen=True, kw_only=True):
    """What is to be moved, or renamed, to which path."""

    path: str
    target: str
    conflict: Clash = "fail"


class CopyRequest(MoveRequest, frozen=True, kw_only=True):
    """What is to be copied, and to which path."""


class ExtractRequest(MoveRequest, frozen=True, kw_only=True):
    """The archive to unpack, and the folder to unpack it into.

    ``most_members`` and ``most_bytes`` refuse archives that hold more.
    """

    most_members: int = 100_000
    most_bytes: int | None = None
    skip_links: bool = False


class FilePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is now."""

    path: str


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What has begun, and goes on in the background."""

    task: FolderTask


class TrashRequest(_Body, frozen=True, kw_only=True):
    """Paths to throw into the folder's trash."""

    paths: list[str]


class TrashedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was thrown away, and where it was."""

    id: str
    path: str
    kind: EntryKind
    size: int
    thrown_at: str
    thrown_by: str = ""


class TrashedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a folder's trash."""

    items: list[TrashedFile]
    next: str | None = None


class RestoreFiles(_Body, frozen=True, kw_only=True):
    """What is to be put back, to where it was; ``target`` goes with one of them."""

    ids: list[str]
    target: str = ""
    conflict: Clash = "fail"


class EmptyRequest(_Body, frozen=True, kw_only=True):
    """What is to be removed for good; without ``ids`` all that is in the trash."""

    ids: list[str] | None = None


class FileOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended. ``id`` is its name in the trash."""

    path: str
    status: int
    id: str | None = None
    error: str | None = None
    code: str | None = None


class FileOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """How each of many ended."""

    succeeded: int
    failed: int
    results: list[FileOutcome]


class TextFile(msgspec.Struct, frozen=True, kw_only=True):
    """A small file of text; ``tag`` is to be shown when it is written again."""

    text: str
    tag: str
    modified: str


class TextRequest(_Body, frozen=True, kw_only=True):
    """What a small file is to hold from now on."""

    text: str


class UploadShown(msgspec.Struct, frozen=True, kw_only=True):
    """A file on its way into a folder."""

    id: str
    path: str
    length: int
    received: int | None
    """How much of it has come; not known while the storage does not answer."""
    user: str
    """Who sends it."""
    created_at: str
    expires_at: str
    """When it ends by itself, unless it goes on."""


class UploadPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what is on its way into a folder."""

    items: list[UploadShown]
    next: str | None = None
