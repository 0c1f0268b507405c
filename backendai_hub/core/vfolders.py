"""Virtual folders: data that outlives sessions, and who may do what with it.

A folder belongs to a user or to a project, lies on one storage host, and counts in the
*quota scope* of its owner there. Where it lies on disk follows from ids alone: nothing
that people write is ever part of a path that the platform chooses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec

from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
)
from backendai_hub.core.fields import (
    Choice,
    Flag,
    HostPermission,
    Kind,
    Line,
    Number,
    Rank,
    Reference,
    Size,
    field,
)
from backendai_hub.core.ids import is_id
from backendai_hub.core.names import RESERVED, fold, read_line

LONGEST_NAME: Final = 64
LOCAL: Final = ".local"
"""The one dot-folder that a project may have: everybody gets a part of their own."""
BREW: Final = ".linuxbrew"
BREW_TARGET: Final = "/home/linuxbrew/.linuxbrew"
HOST_LABEL: Final = "storage/"
"""Nodes are labelled with this and the name of each storage host they reach."""


class FolderStatus(StrEnum):
    """What a folder is doing, or what has become of it."""

    READY = "ready"
    PERFORMING = "performing"
    CLONING = "cloning"
    MOUNTED = "mounted"
    ERROR = "error"
    DELETE_PENDING = "delete-pending"
    DELETE_ONGOING = "delete-ongoing"
    DELETE_COMPLETE = "delete-complete"
    DELETE_ERROR = "delete-error"


_S = FolderStatus
READABLE: Final = frozenset(
    {_S.READY, _S.PERFORMING, _S.CLONING, _S.MOUNTED, _S.ERROR, _S.DELETE_PENDING}
)
"""Its files can be looked at."""
MOUNTABLE: Final = frozenset({_S.READY, _S.PERFORMING, _S.CLONING, _S.MOUNTED})
"""Sessions may have it; these are the folders that keep their names to themselves."""
UPDATABLE: Final = frozenset({_S.READY, _S.MOUNTED})
DELETABLE: Final = frozenset({_S.READY})
"""It may be thrown into the trash."""
RECOVERABLE: Final = frozenset({_S.DELETE_PENDING})
PURGABLE: Final = frozenset({_S.DELETE_PENDING, _S.DELETE_COMPLETE, _S.DELETE_ERROR})
"""It may be removed for good; what could not be removed may be tried again."""
NAMED: Final = MOUNTABLE | {_S.ERROR}
"""What has one of these keeps its name: nothing in the trash does."""


class UsageMode(StrEnum):
    """What a folder is for."""

    GENERAL = "general"
    MODEL = "model"
    DATA = "data"


class FolderPermission(StrEnum):
    """What may be done inside a folder: read; write as well; delete as well."""

    READ_ONLY = "ro"
    READ_WRITE = "rw"
    READ_WRITE_DELETE = "wd"

    @property
    def writes(self) -> bool:
        """Whether anything may be written."""
        return self is not FolderPermission.READ_ONLY

    @property
    def rank(self) -> int:
        """How much it allows; more is more."""
        return list(FolderPermission).index(self)


class Ownership(StrEnum):
    """Whose a folder can be."""

    USER = "user"
    PROJECT = "project"


class InvitationState(StrEnum):
    """What has become of an invitation."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    CANCELED = "canceled"


class TaskKind(StrEnum):
    """What is done to folders in the background."""

    CREATE = "create"
    REMOVE = "remove"
    CLONE = "clone"
    MOVE = "move"
    COPY = "copy"
    EXTRACT = "extract"
    EMPTY_TRASH = "empty-trash"
    SCAN = "scan"


class TaskState(StrEnum):
    """How far a task is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StoragePermissionError(ForbiddenError):
    """The host's permissions do not include what was asked for."""

    code = "storage-permission"
    title = "This storage host does not permit it"


class FolderBusyError(ConflictError):
    """Live sessions mount the folder; ``sessions`` lists them."""

    code = "folder-mounted"
    title = "Sessions are using the folder"


# --- where folders lie -----------------------------------------------------------


