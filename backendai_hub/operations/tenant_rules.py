"""The rules of domains, projects, users and keypairs."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import Principal, Resource, Target, admin_scope
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
)
from backendai_hub.core.fields import defaults_of
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Noun
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.tenancy import Actor, Keypair, Role, UserStatus
from backendai_hub.db import nouns, purges, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.sessions import is_live
from backendai_hub.db.tables import (
    DomainRow,
    KeypairPolicyRow,
    MembershipRow,
    ProjectPolicyRow,
    ProjectRow,
    SessionRow,
    UserPolicyRow,
    UserRow,
)
from backendai_hub.operations.directory import look_again
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules, refuse_default, refuse_used
from backendai_hub.operations.users import (
    check_user_name,
    make_access_key,
    make_user,
    with_configured_role,
)

_EMAIL = re.compile(r"[^@\s]{1,48}@[^@\s.]+(\.[^@\s.]+)*")


def hash_secret(secret: str) -> str:
    """Hash a keypair's secret. It has 240 random bits: one round is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_secret() -> str:
    """Make a secret of 40 characters."""
    return secrets.token_urlsafe(30)


class DomainRules(Rules):
    """A domain is purged when it is inactive and empty."""

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it; people whose groups put them into it move when they come."""
        await look_again(platform, tx)
        return await super().create(platform, tx, noun, item_id, columns)

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Look at everybody's groups again if it is called differently now."""
        if "name" in changes:
            await look_again(platform, tx)
        return await super().change(platform, tx, noun, old, changes)

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Nobody locks the door behind which they stand."""
        await super().check(platform, tx, principal, old, columns)
        own = old is not None and old["id"] == principal.domain_id
        if own and columns.get("is_active") is False:
            raise InvalidRequestError(
                "is_active: this is your own domain, and nobody of an inactive one can"
                " log in; ask a superadmin of another"
            )

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """A new domain belongs to nobody."""
        del columns, principal
        return Target(item_id, item_id)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it with its limits, its ended sessions and its dotfiles."""
        del platform, principal
        refuse_default(noun, item)
        _refuse_active(noun, item, item["is_active"])
        await refuse_used(
            tx,
            noun,
            item,
            (
                ("live sessions", SessionRow, _live(SessionRow.domain_id, item)),
                ("users", UserRow, UserRow.domain_id == item["id"]),
                ("projects", ProjectRow, ProjectRow.domain_id == item["id"]),
            ),
        )
        await purges.purge_sessions(tx, SessionRow.domain_id == item["id"])
        await purges.purge_scope(tx, ScopeKind.DOMAIN, item["id"])
        await nouns.delete_item(tx, noun, item["id"])


class ProjectRules(Rules):
    """A project stays in its domain, and is purged when it is inactive and idle."""

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it; people whose groups give it to them join when they come."""
        await look_again(platform, tx)
        return await super().create(platform, tx, noun, item_id, columns)

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """A new project is in the domain it names."""
        del item_id, principal
        return Target(None, columns["domain_id"])

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Give it the default policy if it names none."""
        del platform, principal
        return await _default_policy(tx, columns, ProjectPolicyRow)

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse a registry that the project's domain may not use."""
        await super().check(platform, tx, principal, old, columns)
        wanted = columns.get("container_registry")
        if wanted is None:
            return
        domain_id = columns["domain_id"] if old is None else old["domain_id"]
        usable = await tenancy.list_registries(tx.connection, domain_id)
        if fold(wanted["registry"]) not in {fold(name) for name in usable}:
            raise InvalidRequestError(
                f"container_registry: {wanted['registry'][:64]!r} is not one that"
                f" the domain may use; there are {', '.join(usable) or 'none'}"
            )

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Give it the default policy if its own is taken away."""
        del noun, old
        if "name" in changes:
            await look_again(platform, tx)
        return await _default_policy(tx, changes, ProjectPolicyRow)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it with its memberships, ended sessions and dotfiles."""
        del platform, principal
        _refuse_active(noun, item, item["is_active"])
        await refuse_used(
            tx,
            noun,
            item,
            (("live sessions", SessionRow, _live(SessionRow.project_id, item)),),
        )
        await purges.leave_project(tx, item["id"])
        await purges.purge_sessions(tx, SessionRow.project_id == item["id"])
        await purges.purge_scope(tx, ScopeKind.PROJECT, item["id"])
        await nouns.delete_item(tx, noun, item["id"])


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
        columns = await _default_policy(tx, columns, UserPolicyRow)
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
        changes = await _default_policy(tx, changes, UserPolicyRow)
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
        """Remove a user who is not active and has no live session."""
        del platform
        if item["id"] == principal.id:
            raise ForbiddenError("nobody purges themselves")
        _refuse_active(noun, item, item["status"] == UserStatus.ACTIVE)
        await refuse_used(
            tx,
            noun,
            item,
            (("live sessions", SessionRow, _live(SessionRow.owner_id, item)),),
        )
        await purges.purge_user(tx, item["id"], item["name"])


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


