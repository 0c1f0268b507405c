"""The rules of keypairs, and their secrets."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import Principal, Resource, Target, admin_scope
from backendai_hub.core.errors import (
    ForbiddenError,
    InUseError,
)
from backendai_hub.core.fields import defaults_of
from backendai_hub.core.nouns import Noun
from backendai_hub.core.tenancy import Actor, Keypair, Role
from backendai_hub.db import nouns, purges, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.tables import (
    KeypairPolicyRow,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules
from backendai_hub.operations.tenant_rules import (
    with_default_policy,
)
from backendai_hub.operations.users import (
    make_access_key,
    with_configured_role,
)


def hash_secret(secret: str) -> str:
    """Hash a keypair's secret. It has 240 random bits: one round is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_secret() -> str:
    """Make a secret of 40 characters."""
    return secrets.token_urlsafe(30)


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
        return await with_default_policy(tx, columns, KeypairPolicyRow)

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
        return await with_default_policy(tx, changes, KeypairPolicyRow)

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