def scope_name(kind: Ownership | str, owner_id: str) -> str:
    """Name the quota scope of a user or a project: one folder of a host's root."""
    return f"{Ownership(kind)}-{UUID(owner_id)}"


def split_scope(scope: str) -> tuple[Ownership, str]:
    """Return whose quota scope this is; raises :class:`InvalidRequestError`."""
    kind, _, owner_id = scope.partition("-")
    if kind not in set(Ownership) or not is_id(owner_id):
        raise InvalidRequestError(
            f"scope: {scope[:64]!r} is none; use user-<id> or project-<id>"
        )
    return Ownership(kind), owner_id


def folder_parts(scope: str, folder_id: str) -> tuple[str, ...]:
    """Return where a folder lies below its host's root, part by part."""
    split_scope(scope)
    digits = UUID(folder_id).hex
    return (scope, digits[:2], digits[2:4], digits[4:])


# --- names -----------------------------------------------------------------------

RESERVED_NAMES: Final = frozenset({".terminfo", ".jupyter", ".tmux.conf", ".ssh"})
_RESERVED_FORMS: Final = (
    re.compile(r"\.[a-z0-9]+rc"),
    re.compile(r"\.[a-z0-9]+_profile"),
)
_FORM = re.compile(r"\.?\w([\w .+@()\[\],-]*[\w)\]])?")


def is_automount(name: str) -> bool:
    """Tell whether every session gets a folder of this name without asking."""
    return name.startswith(".")


def is_reserved(name: str) -> bool:
    """Tell whether sessions need what would be at this name themselves."""
    key = fold(name)
    return key in RESERVED_NAMES or any(f.fullmatch(key) for f in _RESERVED_FORMS)


def read_folder_name(field_name: str, given: str) -> str:
    """Return *given* in its normal form; raises :class:`InvalidRequestError`.

    Letters, digits, blanks and ``_ - . + @ ( ) [ ] ,`` of any script, with a dot at
    the beginning for folders that are mounted without asking.
    """
    name = read_line(field_name, given, 4 * LONGEST_NAME)
    shown = repr(name[:LONGEST_NAME])
    if not 1 <= len(name) <= LONGEST_NAME or len(name.encode()) > 255:
        raise InvalidRequestError(
            f"{field_name}: a name has 1 to {LONGEST_NAME} characters, and at most 255"
            " bytes"
        )
    if _FORM.fullmatch(_without_marks(name)) is None:
        raise InvalidRequestError(
            f"{field_name}: {shown} will not do; use letters, digits, blanks and any of"
            " _ - . + @ ( ) [ ] , and end with a letter or a digit"
        )
    if is_reserved(name) or fold(name) in RESERVED or is_id(fold(name)):
        raise InvalidRequestError(
            f"{field_name}: {shown} is reserved; choose another name"
        )
    return name


def check_name_of_project(name: str) -> None:
    """Refuse dot-folders of projects, but for the one that is shared out."""
    if is_automount(name) and fold(name) != LOCAL:
        raise InvalidRequestError(
            f"name: {name!r} begins with a dot, and of these a project may only have"
            f" {LOCAL!r}"
        )


def is_shared_out(ownership_type: str, name: str) -> bool:
    """Tell whether everybody has a part of their own in it, and sees no other."""
    return ownership_type == Ownership.PROJECT and fold(name) == LOCAL


def check_stays_shared_out(ownership_type: str, name: str, new: str) -> None:
    """Refuse names by which people's own parts would be everybody's, or the reverse."""
    if is_shared_out(ownership_type, name) != is_shared_out(ownership_type, new):
        raise InvalidRequestError(
            f"name: in a project's {LOCAL!r} everybody has a part of their own, and in"
            " no other folder; make a new one instead of renaming"
        )


def _without_marks(name: str) -> str:
    """Leave out the signs above and below letters, which many scripts write with."""
    return "".join(
        sign
        for before, sign in zip(" " + name, name, strict=False)
        if not (_is_mark(sign) and (before.isalnum() or _is_mark(before)))
    )


def _is_mark(sign: str) -> bool:
    return unicodedata.category(sign) in {"Mn", "Mc"}


