"""What somebody may do with one virtual folder.

Owners, members of the owning project, people who were invited, and readers of model
stores may open a folder, each as far as they were permitted. Administrators manage the
folders of others, but do not open those of people: for that they are invited, or a
superadmin makes them the owner, which the audit tells.
"""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import (
    ADMIN_SCOPES,
    USER_SCOPES,
    Principal,
    Reach,
    reach,
)
from backendai_hub.core.errors import ConflictError, ForbiddenError, NotFoundError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.ids import is_id
from backendai_hub.core.nouns import Noun, Verb, noun_of
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.vfolders import (
    READABLE,
    UPDATABLE,
    FolderPermission,
    FolderStatus,
    HostPermissions,
    check_permitted,
    is_shared_out,
)
from backendai_hub.db import folder_grants, folder_rights, folders, tenancy
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import check_may_enter, make_principal
from backendai_hub.storage.ops import Place

FOLDER: Noun = noun_of("folder")


class OpenFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that somebody may open, where it is, and how far they may go."""

    folder: FolderRecord
    place: Place
    permission: FolderPermission

    @property
    def host(self) -> str:
        """The storage host to ask."""
        return self.folder.host

    @property
    def scope(self) -> str:
        """The quota scope it counts in; empty where it is unmanaged."""
        return self.folder.scope

    def check_may_delete(self) -> None:
        """Refuse those who may write, but not delete."""
        if self.permission is FolderPermission.READ_WRITE_DELETE or self.is_owners:
            return
        raise ForbiddenError(
            f"the folder {self.folder.name!r}: you may write here, but not delete;"
            " its owner can give you the permission 'wd'"
        )

    is_insider: bool = False
    """Whether who asks may know how full the scope is that it counts in."""
    is_owners: bool = False
    """Whether it belongs to who asks; owners may delete what they may write."""


def place_of(folder: FolderRecord) -> Place:
    """Return where a folder is, as storage hosts understand it."""
    if folder.unmanaged_path:
        return Place(folder_id=folder.id, unmanaged=folder.unmanaged_path)
    return Place(scope=folder.scope, folder_id=folder.id)


def place_for(folder: FolderRecord, user_id: str | None) -> Place:
    """Return what somebody has of a folder: their own part of a project's ``.local``.

    Administrators have no more of it: what lies there runs in people's sessions.
    """
    place = place_of(folder)
    if not is_shared_out(folder.ownership_type, folder.name):
        return place
    if user_id is None:
        raise ForbiddenError(
            f"the folder {folder.name!r}: who has begun this is not known any more"
        )
    return msgspec.structs.replace(place, within=user_id)


_READ: Final = FOLDER.action(Verb.READ)
_UPDATE: Final = FOLDER.action(Verb.UPDATE)


def manages(principal: Principal, folder: FolderRecord, action: str) -> bool:
    """Tell whether somebody may do something because of their role."""
    extent = reach(principal, action)
    return extent is Reach.ALL or (
        extent is Reach.DOMAIN and folder.domain_id == principal.domain_id
    )


async def find_access(
    connection: AsyncConnection, principal: Principal, folder: FolderRecord
) -> FolderPermission | None:
    """Return what somebody may do inside a folder; None: they may not open it."""
    if folder.user_id == principal.id:
        return choose_access(principal, folder, None)
    given = await folder_grants.find_grant(connection, folder.id, principal.id)
    return choose_access(principal, folder, given)


def choose_access(
    principal: Principal, folder: FolderRecord, given: FolderPermission | None
) -> FolderPermission | None:
    """Choose what somebody may do inside a folder, knowing what they were given."""
    if folder.user_id == principal.id:
        return FolderPermission(folder.permission)
    of_project = folder.project_id is not None
    member = of_project and folder.project_id in principal.holds
    if given is not None and (member or not of_project):
        return given
    if member or (of_project and manages(principal, folder, _UPDATE)):
        return FolderPermission(folder.permission)
    if folder.is_offered and folder.domain_id == principal.domain_id:
        return FolderPermission.READ_ONLY
    return None


async def load_permissions(
    connection: AsyncConnection, principal: Principal, user: Actor | None
) -> HostPermissions:
    """Return what the caller may do on each storage host."""
    return await folder_rights.load_host_permissions(
        connection,
        user_id=principal.id if user is None else user.id,
        keypair_id=principal.keypair_id,
    )


async def authorize_folder(
    platform: Platform,
    principal: Principal,
    user: Actor | None,
    folder_id: str,
    *,
    need: HostPermission | None = None,
    write: bool = False,
) -> OpenFolder:
    """Return a folder that the caller may open, or to ``write``, now.

    ``need`` is what the host has to permit. Raises :class:`NotFoundError` for folders
    they may not know of, and refusals that say what is lacking for the others.
    """
    async with platform.database.read() as connection:
        folder = None
        if is_id(folder_id):
            folder = await folders.find_folder(connection, folder_id)
        if folder is None:
            raise _unknown(folder_id)
        permission = await find_access(connection, principal, folder)
        if permission is None and not manages(principal, folder, _READ):
            raise _unknown(folder_id)
        permissions: HostPermissions | None = None
        if need is not None:
            permissions = await load_permissions(connection, principal, user)
    if permission is None:
        raise ForbiddenError(
            f"the folder {folder.name!r} is {folder.owner_name}'s: administrators"
            " manage it, but do not look into it; ask for an invitation"
        )
    _check_status(folder, write=write)
    if write and not permission.writes:
        raise ForbiddenError(
            f"the folder {folder.name!r} is read-only for you; ask its owner for the"
            " permission 'rw'"
        )
    if need is not None and permissions is not None:
        check_permitted(permissions, folder.host, need)
    return OpenFolder(
        folder=folder,
        place=msgspec.structs.replace(
            place_for(folder, principal.id if user is None else user.id),
            asker=principal.id,
        ),
        permission=permission,
        is_insider=folder.user_id == principal.id
        or folder.project_id in principal.holds
        or manages(principal, folder, _READ),
        is_owners=folder.user_id == principal.id
        or (folder.project_id is not None and manages(principal, folder, _UPDATE)),
    )


async def recheck_access(
    connection: AsyncConnection,
    user_id: str | None,
    folder: FolderRecord,
    *,
    write: bool = True,
) -> None:
    """Refuse what somebody asked for earlier and may not do any more.

    What waits, or takes long, is looked at again when it begins and before its end is
    seen: meanwhile the permission may have been taken back, or the folder thrown away.
    Who writes has to be permitted by the storage host, too, with any of their keypairs.
    """
    actor = None
    if user_id is not None:
        actor = await tenancy.find_actor(connection, user_id=user_id)
    if actor is None:
        raise ForbiddenError(
            f"the folder {folder.name!r}: who has asked for this is not here any more"
        )
    check_may_enter(actor)
    everything = USER_SCOPES | ADMIN_SCOPES
    principal = make_principal(actor, scopes=everything, credential="earlier")
    permission = await find_access(connection, principal, folder)
    if permission is None or (write and not permission.writes):
        # Not by its name: who may not look may not know what it is called now.
        raise ForbiddenError(
            f"{actor.name} may not {'write' if write else 'look'} into this folder any"
            " more"
        )
    _check_status(folder, write=write)
    if write:
        await recheck_host(connection, actor.id, folder.host, HostPermission.UPLOAD)


async def recheck_host(
    connection: AsyncConnection, user_id: str, host: str, need: HostPermission
) -> None:
    """Refuse what a storage host does not permit somebody any more."""
    permissions = await folder_rights.load_host_permissions(
        connection, user_id=user_id, any_keypair=True
    )
    check_permitted(permissions, host, need)


def _unknown(folder_id: str) -> NotFoundError:
    return NotFoundError(f"there is no folder {folder_id[:64]!r}")


def _check_status(folder: FolderRecord, *, write: bool) -> None:
    status = folder.status
    if status is FolderStatus.PERFORMING and not write:
        return
    if write and status not in UPDATABLE:
        raise ConflictError(
            f"the folder {folder.name!r} is {status}: nothing can be written into it"
            + (
                "; restore it first"
                if status is FolderStatus.DELETE_PENDING
                else " now"
            )
        )
    if status not in READABLE:
        raise NotFoundError(f"the folder {folder.name!r} is {status}")


def owns(principal: Principal, folder: FolderRecord) -> bool:
    """Tell whether a folder is somebody's own, by who made it in a model store."""
    if folder.is_model_store and folder.project_id in principal.holds:
        return folder.creator_id == principal.id
    return folder.user_id == principal.id


def keeps(principal: Principal, folder: FolderRecord) -> bool:
    """Tell whether somebody decides about a folder: its owner, and administrators."""
    return owns(principal, folder) or manages(principal, folder, _UPDATE)


async def require_owner(
    connection: AsyncConnection,
    principal: Principal,
    folder: FolderRecord,
    action: str,
    need: HostPermission,
) -> None:
    """Refuse all but the owner, where the host permits it, and administrators."""
    if manages(principal, folder, action):
        return
    if not owns(principal, folder):
        whose = (
            f"the project {folder.owner_name}: its administrators"
            if folder.project_id is not None
            else f"{folder.owner_name}: its owner"
        )
        raise ForbiddenError(
            f"the folder {folder.name!r} belongs to {whose} may do this"
        )
    permissions = await load_permissions(connection, principal, None)
    check_permitted(permissions, folder.host, need)
