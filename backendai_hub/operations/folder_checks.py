"""What has to hold before a folder is made, renamed, thrown away or given to others."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from sqlalchemy import or_, select

from backendai_hub.core.access import Principal, Reach, reach
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    LimitReachedError,
)
from backendai_hub.core.names import suggest
from backendai_hub.core.nouns import Verb, noun_of
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.vfolders import (
    UPDATABLE,
    FolderBusyError,
    FolderStatus,
    Ownership,
    UsageMode,
)
from backendai_hub.db import folder_rights, folder_tasks, folders, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.nouns import Item, find_item
from backendai_hub.db.session_mounts import list_live
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    ProjectPolicyRow,
    ProjectRow,
    UserPolicyRow,
    UserRow,
)
from backendai_hub.operations.platform import Platform

_CREATE = noun_of("folder").action(Verb.CREATE)


def choose_host(platform: Platform, wanted: str, permitted: Collection[str]) -> str:
    """Return the storage host that is named, or the default one.

    Of the others, only those are told where something is *permitted*.
    """
    names = platform.storage.names()
    if not names:
        raise InvalidRequestError("host: no storage host is configured here")
    known = [name for name in names if name in permitted]
    name = wanted or platform.storage.default
    if not name:
        raise InvalidRequestError(
            "host: name a storage host, since there is no default one; there are"
            f" {', '.join(known) or 'none that you may use'}"
        )
    if name not in names:
        raise InvalidRequestError(
            f"host: there is no storage host {name[:64]!r}{suggest(name, known)}; there"
            f" are {', '.join(known) or 'none that you may use'}"
        )
    return name


def check_offered(platform: Platform, kind: Ownership) -> None:
    """Refuse folders of users, or of projects, where the site has none."""
    if str(kind) not in platform.settings.folder_owners:
        offered = " or ".join(sorted(platform.settings.folder_owners))
        raise InvalidRequestError(
            f"project: this site has no folders of a {kind}, only those of a {offered}"
        )


async def find_project(tx: Transaction, project_id: str | None) -> Item | None:
    """Return the project a folder is to belong to, if any."""
    if project_id is None:
        return None
    return await find_item(tx.connection, noun_of("project"), project_id)


def check_may_make(principal: Principal, project: Item, usage_mode: str) -> None:
    """Let administrators make a project's folders, and members those of a store."""
    extent = reach(principal, _CREATE)
    if extent is Reach.ALL:
        return
    if extent is Reach.DOMAIN and project["domain_id"] == principal.domain_id:
        return
    in_store = project["type"] == ProjectType.MODEL_STORE
    if in_store and project["id"] in principal.holds and usage_mode == UsageMode.MODEL:
        return
    raise ForbiddenError(
        f"project: folders of the project {project['name']} are made by administrators;"
        " ask one, or make a folder of your own and share it"
    )


def check_active(project: Item) -> None:
    """Refuse anything new in a project that is not active."""
    if not project["is_active"]:
        raise InvalidRequestError(
            f"project: {project['name']} is inactive: nothing new comes into it"
        )


async def refuse_too_many(tx: Transaction, owner_id: str, kind: Ownership) -> None:
    """Refuse more folders than the owner's policy allows; the trash counts too."""
    if kind is Ownership.USER:
        query = (
            select(UserPolicyRow.max_vfolder_count, UserPolicyRow.name)
            .join(UserRow, UserRow.resource_policy_id == UserPolicyRow.id)
            .where(UserRow.id == owner_id)
        )
        await tenancy.lock_user(tx, owner_id)
    else:
        query = (
            select(ProjectPolicyRow.max_vfolder_count, ProjectPolicyRow.name)
            .join(ProjectRow, ProjectRow.resource_policy_id == ProjectPolicyRow.id)
            .where(ProjectRow.id == owner_id)
        )
        lock = select(ProjectRow.id).where(ProjectRow.id == owner_id)
        await tx.execute(lock.with_for_update())
    policy = (await tx.connection.execute(query)).first()
    if policy is None or policy.max_vfolder_count <= 0:
        return
    kept = await folders.count_kept(tx.connection, owner_id)
    if kept >= policy.max_vfolder_count:
        raise LimitReachedError(
            f"you cannot create more virtual folders: {kept} of"
            f" {policy.max_vfolder_count} that the {kind} policy {policy.name} allows,"
            " those in the trash included; remove one for good first",
            limit=policy.max_vfolder_count,
            used=kept,
        )


