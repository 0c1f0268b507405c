"""The rules of users: who may make whom what."""

from __future__ import annotations

import re
from typing import Any

from backendai_hub.core.access import Principal, Target
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
)
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Noun
from backendai_hub.core.tenancy import Role, UserStatus
from backendai_hub.db import folder_grants, nouns, purges, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.tables import (
    DomainRow,
    MembershipRow,
    ProjectRow,
    SessionRow,
    UserPolicyRow,
    UserRow,
)
from backendai_hub.operations.folder_moves import NewOwner
from backendai_hub.operations.folder_purges import (
    purge_every_folder_of_user,
    purge_folders_of_user,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules, refuse_used
from backendai_hub.operations.tenant_rules import (
    is_live_in,
    refuse_active,
    with_default_policy,
)
from backendai_hub.operations.users import (
    check_user_name,
    make_user,
)

_EMAIL = re.compile(r"[^@\s]{1,48}@[^@\s.]+(\.[^@\s.]+)*")


class UserRules(Rules):
    """Who may make whom what; nobody raises themselves."""

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """A new user is in the domain they are put into."""
        del principal
        return Target(item_id, columns["domain_id"])

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Put them into the caller's domain, or the default one."""
        del platform
        columns = await with_default_policy(tx, columns, UserPolicyRow)
        if columns.get("domain_id") is None:
            own = principal.role is Role.DOMAIN_ADMIN
            columns["domain_id"] = (
                principal.domain_id
                if own
                else await tenancy.default_id(tx.connection, DomainRow)
            )
        return columns

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Check names, addresses, roles, and that the project is theirs."""
        await super().check(platform, tx, principal, old, columns)
        if old is None:
            check_user_name(columns["name"])
        email = columns.get("email")
        if email and _EMAIL.fullmatch(email) is None:
            raise InvalidRequestError(f"email: {email[:64]!r} is not an address")
        await _check_email(tx, old, email)
        own = old is not None and old["id"] == principal.id
        if own and (
            {"role", "status", "domain_id", "resource_policy_id"} & set(columns)
        ):
            raise ForbiddenError(
                "nobody changes their own role, status, domain or policy; ask another"
                " administrator"
            )
        if own and "allowed_client_ip" in columns:
            refuse_lifting(principal)
        _check_role(principal, old, columns)
        _check_configured(platform, principal, old, columns)
        elsewhere = columns.get("domain_id", principal.domain_id)
        if elsewhere != principal.domain_id and principal.role is not Role.SUPERADMIN:
            raise ForbiddenError("domain: only a superadmin moves people there")
        await self._check_project(tx, old, columns)

    async def _check_project(
        self, tx: Transaction, old: Item | None, columns: Columns
    ) -> None:
        project_id = columns.get("project_id")
        if project_id is None:
            return
        project = (
            await nouns.list_names(
                tx.connection,
                ProjectRow,
                (ProjectRow.id == project_id)
                & (
                    ProjectRow.domain_id
                    == columns.get("domain_id", old["domain_id"] if old else None)
                ),
            )
        )[:1]
        if not project:
            raise InvalidRequestError(
                "project: it is in another domain than the user; people are in projects"
                " of their own domain only"
            )
        if old is None or "domain_id" in columns:
            return  # they join it with this
        if not await nouns.count_rows(
            tx.connection,
            MembershipRow,
            (MembershipRow.user_id == old["id"])
            & (MembershipRow.project_id == project_id),
        ):
            raise InvalidRequestError(
                f"project: {old['name']} is not a member of {project[0]}; add them"
                " to it first"
            )

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store a user with a default keypair and the first membership."""
        if await tenancy.find_stored(tx.connection, columns["name"]) is not None:
            raise ConflictError(
                f"there is a user named {columns['name']!r} already, perhaps in another"
                " spelling"
            )
        await make_user(platform, tx, item_id, columns)
        return {}

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Who moves to another domain leaves all projects of the old one."""
        del noun
        changes = await with_default_policy(tx, changes, UserPolicyRow)
        if "email" in changes:
            changes["email_key"] = fold(changes["email"]) or None
        if changes.get("domain_id", old["domain_id"]) is None:
            raise InvalidRequestError("domain: everybody is in one; name it")
        if "domain_id" in changes and old["role"] == Role.DOMAIN_ADMIN:
            # Of the old domain, not of whatever comes next.
            changes.setdefault("role", str(Role.USER))
        if "role" in changes:
            changes["granted_role"] = ""
            await tenancy.drop_admin_keys(tx, old["id"])
        await _keep_a_superadmin(platform, tx, old, changes)
        if "domain_id" in changes:
            await folder_grants.move_folders(tx, old["id"], changes["domain_id"])
            await tenancy.remove_members(tx, old["id"])
            first = await tenancy.find_project(
                tx.connection, changes["domain_id"], platform.settings.join_project
            )
            project_id = changes.get("project_id", first)
            changes["project_id"] = project_id
            if project_id is not None:
                await tenancy.add_member(tx, project_id, old["id"], "default")
        return changes

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove a user who is not active and has no live session.

        Folders that others share become those of who does it; the rest is removed.
        With ``shared-folders``, those are removed as well.
        """
        if item["id"] == principal.id:
            raise ForbiddenError("nobody purges themselves")
        refuse_active(noun, item, item["status"] == UserStatus.ACTIVE)
        await refuse_used(
            tx,
            noun,
            item,
            (("live sessions", SessionRow, is_live_in(SessionRow.owner_id, item)),),
        )
        await purge_folders_of_user(platform, tx, item["id"], heir=_heir(principal))
        await purges.purge_user(tx, item["id"], item["name"])

    async def purge_also(
        self, platform: Platform, tx: Transaction, item: Item, thing: str
    ) -> None:
        """Remove all folders of a user, also those that others share."""
        del thing  # there is one
        await purge_every_folder_of_user(platform, tx, item["id"])


def _heir(principal: Principal) -> NewOwner:
    """Return whose folders are from now on that somebody has left to others."""
    return NewOwner(
        kind="user",
        id=principal.id,
        name=principal.name,
        domain_id=principal.domain_id,
    )


def refuse_lifting(principal: Principal) -> None:
    """Leave where somebody may come from to those who are not bound by it."""
    if principal.role is not Role.SUPERADMIN:
        raise ForbiddenError(
            "allowed_client_ip: nobody changes where they themselves may come from; ask"
            " another administrator"
        )


async def _check_email(tx: Transaction, old: Item | None, email: str | None) -> None:
    same = UserRow.email_key == fold(email or "")
    if old is not None:
        same &= UserRow.id != old["id"]
    if email and await nouns.count_rows(tx.connection, UserRow, same):
        raise ConflictError(f"email: somebody has the address {email!r} already")


async def _keep_a_superadmin(
    platform: Platform, tx: Transaction, old: Item, changes: Columns
) -> None:
    """Refuse to leave the site without anybody who may do everything."""
    falls = changes.get("role", Role.SUPERADMIN) != Role.SUPERADMIN
    leaves = changes.get("status", UserStatus.ACTIVE) != UserStatus.ACTIVE
    if old["role"] != Role.SUPERADMIN or not (falls or leaves):
        return
    others = await nouns.count_rows(
        tx.connection,
        UserRow,
        (UserRow.role == str(Role.SUPERADMIN))
        & (UserRow.status == str(UserStatus.ACTIVE))
        & (UserRow.id != old["id"]),
    )
    if not others and not platform.settings.superadmins - {old["name"]}:
        raise ForbiddenError(
            f"{old['name']} is the last active superadmin; make another one first"
        )


def _check_role(principal: Principal, old: Item | None, columns: Columns) -> None:
    """Refuse to make, or to touch, somebody of a higher role than one's own."""
    if principal.role is Role.SUPERADMIN:
        return
    above = {Role.SUPERADMIN, Role.MONITOR}
    if columns.get("role") in above:
        raise ForbiddenError(
            f"role: only a superadmin makes somebody a {columns['role']}"
        )
    if old is not None and old["role"] in above and old["id"] != principal.id:
        raise ForbiddenError(f"only a superadmin changes a {old['role']}")
    if columns.get("role") == Role.DOMAIN_ADMIN and principal.role is Role.USER:
        raise ForbiddenError("role: only an administrator makes administrators")


def _check_configured(
    platform: Platform, principal: Principal, old: Item | None, columns: Columns
) -> None:
    """Leave those whom the configuration makes superadmins to superadmins."""
    name = columns["name"] if old is None else old["name"]
    if fold(name) not in {fold(known) for known in platform.settings.superadmins}:
        return
    if old is not None and columns.get("role", Role.SUPERADMIN) != Role.SUPERADMIN:
        raise InvalidRequestError(
            f"role: the configuration makes {name} a superadmin; take them out of"
            " c.HubService.superadmins first"
        )
    if principal.role is not Role.SUPERADMIN:
        raise ForbiddenError(
            f"name: the configuration makes {name} a superadmin; only a superadmin"
            " makes or changes that user"
        )
