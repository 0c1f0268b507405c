"""Users: who a name from JupyterHub is here."""

from __future__ import annotations

import unicodedata

import msgspec

from backendai_hub.core.access import Caller, Principal
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.tenancy import Me, Role, User
from backendai_hub.db import ledger, tenancy
from backendai_hub.operations.platform import Platform


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= 256 or any(
        unicodedata.category(c)[0] == "C" for c in name
    ):
        raise InvalidRequestError(
            "a user name has 1 to 256 characters and no control characters"
        )


async def ensure_user(platform: Platform, name: str) -> User:
    """Return the user JupyterHub calls *name*; the first sight makes them.

    A new user joins the default domain and project, with the configured limits.
    """
    _check_name(name)
    async with platform.database.read() as connection:
        found = await tenancy.find_user(connection, name)
    if found is None:
        async with platform.database.transaction() as tx:
            domain_id, project_id = await tenancy.ensure_defaults(tx, platform.new_id)
            user_id = platform.new_id()
            await tenancy.insert_user(tx, user_id, name, domain_id, project_id)
            found = await tenancy.find_user(tx.connection, name)
            if found is None:
                raise InvalidRequestError(f"user {name!r} cannot be stored")
            if found.id == user_id:
                tx.record(
                    Event(
                        kind=EventKind.USER_JOINED,
                        text=f"{name} logged in for the first time",
                        actor=name,
                        owner_id=user_id,
                    )
                )
            for kind, owner in (
                (ScopeKind.DOMAIN, domain_id),
                (ScopeKind.PROJECT, project_id),
                (ScopeKind.USER, found.id),
            ):
                for slot, quota in platform.settings.quotas.get(str(kind), {}).items():
                    await ledger.set_quota(tx, kind, owner, slot, quota)
    admin = name in platform.settings.superadmins
    return msgspec.structs.replace(found, role=Role.SUPERADMIN if admin else Role.USER)


def describe_self(principal: Principal, user: User) -> Me:
    """Tell callers who they are here, with the rights this credential has."""
    roles = [Role.USER]
    if principal.caller is Caller.SUPERADMIN:
        roles.append(Role.SUPERADMIN)
    return Me(name=user.name, roles=roles, domain=user.domain, project=user.project)
