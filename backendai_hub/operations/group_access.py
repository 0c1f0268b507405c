"""Which domains, projects and keypairs may use a resource group."""

from __future__ import annotations

from typing import Literal

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.groups import GroupAccess
from backendai_hub.core.nouns import noun_of
from backendai_hub.db import groups
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform

_GROUP = noun_of("resource-group")


class AccessTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A domain, project or keypair, by name or id."""

    kind: Literal["domain", "project", "keypair"]
    name: str


class GroupAccessRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """To whom to open a resource group, and to whom to close it."""

    allow: list[AccessTarget] = []
    deny: list[AccessTarget] = []


async def list_access(
    platform: Platform, principal: Principal, reference: str
) -> list[GroupAccess]:
    """List who may use a resource group."""
    async with platform.database.read() as connection:
        group = await find_visible(connection, principal, _GROUP, reference)
        return await groups.list_access(connection, group["id"])


async def change_access(
    platform: Platform,
    principal: Principal,
    reference: str,
    body: GroupAccessRequest,
) -> list[GroupAccess]:
    """Open and close a resource group; all of it, or nothing if anything is wrong."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        group = await find_visible(tx.connection, principal, _GROUP, reference)
        await require(
            tx.connection, principal, _GROUP, group, Action.CHANGE_GROUP_ACCESS
        )
        before = await groups.list_access(tx.connection, group["id"])
        for entry, opens in [
            *((e, True) for e in body.allow),
            *((e, False) for e in body.deny),
        ]:
            try:
                item = await find_visible(
                    tx.connection, principal, noun_of(entry.kind), entry.name
                )
            except NotFoundError as error:
                raise InvalidRequestError(error.message) from None
            change = groups.open_group if opens else groups.close_group
            await change(tx, group["id"], entry.kind, item["id"])
        after = await groups.list_access(tx.connection, group["id"])
        tx.audit(
            Act(
                action=Action.CHANGE_GROUP_ACCESS,
                object_kind="resource-group",
                object_id=group["id"],
                object_name=group["name"],
                before={"access": [f"{a.kind} {a.name}" for a in before]},
                after={"access": [f"{a.kind} {a.name}" for a in after]},
            )
        )
        tx.wake("scheduler")
    platform.actors.clear()
    return after
