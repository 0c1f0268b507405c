"""The rules of policies, resource groups, presets, slot types, registries, images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import InUseError, InvalidRequestError
from backendai_hub.core.images import RegistryType
from backendai_hub.core.nouns import Noun
from backendai_hub.core.references import host_of
from backendai_hub.core.slots import describe_amount, format_amount, parse_slots
from backendai_hub.db import nouns, purges
from backendai_hub.db.engine import Transaction
from backendai_hub.db.image_views import describe_images
from backendai_hub.db.nouns import Item
from backendai_hub.db.sessions import is_live
from backendai_hub.db.tables import (
    AgentRow,
    ImageRow,
    KeypairRow,
    LedgerRow,
    PresetRow,
    ProjectRow,
    SessionRow,
    UserRow,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules, refuse_default, refuse_used
from backendai_hub.registries.address import read_address
from backendai_hub.registries.names import check_repository
from backendai_hub.scheduling.plugins import (
    UnknownPolicyError,
    find_placement,
    find_sequencer,
)

_USERS_OF_POLICY: dict[str, tuple[str, Any]] = {
    "keypair-policy": ("keypairs", KeypairRow),
    "user-policy": ("users", UserRow),
    "project-policy": ("projects", ProjectRow),
}


class PolicyRules(Rules):
    """A policy that anybody refers to, active or not, stays."""

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it if nobody has it."""
        del platform, principal
        refuse_default(noun, item)
        word, row = _USERS_OF_POLICY[noun.name]
        used = row.resource_policy_id == item["id"]
        await refuse_used(tx, noun, item, ((word, row, used),))
        await nouns.delete_item(tx, noun, item["id"])


class ResourceGroupRules(Rules):
    """A group is removed when no node, live session or preset is in it."""

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Show whether there is a token; never what it is."""
        del connection
        return [
            nouns.present(
                noun,
                item,
                wsproxy_api_token=None,
                has_wsproxy_api_token=bool(item["wsproxy_api_token"]),
            )
            for item in items
        ]

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it with its token sealed."""
        _check_policies(columns)
        return await super().create(
            platform, tx, noun, item_id, _seal_token(platform, columns)
        )

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Seal a new token."""
        _check_policies(changes)
        changes = await super().change(platform, tx, noun, old, changes)
        return _seal_token(platform, changes)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it with its list of who may use it."""
        del platform, principal
        refuse_default(noun, item)
        group = item["id"]
        live = (SessionRow.resource_group_id == group) & is_live()
        await refuse_used(
            tx,
            noun,
            item,
            (
                ("nodes", AgentRow, AgentRow.resource_group_id == group),
                ("live sessions", SessionRow, live),
                ("presets", PresetRow, PresetRow.resource_group_id == group),
            ),
        )
        await purges.forget_group(tx, group)
        await nouns.delete_item(tx, noun, group)


