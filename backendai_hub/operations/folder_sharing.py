"""What guests and members may do in folders, and leaving."""

from __future__ import annotations

from backendai_hub.api.folders import (
    Guest,
    LeaveRequest,
    ShareRequest,
)
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Verb
from backendai_hub.core.vfolders import (
    FolderPermission,
    check_permitted,
)
from backendai_hub.db import folder_grants, invitations, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.folder_access import (
    FOLDER,
    load_permissions,
    manages,
    owns,
    require_owner,
)
from backendai_hub.operations.folder_checks import check_updatable
from backendai_hub.operations.folder_invitations import (
    MOST_AT_ONCE,
    find_person,
    tell_invitation,
)
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_withdrawals import end_withdrawn
from backendai_hub.operations.folders import find_seen
from backendai_hub.operations.platform import Platform


async def list_guests(
    platform: Platform, principal: Principal, reference: str
) -> list[Guest]:
    """List for whom a folder is something else than it says; guests see themselves."""
    async with platform.database.read() as connection:
        folder = await find_seen(connection, principal, reference, lock=False)
        found = await invitations.list_guests(connection, folder.id)
    if owns(principal, folder) or manages(principal, folder, FOLDER.action(Verb.READ)):
        return found
    return [guest for guest in found if guest.user_id == principal.id]


async def share_folder(
    platform: Platform, principal: Principal, reference: str, body: ShareRequest
) -> list[Guest]:
    """Say what single people may do: all of the changes, or none."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        folder = await find_seen(tx.connection, principal, reference)
        check_updatable(folder)
        need = HostPermission.SHARE if folder.project_id else HostPermission.INVITE
        await require_owner(tx.connection, principal, folder, Action.SHARE_FOLDER, need)
        if folder.project_id is not None:
            # Only administrators have come so far: what is for them alone, not all of
            # them may do on every host.
            permissions = await load_permissions(tx.connection, principal, None)
            check_permitted(permissions, folder.host, need)
        if not 1 <= len(body.changes) <= MOST_AT_ONCE:
            raise InvalidRequestError(f"changes: name 1 to {MOST_AT_ONCE} people")
        for change in body.changes:
            user_id, name = await find_person(
                tx, folder.domain_id, change.user, guest_of=folder.id
            )
            before = await folder_grants.find_grant(tx.connection, folder.id, user_id)
            await _change_grant(tx, folder, user_id, name, change.permission)
            after = change.permission
            tx.audit(
                act_of(
                    Action.SHARE_FOLDER,
                    folder,
                    before={"permission": None if before is None else str(before)},
                    after={
                        "user": name,
                        "permission": None if after is None else str(after),
                    },
                )
            )
            said = "no more than others" if after is None else str(after)
            tx.record(
                Event(
                    kind=EventKind.FOLDER_SHARED,
                    text=f"folder {folder.name}: you may do {said} there now",
                    actor=principal.name,
                    owner_id=user_id,
                    folder_id=folder.id,
                )
            )
        guests = await invitations.list_guests(tx.connection, folder.id)
    await end_withdrawn(platform)  # what guests had begun may not go on
    return guests


async def _change_grant(
    tx: Transaction,
    folder: FolderRecord,
    user_id: str,
    name: str,
    permission: FolderPermission | None,
) -> None:
    if permission is None:
        if not await folder_grants.drop_grant(tx, folder.id, user_id):
            raise NotFoundError(f"{name} was given nothing in {folder.name!r}")
        return
    if folder.project_id is not None:
        members = await tenancy.list_projects(tx.connection, user_id)
        if folder.project_id not in members:
            raise InvalidRequestError(
                f"{name} is not a member of the project {folder.owner_name}; add them"
                " to it first"
            )
        kind = "override"
    else:
        if await folder_grants.find_grant(tx.connection, folder.id, user_id) is None:
            raise InvalidRequestError(
                f"{name} does not share the folder {folder.name!r}; invite them first"
            )
        kind = "invited"
    await folder_grants.put_grant(tx, folder.id, user_id, permission, kind=kind)


async def leave_folder(
    platform: Platform, principal: Principal, reference: str, body: LeaveRequest
) -> None:
    """Leave a folder that somebody else shares; sessions that have it keep it."""
    async with platform.database.transaction() as tx:
        folder = await find_seen(tx.connection, principal, reference)
        if folder.project_id is not None:
            raise InvalidRequestError(
                f"the folder {folder.name!r} is the project {folder.owner_name}'s;"
                " nobody leaves a project's folder but by leaving the project"
            )
        user_id, name = principal.id, principal.name
        if body.user is not None and fold(body.user) != fold(principal.name):
            if not manages(principal, folder, Action.LEAVE_FOLDER):
                raise ForbiddenError("user: only a superadmin makes others leave")
            user_id, name = await find_person(
                tx, folder.domain_id, body.user, guest_of=folder.id
            )
        if user_id == folder.user_id:
            raise InvalidRequestError(
                f"{folder.name!r} is {name}'s own folder; who owns it cannot leave it"
            )
        if not await folder_grants.drop_grant(tx, folder.id, user_id):
            if not manages(principal, folder, Action.LEAVE_FOLDER):
                raise ForbiddenError(
                    f"the folder {folder.name!r} is not shared with you, so you cannot"
                    " leave it"
                )
            raise ConflictError(f"{name} does not share the folder {folder.name!r}")
        tx.audit(act_of(Action.LEAVE_FOLDER, folder, after={"user": name}))
        if folder.user_id is not None:
            text = f"{name} does not share the folder {folder.name} any more"
            tell_invitation(tx, folder, folder.user_id, text, principal.name)
    await end_withdrawn(platform)
