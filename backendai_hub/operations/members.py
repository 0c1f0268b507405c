"""Who is in which project."""

from __future__ import annotations

import msgspec
from sqlalchemy.exc import IntegrityError

from backendai_hub.core.access import Action, Principal, Reach, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Membership
from backendai_hub.db import tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.operations.audit_notes import note_refusal
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform

MOST_AT_ONCE = 1000
_PROJECT, _USER = noun_of("project"), noun_of("user")


class MembersRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Whom to add to a project and whom to remove, by name or id."""

    add: list[str] = []
    remove: list[str] = []


class MemberResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of them ended; ``error`` says why, if not well."""

    user: str
    added: bool = False
    removed: bool = False
    error: str | None = None
    code: str | None = None


async def list_members(
    platform: Platform, principal: Principal, reference: str
) -> list[Membership]:
    """List a project's members; plain members see themselves only."""
    async with platform.database.read() as connection:
        project = await find_visible(connection, principal, _PROJECT, reference)
        found = await tenancy.list_members(connection, project["id"])
        try:
            await require(
                connection, principal, _PROJECT, project, Action.CHANGE_MEMBERS
            )
        except HubError:
            if reach(principal, Action.READ_MEMBERS) is not Reach.ALL:
                return [m for m in found if m.user_id == principal.id]
    return found


async def change_members(
    platform: Platform, principal: Principal, reference: str, body: MembersRequest
) -> list[MemberResult]:
    """Add and remove people; each ends for itself."""
    if len(body.add) + len(body.remove) > MOST_AT_ONCE:
        raise InvalidRequestError(f"at most {MOST_AT_ONCE} people at once")
    async with platform.database.read() as connection:
        project = await find_visible(connection, principal, _PROJECT, reference)
        await require(connection, principal, _PROJECT, project, Action.CHANGE_MEMBERS)
    results = []
    for user, add in [
        *((u, True) for u in body.add),
        *((u, False) for u in body.remove),
    ]:
        try:
            results.append(await _change(platform, principal, project, user, add=add))
        except IntegrityError:
            error: HubError = ConflictError(
                f"the project or {user[:64]!r} has just been removed; look again"
            )
        except HubError as refusal:
            error = refusal
        else:
            continue
        finally:
            platform.actors.clear()
        await note_refusal(platform, _act(project, user, add=add), error)
        results.append(MemberResult(user=user, error=error.message, code=error.code))
    return results


async def _change(
    platform: Platform, principal: Principal, project: Item, name: str, *, add: bool
) -> MemberResult:
    async with platform.database.transaction() as tx:
        await tx.alone()
        try:
            user = await find_visible(tx.connection, principal, _USER, name)
        except NotFoundError as error:
            raise InvalidRequestError(error.message) from None
        if add:
            changed = await _add(tx, project, user)
        else:
            gone = await tenancy.remove_members(
                tx, user["id"], project_ids=[project["id"]]
            )
            changed = bool(gone)
            if changed and user["project_id"] == project["id"]:
                await tenancy.change_user(tx, user["id"], project_id=None)
        if changed:
            tx.audit(_act(project, user["name"], add=add))
    return MemberResult(
        user=user["name"], added=add and changed, removed=not add and changed
    )


def _act(project: Item, name: str, *, add: bool) -> Act:
    member = {"member": name}
    return Act(
        action=Action.CHANGE_MEMBERS,
        object_kind="project",
        object_id=project["id"],
        object_name=project["name"],
        domain_id=project["domain_id"],
        before=None if add else member,
        after=member if add else None,
    )


async def _add(tx: Transaction, project: Item, user: Item) -> bool:
    if user["domain_id"] != project["domain_id"]:
        raise InvalidRequestError(
            f"{user['name']} is in the domain {user['domain__name']}, the project"
            f" {project['name']} in {project['domain__name']}; people are in projects"
            " of their own domain only"
        )
    added = await tenancy.add_member(tx, project["id"], user["id"], "manual")
    if user["project_id"] is None:
        await tenancy.change_user(tx, user["id"], project_id=project["id"])
    return added