async def refuse_taken(
    tx: Transaction, user_id: str, owner_id: str, name: str, *, other_than: str = ""
) -> None:
    """Refuse a name that another folder of the owner's, or of the user's, has.

    A user's are all they were given besides their own and their projects'.
    """
    projects = await tenancy.list_projects(tx.connection, user_id)
    found = await folders.find_named(
        tx.connection,
        name,
        or_(
            FolderRow.owner_id == owner_id,
            folder_rights.is_accessible_to(user_id, projects),
        ),
        other_than=other_than,
    )
    if found is None:
        return
    raise ConflictError(
        f"there is a folder {found.name!r}"
        + ("" if found.user_id == user_id else f" (of {found.owner_name})")
        + " already; choose another name",
        folder=found.id,
    )


async def refuse_taken_for_guests(
    tx: Transaction, folder: FolderRecord, name: str
) -> None:
    """Refuse a dot-folder's name for what is shared: it would come unasked."""
    query = select(FolderGrantRow.user_id).where(
        FolderGrantRow.folder_id == folder.id, FolderGrantRow.kind == "invited"
    )
    if (await tx.connection.execute(query.limit(1))).first() is not None:
        raise ConflictError(
            f"name: {name!r} begins with a dot, and such folders are not shared; others"
            " have this one"
        )


def spell_path(path: str) -> str:
    """Spell a path in the one way in which it is stored; empty stays empty."""
    return str(PurePosixPath(path)) if path else ""


def check_unmanaged(platform: Platform, host: str, path: str) -> None:
    """Refuse paths that the site's configuration does not open to folders."""
    roots = platform.storage.config(host).unmanaged_roots
    wanted = PurePosixPath(path)
    if not wanted.is_absolute() or ".." in wanted.parts:
        raise InvalidRequestError(
            f"unmanaged_path: {path[:128]!r} is not an absolute path without '..'"
        )
    if not any(wanted.is_relative_to(root) for root in roots):
        allowed = ", ".join(roots) or "none"
        raise InvalidRequestError(
            f"unmanaged_path: {path[:128]!r} is not below a folder that the storage"
            f" host {host} opens for this (unmanaged_roots: {allowed})"
        )


def check_updatable(folder: FolderRecord) -> None:
    """Refuse to change a folder that is busy, broken or in the trash."""
    if folder.status not in UPDATABLE:
        hint = (
            "restore it first"
            if folder.status is FolderStatus.DELETE_PENDING
            else "wait until it is ready"
        )
        raise ConflictError(f"the folder {folder.name!r} is {folder.status}; {hint}")


async def refuse_used(tx: Transaction, folder: FolderRecord) -> None:
    """Refuse to take away a folder that live sessions have, or that is being copied."""
    live = await list_live(tx.connection, folder.id)
    if live:
        named = ", ".join(f"{m.session} ({m.owner})" for m in live[:5])
        more = f" and {len(live) - 5} more" if len(live) > 5 else ""
        raise FolderBusyError(
            f"the folder {folder.name!r} is mounted by {len(live)} live"
            f" session{'s' if len(live) > 1 else ''}: {named}{more}; end"
            f" {'them' if len(live) > 1 else 'it'} first",
            sessions=[m.session_id for m in live],
        )
    task = await folder_tasks.find_busy(tx.connection, folder.id)
    if task is not None:
        raise ConflictError(
            f"the folder {folder.name!r} is busy ({task.kind}); wait until that has"
            " ended, or cancel it",
            task=task.id,
        )