class PresetRules(Rules):
    """Shared memory is part of a preset's memory."""

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse what no session could ask for."""
        await super().check(platform, tx, principal, old, columns)
        now = {**(old or {}), **columns}
        slots, shared = now["resource_slots"], now["shared_memory"]
        if not slots:
            raise InvalidRequestError("resource_slots: name at least one resource")
        if shared and shared >= slots.get("mem", 0):
            raise InvalidRequestError(
                f"shared_memory: {describe_amount('mem', shared)} leaves nothing of"
                f" {describe_amount('mem', slots.get('mem', 0))} of mem; ask for more"
                " mem or less shared memory"
            )


class SlotTypeRules(Rules):
    """A kind of resource that some node has stays known."""

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse names that no slot has."""
        await super().check(platform, tx, principal, old, columns)
        if old is None:
            parse_slots({columns["name"]: 0})

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it if no device has it."""
        del platform, principal
        had = (LedgerRow.slot == item["name"]) & (LedgerRow.kind == "device")
        count = await nouns.count_rows(tx.connection, LedgerRow, had)
        if count or item["name"] in {"cpu", "mem"}:
            raise InUseError(
                f"slot-type {item['name']} is in use: {count} devices have it; make it"
                " not enabled instead"
            )
        await nouns.delete_item(tx, noun, item["id"])


class RegistryRules(Rules):
    """Credentials are sealed before they are stored."""

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Show whether there is a password; never what it is."""
        del connection
        return [
            nouns.present(
                noun, item, password=None, has_password=item["password"] is not None
            )
            for item in items
        ]

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Check the address."""
        await super().check(platform, tx, principal, old, columns)
        kind = columns.get("type", old["type"] if old is not None else None)
        if old is None and kind == RegistryType.LOCAL:
            raise InvalidRequestError(
                "type: the registry 'local' is there already; its images are those of"
                " the configuration"
            )
        for repository in columns.get("repositories", ()):
            check_repository(repository)
        if columns.get("project"):
            check_repository(columns["project"])
        if not columns.get("url") or kind == RegistryType.LOCAL:
            return
        host = _check_address(columns["url"])
        is_kept = "password" not in columns and old is not None and old["password"]
        if old is not None and is_kept and host_of(old["url"]) != host:
            raise InvalidRequestError(
                "url: this is another host; give its password with it, or an empty one:"
                " the stored one is for the host of before"
            )

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it with its password sealed."""
        return await super().create(
            platform, tx, noun, item_id, _seal(platform, columns)
        )

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Seal a new password."""
        changes = await super().change(platform, tx, noun, old, changes)
        return _seal(platform, changes)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove it when no image of it is on offer."""
        del platform, principal
        if item["type"] == RegistryType.LOCAL:
            raise InUseError("the registry 'local' cannot be removed")
        there = ImageRow.registry_id == item["id"]
        await refuse_used(
            tx,
            noun,
            item,
            (("images", ImageRow, there & (ImageRow.status == "ALIVE")),),
        )
        await purges.purge_images(tx, item["id"])
        await nouns.delete_item(tx, noun, item["id"])


def _check_policies(columns: Columns) -> None:
    """Refuse what no installed package can work a queue off by."""
    strategy = (columns.get("scheduler_opts") or {}).get("agent_selection_strategy")
    try:
        if "scheduler" in columns:
            find_sequencer(columns["scheduler"])
        if strategy is not None:
            find_placement(strategy)
    except UnknownPolicyError as error:
        field = "scheduler" if "sequencer" in str(error) else "scheduler_opts"
        raise InvalidRequestError(f"{field}: {error}") from None


def _seal_token(platform: Platform, columns: Columns) -> Columns:
    token = columns.get("wsproxy_api_token")
    if not token:
        return columns
    sealed = platform.vault.seal(token).decode("ascii")
    return {**columns, "wsproxy_api_token": sealed}


def _check_address(url: str) -> str:
    """Return the registry's host; what is no bare address of one is refused."""
    try:
        read_address(url)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"url: {error.message}") from None
    return host_of(url)


def _seal(platform: Platform, columns: Columns) -> Columns:
    if "password" not in columns:
        return columns
    password = columns["password"]
    sealed = platform.vault.seal(password) if password else None
    return {**columns, "password": sealed}


class ImageRules(Rules):
    """An administrator's minimum of cpu and mem is never below the image's own."""

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Show aliases, owners, and how many nodes hold it."""
        told = await describe_images(connection, [item["id"] for item in items])
        return [
            nouns.present(
                noun,
                item,
                label_minimum=_text(item["label_minimum"]),
                preferred=_text(item["preferred"]),
                **told[item["id"]],
            )
            for item in items
        ]

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse a minimum that is above the maximum."""
        await super().check(platform, tx, principal, old, columns)
        now = {**(old or {}), **columns}
        for slot, least in now["minimum"].items():
            most = now["maximum"].get(slot)
            if least is None:
                raise InvalidRequestError(f"minimum: {slot} needs an amount")
            if most is not None and least > most:
                raise InvalidRequestError(
                    f"minimum: {slot} {describe_amount(slot, least)} is above the"
                    f" maximum of {describe_amount(slot, most)}"
                )

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Keep cpu and mem at what the image itself needs, at least."""
        del platform, tx, noun
        if "minimum" not in changes:
            return changes
        minimum = dict(changes["minimum"])
        for slot in ("cpu", "mem"):
            own = old["label_minimum"].get(slot, 0)
            if own:
                minimum[slot] = max(own, minimum.get(slot, 0))
        return {**changes, "minimum": minimum}


def _text(slots: dict[str, int | None]) -> dict[str, str]:
    return {s: "inf" if a is None else format_amount(s, a) for s, a in slots.items()}
