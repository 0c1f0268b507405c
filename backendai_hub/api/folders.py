"""Requests and answers about virtual folders, beyond the common verbs of nouns."""

from __future__ import annotations

import msgspec

from backendai_hub.api.audit import AuditEntry
from backendai_hub.core.vfolders import (
    Folder,
    FolderPermission,
    FolderTask,
    InvitationState,
)


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request holds, and nothing else."""


class RestoreRequest(_Body, frozen=True, kw_only=True):
    """Take a folder out of the trash, by another ``name`` if its own is taken."""

    name: str | None = None


class PurgeRequest(_Body, frozen=True, kw_only=True):
    """Remove a folder for good. ``name`` is its name, typed once more.

    ``force`` is for administrators: also what is not in the trash, or is in use.
    """

    name: str
    force: bool = False


class PurgeEntry(PurgeRequest, frozen=True, kw_only=True):
    """One of several folders to remove for good."""

    folder: str


class TrashMany(_Body, frozen=True, kw_only=True):
    """Folders to throw into the trash, or to take out of it, by id or name."""

    folders: list[str]


class PurgeMany(_Body, frozen=True, kw_only=True):
    """Folders to remove for good."""

    folders: list[PurgeEntry]


class FolderOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended; ``error`` and ``code`` say why, if not well."""

    reference: str
    status: int
    id: str | None = None
    name: str | None = None
    error: str | None = None
    code: str | None = None


class FolderOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """How each of many ended; some may have failed while others went well."""

    succeeded: int
    failed: int
    results: list[FolderOutcome]


class CloneRequest(_Body, frozen=True, kw_only=True):
    """Copy a folder into a new one: of one's own, or of a project."""

    name: str
    host: str = ""
    project: str | None = None
    usage_mode: str | None = None
    permission: FolderPermission | None = None
    cloneable: bool = False


class CloneAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The new folder, which is ``cloning``, and what copies into it."""

    folder: Folder
    task: FolderTask


class InviteRequest(_Body, frozen=True, kw_only=True):
    """Share a folder with people, by their names or addresses."""

    users: list[str]
    permission: FolderPermission = FolderPermission.READ_ONLY


class InviteOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one invitation ended; ``error`` says why, if there is none."""

    user: str
    invitation: str | None = None
    error: str | None = None
    code: str | None = None


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody asks somebody to share a folder."""

    id: str
    folder_id: str
    folder: str
    host: str
    inviter: str
    inviter_id: str
    invitee: str
    invitee_id: str
    permission: FolderPermission
    state: InvitationState
    created_at: str
    modified_at: str


class InvitationChange(_Body, frozen=True, kw_only=True):
    """What an inviter changes of an invitation that is not answered yet."""

    permission: FolderPermission


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """What one person may do in a folder: invited to it, or by way of exception."""

    user: str
    user_id: str
    permission: FolderPermission
    kind: str
    created_at: str


class GuestChange(_Body, frozen=True, kw_only=True):
    """What one person may do from now on; null takes back what they were given."""

    user: str
    permission: FolderPermission | None


class ShareRequest(_Body, frozen=True, kw_only=True):
    """What people may do in a folder: of a project's members, or of its guests."""

    changes: list[GuestChange]


class LeaveRequest(_Body, frozen=True, kw_only=True):
    """Leave a shared folder; superadmins may name somebody who is to leave it."""

    user: str | None = None


class TransferRequest(_Body, frozen=True, kw_only=True):
    """Who owns a folder from now on: a user, or a project."""

    user: str | None = None
    project: str | None = None


class StorageHost(msgspec.Struct, frozen=True, kw_only=True):
    """A storage host as the caller sees it.

    Of how full it is, plain users see a percentage, as far as the site shows it.
    """

    name: str
    is_default: bool
    state: str
    permissions: list[str]
    capabilities: list[str] = []
    reason: str = ""
    since: str | None = None
    used_percent: float | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None


class QuotaScope(msgspec.Struct, frozen=True, kw_only=True):
    """How much a user or a project holds on one host, and may hold.

    ``limit_bytes`` is what counts now: set for the scope, or by the policy
    (``limit_from`` says which); null is no limit. ``enforced`` says whether the host
    itself keeps to it; otherwise only what goes through the platform is counted.
    """

    host: str
    scope: str
    kind: str
    owner: str
    owner_id: str
    used_bytes: int
    used_files: int
    reserved_bytes: int
    limit_bytes: int | None
    limit_files: int | None
    limit_from: str
    folders: int
    enforced: bool = False
    scanned_at: str | None = None


class QuotaScopePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of quota scopes; ``next`` is the cursor of the following page."""

    items: list[QuotaScope]
    next: str | None = None


class QuotaScopeChange(_Body, frozen=True, kw_only=True):
    """Limits of one scope: amounts such as ``10g``, -1 for none.

    Null goes back to what the policy says; what is left out stays.
    """

    limit_bytes: str | int | msgspec.UnsetType | None = msgspec.UNSET
    limit_files: int | msgspec.UnsetType | None = msgspec.UNSET


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """What is being done, and was done lately, to folders the caller may see."""

    items: list[FolderTask]
    next: str | None = None


class ActivityPage(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one folder, the newest first."""

    items: list[AuditEntry]
    next: str | None = None