class FolderName(Kind, frozen=True):
    """The name of a virtual folder."""

    given: ClassVar[Any] = str

    def read(self, field: str, given: Any) -> str:
        """Check and normalise."""
        return read_folder_name(field, given)


# --- hosts' permissions ----------------------------------------------------------

HostPermissions = Mapping[str, frozenset[str]]


def join_permissions(*allowed: Mapping[str, Collection[str]]) -> HostPermissions:
    """Return what is permitted on each host: all that anybody of *allowed* permits."""
    joined: dict[str, set[str]] = {}
    for hosts in allowed:
        for host, permissions in hosts.items():
            joined.setdefault(host, set()).update(map(str, permissions))
    return {host: frozenset(found) for host, found in sorted(joined.items())}


def check_permitted(
    permissions: HostPermissions, host: str, *needed: HostPermission
) -> None:
    """Refuse what neither domain, nor projects, nor keypair policy permits there."""
    held = permissions.get(host, frozenset())
    lacking = [str(p) for p in needed if p not in held]
    if lacking:
        raise StoragePermissionError(
            f"storage host {host}: you lack the permission {' and '.join(lacking)};"
            " your domain, a project of yours, or the policy of your keypair has to"
            " give it: ask an administrator, who says it in --allowed-vfolder-hosts of"
            " `backendai admin domain update`",
            host=host,
            permissions=lacking,
        )


# --- the noun --------------------------------------------------------------------


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual folder. ``permission`` is the folder's, ``access`` the caller's own.

    ``user`` or ``project`` is the owner. What ``mounted_by`` counts are live sessions
    that have it. ``used_bytes`` and ``used_files`` are as of ``scanned_at``.
    """

    id: str
    name: Annotated[
        str,
        field(
            FolderName(),
            "Its name; one that begins with a dot is mounted into every session.",
        ),
    ]
    host: Annotated[
        str,
        field(
            Line(most=256),
            "The storage host it lies on; empty: the default one.",
            once=True,
        ),
    ] = ""
    project: Annotated[
        str | None,
        field(
            Reference(noun="project", optional=True),
            "The project that owns it; without one, it is the user's own.",
            once=True,
        ),
    ] = None
    usage_mode: Annotated[
        str,
        field(
            Choice(of=tuple(UsageMode)),
            "What it is for; those of model-store projects are for models.",
            once=True,
        ),
    ] = UsageMode.GENERAL
    permission: Annotated[
        str,
        field(
            Choice(of=tuple(FolderPermission)),
            "What may be done inside: ro, rw, or wd (write and delete), unless"
            " somebody is given something else.",
        ),
    ] = FolderPermission.READ_WRITE
    cloneable: Annotated[
        bool, field(Flag(), "Whether those who may read it may copy it as a whole.")
    ] = False
    max_size: Annotated[
        str, field(Size(unlimited=True), "How much it may hold; -1 is no limit.")
    ] = "-1"
    max_files: Annotated[
        int | None,
        field(
            Number(least=1, optional=True),
            "How many files it may hold; null is no limit.",
        ),
    ] = None
    unmanaged_path: Annotated[
        str,
        field(
            Line(most=4096),
            "A folder that is on the host's machine already, by its path; it is never"
            " made or removed.",
            once=True,
            by=Rank.SUPERADMIN,
        ),
    ] = ""
    ownership_type: str = Ownership.USER
    user: str | None = None
    domain: str = ""
    creator: str = ""
    status: str = FolderStatus.READY
    status_changed_at: str | None = None
    status_reason: str = ""
    access: str | None = None
    is_owner: bool = False
    mounted_by: int = 0
    used_bytes: int = 0
    used_files: int = 0
    scanned_at: str | None = None
    last_used_at: str | None = None
    trashed_at: str | None = None
    purge_at: str | None = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class FolderTask(msgspec.Struct, frozen=True, kw_only=True):
    """Something that takes a while. ``unit`` is of ``done`` and ``total``."""

    id: str
    kind: str
    folder_id: str
    state: str
    done: int = 0
    total: int | None = None
    unit: str = ""
    error: str = ""
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
