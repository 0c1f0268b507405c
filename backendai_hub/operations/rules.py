"""What a noun may demand beyond its fields; nouns with rules of their own say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import Principal, Target
from backendai_hub.core.errors import InUseError, InvalidRequestError
from backendai_hub.core.fields import Slots, fields_of
from backendai_hub.core.names import suggest
from backendai_hub.core.nouns import Noun
from backendai_hub.db import nouns
from backendai_hub.db.audit import list_changes
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.operations.platform import Platform

Columns = dict[str, Any]


class Rules:
    """The rules of a noun that has none of its own, and the hooks of those that do.

    All hooks run inside the transaction of the change.
    """

    def __init__(self, noun: Noun) -> None:
        self.noun = noun

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Make what the API shows of *items*."""
        del connection
        return [nouns.present(noun, item) for item in items]

    async def personalise(
        self,
        platform: Platform,
        connection: AsyncConnection,
        principal: Principal,
        shown: list[Any],
    ) -> list[Any]:
        """Add what depends on who looks, and on how the site is set up."""
        del platform, connection, principal
        return shown

    async def settle(
        self, platform: Platform, principal: Principal, noun: Noun, shown: Any
    ) -> Any:
        """Do what has to follow a creation once it is stored; return what is shown."""
        del platform, principal, noun
        return shown

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Fill in what a new item leaves to the platform."""
        del platform, tx, principal
        return columns

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """Tell whose a new item would be, and in which domain."""
        del columns, principal
        return Target(item_id)

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse values that do not go together; *columns* are new or changed."""
        del platform, principal
        await self.check_slots(tx, columns)
        if (
            old is not None
            and old.get("is_default")
            and columns.get("is_default", True) is False
        ):
            raise InvalidRequestError(
                f"is_default: make another {self.noun.name} the default instead; there"
                " is always one"
            )

    async def check_slots(self, tx: Transaction, columns: Columns) -> None:
        """Refuse slots that nothing here has, with a hint."""
        known: Mapping[str, str] | None = None
        for name, declared in fields_of(self.noun.shown).items():
            if not isinstance(declared.kind, Slots) or not columns.get(name):
                continue
            if known is None:
                known = await nouns.list_slot_types(tx.connection, enabled=False)
            for slot in columns[name]:
                if slot not in known:
                    raise InvalidRequestError(
                        f"{name}: there is no resource {slot!r}{suggest(slot, known)};"
                        f" there are {', '.join(known)}"
                    )

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store a new item; return fields that are shown this once."""
        del platform
        if columns.get("is_default"):
            await nouns.clear_default(tx, noun)
        await nouns.insert_item(tx, noun, item_id, columns)
        return {}

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Do what a change brings with it; return the columns to write."""
        del platform, old
        if changes.get("is_default"):
            await nouns.clear_default(tx, noun)
        return changes

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Remove an item; raises :class:`InUseError` while something needs it."""
        del platform, principal
        refuse_default(noun, item)
        await nouns.delete_item(tx, noun, item["id"])

    async def purge_also(
        self, platform: Platform, tx: Transaction, item: Item, thing: str
    ) -> None:
        """Remove a thing of the noun's ``purge_also`` before the item itself."""
        raise NotImplementedError(f"{self.noun.name}: {thing}")

    async def tell_changes(
        self, connection: AsyncConnection, item: Item, revision: int
    ) -> str:
        """Say who has changed what since *revision*."""
        told = await list_changes(connection, item["id"], revision)
        return "".join(
            f"; {change.actor} changed {', '.join(change.fields)} at {change.at}"
            for change in told
        )


def refuse_default(noun: Noun, item: Item) -> None:
    """Refuse to remove what is the default."""
    if item.get("is_default"):
        raise InUseError(
            f"{item['name']} is the default {noun.name}; make another one the default"
            " first"
        )


async def refuse_used(
    tx: Transaction,
    noun: Noun,
    item: Item,
    uses: Sequence[tuple[str, Any, Any]],
) -> None:
    """Refuse to remove what others refer to: (word, table, condition) each."""
    parts, users = [], {}
    for word, row, condition in uses:
        count = await nouns.count_rows(tx.connection, row, condition)
        if not count:
            continue
        names = await nouns.list_names(tx.connection, row, condition)
        users[word] = names
        more = f" and {count - len(names)} more" if count > len(names) else ""
        parts.append(f"{count} {word} ({', '.join(names)}{more})")
    if parts:
        raise InUseError(
            f"{noun.name} {item['name']} is in use: {'; '.join(parts)}", users=users
        )
