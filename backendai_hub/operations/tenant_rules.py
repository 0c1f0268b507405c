"""The rules of domains and projects, and what all tenants have in common."""

from __future__ import annotations

from typing import Any

from backendai_hub.core.access import Principal, Target
from backendai_hub.core.errors import (
    InUseError,
    InvalidRequestError,
)
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Noun
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.db import nouns, purges, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.sessions import is_live
from backendai_hub.db.tables import (
    ProjectPolicyRow,
    ProjectRow,
    SessionRow,
    UserRow,
)
from backendai_hub.operations.directory import look_again
from backendai_hub.operations.folder_purges import purge_folders_of_project
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules, refuse_default, refuse_used


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
        refuse_active(noun, item, item["is_active"])
        await refuse_used(
            tx,
            noun,
            item,
            (
                ("live sessions", SessionRow, is_live_in(SessionRow.domain_id, item)),
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
        return await with_default_policy(tx, columns, ProjectPolicyRow)

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
        return await with_default_policy(tx, changes, ProjectPolicyRow)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it with its memberships, ended sessions, dotfiles and folders."""
        del principal
        refuse_active(noun, item, item["is_active"])
        await refuse_used(
            tx,
            noun,
            item,
            (("live sessions", SessionRow, is_live_in(SessionRow.project_id, item)),),
        )
        await purge_folders_of_project(platform, tx, item["id"])
        await purges.leave_project(tx, item["id"])
        await purges.purge_sessions(tx, SessionRow.project_id == item["id"])
        await purges.purge_scope(tx, ScopeKind.PROJECT, item["id"])
        await nouns.delete_item(tx, noun, item["id"])


async def with_default_policy(tx: Transaction, columns: Columns, table: Any) -> Columns:
    """Give it the default policy of its kind if it is to have none."""
    if columns.get("resource_policy_id", "") is None:
        return {
            **columns,
            "resource_policy_id": await tenancy.default_id(tx.connection, table),
        }
    return columns


def is_live_in(column: Any, item: Item) -> Any:
    """Build the condition that a live session is in *item*, by this column."""
    return (column == item["id"]) & is_live()


def refuse_active(noun: Noun, item: Item, active: object) -> None:
    """Refuse to remove what is active."""
    if active:
        raise InUseError(
            f"{noun.name} {item['name']} is active; make it inactive first, so that"
            " nothing new comes into it"
        )