class KeypairRules(Rules):
    """Keys belong to people, who have exactly one default."""

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Show whether there is a secret; never what it is."""
        del connection
        return [
            nouns.present(noun, item, has_secret=item["secret_hash"] is not None)
            for item in items
        ]

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Give it an access key, and its policy: the one its user's others have."""
        del platform
        columns["name"] = make_access_key()
        owner = await tenancy.find_actor(tx.connection, user_id=columns["user_id"])
        if columns.get("resource_policy_id") is None and owner is not None:
            columns["resource_policy_id"] = owner.keypair_policy_id
        columns["_domain_id"] = None if owner is None else owner.domain_id
        usual = columns["rate_limit"] == defaults_of(Keypair)["rate_limit"]
        if owner is not None and owner.id == principal.id and usual:
            # Not more than they have, where nobody has said how much.
            columns["rate_limit"] = min(columns["rate_limit"], owner.rate_limit)
        return await _default_policy(tx, columns, KeypairPolicyRow)

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """A new key is its user's."""
        del item_id, principal
        return Target(columns["user_id"], columns.pop("_domain_id"))

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Nobody gives themselves more than they have."""
        await super().check(platform, tx, principal, old, columns)
        user_id = columns["user_id"] if old is None else old["user_id"]
        owner = await tenancy.find_actor(tx.connection, user_id=user_id)
        own = user_id == principal.id
        superadmin = (
            principal.role is Role.SUPERADMIN
            and admin_scope(Resource.ACCOUNT) in principal.scopes
        )
        if superadmin:
            return
        if owner is None:
            raise ForbiddenError("nobody owns this key at the moment; try again")
        if columns.get("is_admin") and (
            admin_scope(Resource.ACCOUNT) not in principal.scopes
            or principal.role is Role.USER
        ):
            raise ForbiddenError(
                "is_admin: only an administrator, with a credential that says so, makes"
                " keys with an administrator's rights"
            )
        refuse_above(platform, principal, owner)
        if columns.get("is_admin") and not own:
            # Whoever makes it sees its secret, and may keep it until the owner rises.
            raise ForbiddenError(
                "is_admin: everybody makes such keys for themselves only; let"
                f" {owner.name} do it"
            )
        policy = columns.get("resource_policy_id")
        if own and policy is not None and policy != owner.keypair_policy_id:
            raise ForbiddenError("resource_policy: nobody chooses their own policy")
        rate = columns.get("rate_limit")
        if own and rate is not None and rate > owner.rate_limit:
            raise ForbiddenError("rate_limit: nobody raises their own limit")
        if own and columns.get("is_default"):
            known = old["resource_policy_id"] if old is not None else policy
            if known not in {None, owner.keypair_policy_id}:
                raise ForbiddenError(
                    "is_default: that key has another policy than your default one"
                )

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it with the hash of a secret that is shown this once."""
        del platform
        if columns.get("is_default"):
            await nouns.clear_default(tx, noun, user_id=columns["user_id"])
        secret = make_secret()
        await nouns.insert_item(
            tx, noun, item_id, {**columns, "secret_hash": hash_secret(secret)}
        )
        return {"secret": secret}

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Let one key of a user be the default."""
        del platform
        if changes.get("is_default"):
            await nouns.clear_default(tx, noun, user_id=old["user_id"])
        return await _default_policy(tx, changes, KeypairPolicyRow)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it; what was started with it goes on, under the user's own limit."""
        owner = await tenancy.find_actor(tx.connection, user_id=item["user_id"])
        if owner is None:
            raise ForbiddenError("nobody owns this key at the moment; try again")
        refuse_above(platform, principal, owner)
        if item["is_default"]:
            raise InUseError(
                f"{item['name']} is the default keypair of its user; make another one"
                " the default first"
            )
        del noun
        await purges.purge_keypair(tx, item["id"])


def refuse_above(platform: Platform, principal: Principal, owner: Actor) -> None:
    """Leave the keys of those who stand higher, and what is in them, to superadmins."""
    role = with_configured_role(platform, owner).role
    mine = owner.id == principal.id or principal.role is Role.SUPERADMIN
    if role in {Role.SUPERADMIN, Role.MONITOR} and not mine:
        raise ForbiddenError(f"only a superadmin touches keys of a {role}")


async def issue_secret(tx: Transaction, noun: Noun, item: Item) -> str:
    """Give a keypair a new secret; the old one is refused from now on."""
    secret = make_secret()
    await nouns.change_item(tx, noun, item, {"secret_hash": hash_secret(secret)})
    return secret


async def _default_policy(tx: Transaction, columns: Columns, table: Any) -> Columns:
    if columns.get("resource_policy_id", "") is None:
        return {
            **columns,
            "resource_policy_id": await tenancy.default_id(tx.connection, table),
        }
    return columns


def _live(column: Any, item: Item) -> Any:
    return (column == item["id"]) & is_live()


def _refuse_active(noun: Noun, item: Item, active: object) -> None:
    if active:
        raise InUseError(
            f"{noun.name} {item['name']} is active; make it inactive first, so that"
            " nothing new comes into it"
        )
