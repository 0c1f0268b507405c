"""Users: who a name from JupyterHub is here."""

from __future__ import annotations

import base64
import os
import unicodedata

from backendai_hub.core.access import (
    CALLER_OF_ROLE,
    PEOPLE,
    Principal,
)
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.ids import is_id
from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import (
    Actor,
    Me,
    Role,
    UserStatus,
)
from backendai_hub.db import folder_grants, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import DomainRow, KeypairPolicyRow, UserPolicyRow
from backendai_hub.operations.bootstrap import ensure_defaults
from backendai_hub.operations.platform import Platform


def check_user_name(name: str) -> None:
    """Refuse names that are empty, too long, or hold control characters."""
    if not 1 <= len(name) <= 255 or any(
        unicodedata.category(c)[0] == "C" for c in name
    ):
        raise InvalidRequestError(
            "a user name has 1 to 255 characters and no control characters"
        )
    if is_id(fold(name)):
        raise InvalidRequestError(
            f"name: {name!r} could be taken for the id of something; choose another"
        )


def make_access_key() -> str:
    """Make an access key: ``AKIA`` and 16 letters and digits, as Backend.AI's."""
    return "AKIA" + base64.b32encode(os.urandom(10)).decode("ascii")


async def ensure_user(platform: Platform, name: str) -> Actor:
    """Return the user JupyterHub calls *name*; the first sight makes them.

    A new user joins the configured domain and project and gets a default keypair.
    Raises :class:`InvalidRequestError` if the name is another spelling of somebody
    else's: two accounts that look alike are one too many.
    """
    check_user_name(name)
    async with platform.database.read() as connection:
        found = await tenancy.find_actor(connection, name=name)
    if found is None:
        async with platform.database.transaction() as tx:
            user_id = platform.new_id()
            await ensure_defaults(platform, tx)
            domain_id = await _find_join_domain(platform, tx, name)
            await make_user(
                platform, tx, user_id, {"name": name, "domain_id": domain_id}
            )
            found = await tenancy.find_actor(tx.connection, name=name)
            if found is None:
                raise InvalidRequestError(f"user {name!r} cannot be stored")
            if found.id == user_id:
                tx.audit(
                    Act(
                        action="user:create",
                        object_kind="user",
                        object_id=user_id,
                        object_name=name,
                        domain_id=found.domain_id,
                        owner_id=user_id,
                        after={"domain": found.domain, "joined": "by logging in"},
                        actor=name,
                        actor_id=user_id,
                    )
                )
                tx.record(
                    Event(
                        kind=EventKind.USER_JOINED,
                        text=f"{name} logged in for the first time",
                        actor=name,
                        owner_id=user_id,
                    )
                )
    if found.name != name:
        raise InvalidRequestError(
            f"the user name {name!r} is another spelling of one that exists; log in"
            " with that"
        )
    return with_configured_role(platform, found)


async def _find_join_domain(platform: Platform, tx: Transaction, name: str) -> str:
    """Return the domain a new user joins; raises :class:`ForbiddenError` for none."""
    wanted = platform.settings.join_domain
    found = await tenancy.find_domain(tx.connection, wanted) if wanted else None
    if found is None and (not wanted or name in platform.settings.superadmins):
        # Somebody has to come in who can make the domain that is still missing.
        found = await tenancy.default_id(tx.connection, DomainRow)
    if found is None:
        raise ForbiddenError(
            f"the domain {wanted!r}, which new people join, does not exist; ask an"
            " administrator",
            reason="no-join-domain",
        )
    return found


async def join_new_domain(
    platform: Platform, tx: Transaction, user_id: str, domain_id: str
) -> str | None:
    """Take a user out of all projects and into the first one of another domain."""
    await folder_grants.move_folders(tx, user_id, domain_id)
    await tenancy.remove_members(tx, user_id)
    first = await tenancy.find_project(
        tx.connection, domain_id, platform.settings.join_project
    )
    if first is not None:
        await tenancy.add_member(tx, first, user_id, "default")
    return first


async def find_user(platform: Platform, name: str) -> Actor | None:
    """Find a user without making them."""
    async with platform.database.read() as connection:
        found = await tenancy.find_actor(connection, name=name)
    return None if found is None else with_configured_role(platform, found)


