"""Invitations to folders: making them, answering them, and taking them back."""

from __future__ import annotations

from typing import Final

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.folders import (
    Invitation,
    InvitationChange,
    InviteOutcome,
    InviteRequest,
)
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import UserStatus
from backendai_hub.core.vfolders import (
    MOUNTABLE,
    FolderPermission,
    InvitationState,
    is_automount,
)
from backendai_hub.db import folder_grants, folders, invitations
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.tables import FolderGrantRow, UserRow
from backendai_hub.operations.audit_notes import note_refusal
from backendai_hub.operations.folder_access import (
    owns,
    require_owner,
)
from backendai_hub.operations.folder_checks import check_updatable, refuse_taken
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folders import find_seen
from backendai_hub.operations.platform import Platform

MOST_AT_ONCE: Final = 100
"""People who are invited, or whose permissions are changed, by one request."""


async def find_person(
    tx: Transaction, domain_id: str, word: str, *, guest_of: str = ""
) -> tuple[str, str]:
    """Find somebody of a domain by name, address or id; return id and name.

    They are active, or have been given something in the folder *guest_of*.
    """
    key = fold(word)
    guests = select(FolderGrantRow.user_id).where(FolderGrantRow.folder_id == guest_of)
    query = select(UserRow.id, UserRow.name).where(
        UserRow.domain_id == domain_id,
        or_(UserRow.status == str(UserStatus.ACTIVE), UserRow.id.in_(guests)),
        or_(UserRow.name_key == key, UserRow.email_key == key, UserRow.id == key),
    )
    row = None
    if key and "\0" not in key:
        row = (await tx.connection.execute(query)).first()
    if row is None:
        raise NotFoundError(
            f"there is nobody {word[:64]!r} in this domain who could share it"
        )
    return row.id, row.name


def tell_invitation(
    tx: Transaction, folder: FolderRecord, owner_id: str, text: str, actor: str
) -> None:
    """Record what becomes of an invitation, for one of the two it is between."""
    tx.record(
        Event(
            kind=EventKind.FOLDER_INVITATION,
            text=text,
            actor=actor,
            owner_id=owner_id,
            folder_id=folder.id,
        )
    )


# --- inviting --------------------------------------------------------------------


async def invite_people(
    platform: Platform, principal: Principal, reference: str, body: InviteRequest
) -> list[InviteOutcome]:
    """Invite people to a folder; each ends for itself."""
    async with platform.database.read() as connection:
        folder = await find_seen(connection, principal, reference, lock=False)
        await _check_may_invite(connection, principal, folder)
    if not 1 <= len(body.users) <= MOST_AT_ONCE:
        raise InvalidRequestError(f"users: name 1 to {MOST_AT_ONCE} people")
    results = []
    for word in body.users:
        try:
            invitation_id = await _invite(
                platform, principal, folder.id, word, body.permission
            )
            results.append(InviteOutcome(user=word, invitation=invitation_id))
        except HubError as error:
            act = act_of(Action.INVITE_TO_FOLDER, folder, after={"user": word[:64]})
            await note_refusal(platform, act, error)
            results.append(
                InviteOutcome(user=word, error=error.message, code=error.code)
            )
    return results


async def _check_may_invite(
    connection: AsyncConnection, principal: Principal, folder: FolderRecord
) -> None:
    if folder.project_id is not None:
        raise InvalidRequestError(
            f"the folder {folder.name!r} is the project {folder.owner_name}'s: its"
            " members have it already; say what they may do there by sharing it"
        )
    if not owns(principal, folder):
        raise ForbiddenError(
            f"the folder {folder.name!r} is {folder.owner_name}'s; only its owner"
            " invites others"
        )
    if is_automount(folder.name):
        raise InvalidRequestError(
            f"the folder {folder.name!r} begins with a dot: it would come into the"
            " sessions of others without being asked for, so it is not shared"
        )
    check_updatable(folder)
    await require_owner(
        connection,
        principal,
        folder,
        Action.INVITE_TO_FOLDER,
        HostPermission.INVITE,
    )


async def _invite(
    platform: Platform,
    principal: Principal,
    folder_id: str,
    word: str,
    permission: FolderPermission,
) -> str:
    invitation_id = platform.new_id()
    try:
        async with platform.database.transaction() as tx:
            folder = await find_seen(tx.connection, principal, folder_id)
            await _check_may_invite(tx.connection, principal, folder)
            invitee_id, name = await find_person(tx, folder.domain_id, word)
            if invitee_id == folder.user_id:
                raise ConflictError("it is your own folder already")
            given = await folder_grants.find_grant(tx.connection, folder.id, invitee_id)
            if given is not None:
                raise ConflictError(f"{name} has the folder already ({given})")
            if await invitations.is_pending(tx.connection, folder.id, invitee_id):
                raise _asked_already(name)
            await invitations.insert_invitation(
                tx,
                invitation_id,
                folder_id=folder.id,
                inviter_id=principal.id,
                invitee_id=invitee_id,
                permission=permission,
            )
            tx.audit(
                act_of(
                    Action.INVITE_TO_FOLDER,
                    folder,
                    after={"user": name, "permission": str(permission)},
                )
            )
            tell_invitation(
                tx,
                folder,
                invitee_id,
                f"{principal.name} invites you to the folder {folder.name}"
                f" ({permission})",
                principal.name,
            )
    except IntegrityError:
        raise _asked_already(word) from None
    return invitation_id


