"""The rules of reservations: what contradicts itself, or others, is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError, InvalidRequestError
from backendai_hub.core.names import fold, suggest
from backendai_hub.core.nouns import Noun, noun_of
from backendai_hub.core.operators import Held, check_span
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import describe_amount
from backendai_hub.db import reservations
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item, find_item
from backendai_hub.db.reservations import ReservedDevice
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules

_SCOPES = (
    ("domains", "domain", ScopeKind.DOMAIN),
    ("projects", "project", ScopeKind.PROJECT),
    ("users", "user", ScopeKind.USER),
)


class ReservationRules(Rules):
    """Nothing is reserved twice for the same time, nor what is not there."""

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Find the nodes or devices, and for whom; refuse what contradicts itself."""
        del platform
        check_span(columns["begins_at"], columns["ends_at"], tx.now)
        await self.check_slots(tx, columns)
        open_to = await _find_scopes(tx, principal, columns)
        nodes = await _find_nodes(tx, columns)
        taken = await reservations.list_overlapping(
            tx.connection, columns["begins_at"], columns["ends_at"]
        )
        devices: Sequence[str] = ()
        if columns["amounts"]:
            there = await reservations.list_group_devices(tx.connection, list(nodes))
            chosen = _choose_devices(columns["amounts"], there, taken)
            used = {device.agent_id for device in chosen}
            nodes = {node: name for node, name in nodes.items() if node in used}
            devices = [device.id for device in chosen]
        held = Held(nodes=tuple(nodes), devices=tuple(devices), open_to=open_to)
        _refuse_overlap(held, taken)
        named = sorted(nodes.values()) if columns["nodes"] else []
        return {**columns, "nodes": named, "held": msgspec.to_builtins(held)}

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store it, and have the scheduler heed it."""
        tx.wake("scheduler")
        return await super().create(platform, tx, noun, item_id, columns)

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Let it end at another time, unless others have that time."""
        if "ends_at" in changes:
            begins, ends = old["begins_at"], changes["ends_at"]
            check_span(begins, ends, tx.now)
            taken = await reservations.list_overlapping(tx.connection, begins, ends)
            others = [entry for entry in taken if entry[0] != old["id"]]
            _refuse_overlap(msgspec.convert(old["held"], Held), others)
        return await super().change(platform, tx, noun, old, changes)

    async def purge(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        noun: Noun,
        item: Item,
    ) -> None:
        """Give back what it keeps."""
        tx.wake("scheduler")
        await super().purge(platform, tx, principal, noun, item)


async def _find_scopes(
    tx: Transaction, principal: Principal, columns: Columns
) -> tuple[tuple[str, str], ...]:
    """Return whom a class is for; maintenance is for nobody."""
    found = []
    for field, name, kind in _SCOPES:
        for word in columns[field]:
            item = await find_item(
                tx.connection, noun_of(name), word, domain_id=principal.domain_id
            )
            if item is None:
                raise InvalidRequestError(f"{field}: there is no {name} {word[:64]!r}")
            found.append((str(kind), str(item["id"])))
    if columns["kind"] == "maintenance" and found:
        raise InvalidRequestError(
            "kind: maintenance is for nobody; leave out domains, projects and users, or"
            " make it a class"
        )
    if columns["kind"] == "class" and not found:
        raise InvalidRequestError(
            "kind: a class is for somebody; name domains, projects or users, or make it"
            " maintenance"
        )
    return tuple(found)


async def _find_nodes(tx: Transaction, columns: Columns) -> dict[str, str]:
    """Return the nodes that are named, or all of the group, by id."""
    if bool(columns["nodes"]) == bool(columns["amounts"]):
        raise InvalidRequestError(
            "nodes: give either nodes or amounts, not both"
            if columns["nodes"]
            else "nodes: say what is reserved: nodes, or amounts"
        )
    there = await reservations.list_group_nodes(
        tx.connection, columns["resource_group_id"]
    )
    if not columns["nodes"]:
        return dict(there)
    return dict(_find_node(word, there) for word in columns["nodes"])


def _find_node(word: str, there: Sequence[tuple[str, str]]) -> tuple[str, str]:
    wanted = fold(word)
    named = [(node, name) for node, name in there if wanted in {node, fold(name)}]
    if not named:
        hint = suggest(word, [name for _, name in there])
        raise InvalidRequestError(
            f"nodes: there is no node {word[:64]!r} in this resource group{hint}"
        )
    if len(named) > 1:
        ids = ", ".join(node for node, _ in named)
        raise InvalidRequestError(
            f"nodes: several nodes are named {word[:64]!r}; say which by id: {ids}"
        )
    return named[0]


def _choose_devices(
    amounts: Mapping[str, int],
    there: Sequence[ReservedDevice],
    taken: Sequence[tuple[str, str, Held]],
) -> list[ReservedDevice]:
    """Choose whole devices that come to *amounts*, of those not reserved meanwhile."""
    free = [d for d in there if not any(_is_in(d, held) for _, _, held in taken)]
    chosen: list[ReservedDevice] = []
    for slot, wanted in amounts.items():
        has = sum(device.slots.get(slot, 0) for device in there)
        if wanted > has:
            raise InvalidRequestError(
                f"amounts: {slot} {describe_amount(slot, wanted)} is more than the"
                f" {describe_amount(slot, has)} that the resource group has"
            )
        got = sum(device.slots.get(slot, 0) for device in chosen)
        for device in free:
            if got >= wanted:
                break
            if device.slots.get(slot, 0) and device not in chosen:
                chosen.append(device)
                got += device.slots[slot]
        if got < wanted:
            names = ", ".join(name for _, name, _ in taken)
            raise ConflictError(
                f"amounts: {slot} {describe_amount(slot, wanted)} is more than the"
                f" {describe_amount(slot, got)} that other reservations leave at that"
                f" time: {names}"
            )
    return chosen


def _is_in(device: ReservedDevice, held: Held) -> bool:
    if held.devices:
        return device.id in held.devices
    return device.agent_id in held.nodes


def _refuse_overlap(held: Held, taken: Sequence[tuple[str, str, Held]]) -> None:
    for _, name, other in taken:
        if held.touches(other):
            raise ConflictError(
                f"the reservation {name} has some of this at that time; choose another"
                " time or other nodes, or remove it"
            )