def with_configured_role(platform: Platform, actor: Actor) -> Actor:
    """Make those superadmins whom the configuration names."""
    if actor.name not in platform.settings.superadmins:
        return actor
    return Actor(
        **{f: getattr(actor, f) for f in actor.__struct_fields__ if f != "role"},
        role=Role.SUPERADMIN,
    )


def _configured_role(platform: Platform, name: str) -> dict[str, str]:
    """Return the columns of a user whom the configuration makes a superadmin.

    The role is stored, so that whoever may not touch superadmins may not touch them.
    """
    if name not in platform.settings.superadmins:
        return {}
    return {"role": str(Role.SUPERADMIN), "granted_role": str(Role.SUPERADMIN)}


async def make_user(
    platform: Platform,
    tx: Transaction,
    user_id: str,
    values: dict[str, object],
    keypair_policy_id: str | None = None,
) -> None:
    """Store a user with everything one has; what *values* lack is the default."""
    connection = tx.connection
    await ensure_defaults(platform, tx)
    name = str(values["name"])
    domain_id = values.get("domain_id") or await tenancy.default_id(
        connection, DomainRow
    )
    project_id = values.get("project_id")
    if project_id is None:
        project_id = await tenancy.find_project(
            connection, str(domain_id), platform.settings.join_project
        )
    await tenancy.insert_user(
        tx,
        {
            "id": user_id,
            "name_key": fold(name),
            "email_key": fold(str(values["email"])) if values.get("email") else None,
            "created_at": tx.now,
            "modified_at": tx.now,
            **values,
            **_configured_role(platform, name),
            "domain_id": domain_id,
            "project_id": project_id,
            "resource_policy_id": values.get("resource_policy_id")
            or await tenancy.default_id(connection, UserPolicyRow),
        },
    )
    stored = await tenancy.find_stored(connection, name)
    if stored != user_id:
        return  # somebody has just made them
    access_key = make_access_key()
    await tenancy.insert_keypair(
        tx,
        {
            "id": platform.new_id(),
            "name": access_key,
            "name_key": fold(access_key),
            "user_id": user_id,
            "is_default": True,
            "resource_policy_id": keypair_policy_id
            or await tenancy.default_id(connection, KeypairPolicyRow),
            "created_at": tx.now,
            "modified_at": tx.now,
        },
    )
    if project_id is not None:
        await tenancy.add_member(tx, str(project_id), user_id, "default")


def check_may_enter(actor: Actor) -> None:
    """Refuse people who are not active, or whose domain is not."""
    if actor.status is not UserStatus.ACTIVE:
        raise ForbiddenError(
            f"the user {actor.name} is {actor.status}; ask an administrator",
            reason="user-inactive",
        )
    if not actor.domain_active:
        raise ForbiddenError(
            f"the domain {actor.domain} is not active; ask an administrator",
            reason="domain-inactive",
        )


def make_principal(
    actor: Actor,
    *,
    scopes: frozenset[str],
    credential: str,
    keypair_id: str | None = None,
) -> Principal:
    """Make the principal of a person who shows a credential with these scopes."""
    return Principal(
        caller=CALLER_OF_ROLE[actor.role],
        name=actor.name,
        id=actor.id,
        role=actor.role,
        domain_id=actor.domain_id,
        holds=frozenset(
            {
                actor.id,
                actor.domain_id,
                *actor.projects,
                actor.keypair_policy_id,
                actor.user_policy_id,
                *actor.project_policy_ids,
                *actor.group_ids,
                *actor.registry_ids,
            }
        ),
        scopes=scopes,
        credential=credential,
        keypair_id=keypair_id,
    )


def describe_self(platform: Platform, principal: Principal, actor: Actor) -> Me:
    """Tell callers who they are here, with the rights this credential has."""
    roles = [Role.USER]
    admin = any(
        scope.startswith("custom:backendai:admin:") for scope in principal.scopes
    )
    if principal.caller in PEOPLE and principal.role is not Role.USER and admin:
        roles.append(principal.role)
    return Me(
        name=actor.name,
        roles=roles,
        domain=actor.domain,
        project=actor.project or "",
        projects=sorted(actor.projects.values()),
        sees_agents=not platform.settings.hide_agents,
    )