def _asked_already(name: str) -> ConflictError:
    return ConflictError(f"{name} has an invitation already, which is not answered yet")


# --- answering -------------------------------------------------------------------


async def list_invitations(
    platform: Platform, principal: Principal, state: str
) -> list[Invitation]:
    """List the invitations the caller has got or made; ``all`` is any state."""
    if state not in {"all", *InvitationState}:
        raise InvalidRequestError(
            f"state: {state[:32]!r} is not one of all, {', '.join(InvitationState)}"
        )
    async with platform.database.read() as connection:
        return await invitations.list_invitations(
            connection, principal.id, state=None if state == "all" else state
        )


async def _find_invitation(
    tx: Transaction, principal: Principal, invitation_id: str
) -> tuple[Invitation, FolderRecord]:
    found = None
    if "\0" not in invitation_id:
        found = await invitations.find_invitation(tx.connection, invitation_id)
    if found is None:
        raise NotFoundError(f"there is no invitation {invitation_id[:64]!r}")
    if principal.id not in {found.inviter_id, found.invitee_id}:
        raise ForbiddenError("this invitation is neither to you nor from you")
    folder = await folders.find_folder(tx.connection, found.folder_id, lock=True)
    assert folder is not None  # it takes its invitations along
    return found, folder


async def accept_invitation(
    platform: Platform, principal: Principal, invitation_id: str
) -> Invitation:
    """Take what was offered; refused while one's own folder has the same name."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        found, folder = await _find_invitation(tx, principal, invitation_id)
        if principal.id != found.invitee_id:
            raise ForbiddenError("only who is invited accepts an invitation")
        if folder.status not in MOUNTABLE:
            raise ConflictError(
                f"the folder {folder.name!r} is {folder.status} at the moment"
            )
        if is_automount(folder.name):
            raise ConflictError(
                f"the folder is named {folder.name!r} now, and such folders are not"
                " shared; ask its owner to rename it"
            )
        await refuse_taken(
            tx, principal.id, principal.id, folder.name, other_than=folder.id
        )
        await _answer(tx, found, InvitationState.ACCEPTED)
        await folder_grants.put_grant(
            tx, folder.id, principal.id, found.permission, kind="invited"
        )
        _audit_answer(tx, folder, found, InvitationState.ACCEPTED)
        tell_invitation(
            tx,
            folder,
            found.inviter_id,
            f"{found.invitee} shares the folder {folder.name} now",
            principal.name,
        )
        return await _read_again(tx, found)


async def decline_invitation(
    platform: Platform, principal: Principal, invitation_id: str
) -> Invitation:
    """Reject an invitation, or as who has made it, take it back."""
    async with platform.database.transaction() as tx:
        found, folder = await _find_invitation(tx, principal, invitation_id)
        own = principal.id == found.inviter_id
        state = InvitationState.CANCELED if own else InvitationState.REJECTED
        await _answer(tx, found, state)
        _audit_answer(tx, folder, found, state)
        other = found.invitee_id if own else found.inviter_id
        text = f"{principal.name} has {state} the invitation to {folder.name}"
        tell_invitation(tx, folder, other, text, principal.name)
        return await _read_again(tx, found)


async def change_invitation(
    platform: Platform,
    principal: Principal,
    invitation_id: str,
    body: InvitationChange,
) -> Invitation:
    """Offer something else, as who has made the invitation."""
    async with platform.database.transaction() as tx:
        found, folder = await _find_invitation(tx, principal, invitation_id)
        if principal.id != found.inviter_id:
            raise ForbiddenError("only who has made an invitation changes it")
        if not await invitations.change_invitation(
            tx, found.id, permission=str(body.permission)
        ):
            raise _answered(found)
        tx.audit(
            act_of(
                Action.INVITE_TO_FOLDER,
                folder,
                before={"permission": str(found.permission)},
                after={"user": found.invitee, "permission": str(body.permission)},
            )
        )
        return await _read_again(tx, found)


async def _answer(tx: Transaction, found: Invitation, state: InvitationState) -> None:
    if not await invitations.change_invitation(tx, found.id, state=str(state)):
        raise _answered(found)


def _answered(found: Invitation) -> ConflictError:
    return ConflictError("this invitation has been answered, or taken back, already")


def _audit_answer(
    tx: Transaction, folder: FolderRecord, found: Invitation, state: InvitationState
) -> None:
    tx.audit(
        Act(
            action=Action.ANSWER_INVITATION,
            object_kind="folder",
            object_id=folder.id,
            object_name=folder.name,
            domain_id=folder.domain_id,
            owner_id=folder.user_id,
            after={
                "user": found.invitee,
                "state": str(state),
                "permission": str(found.permission),
            },
        )
    )


async def _read_again(tx: Transaction, found: Invitation) -> Invitation:
    now = await invitations.find_invitation(tx.connection, found.id)
    assert now is not None
    return now
