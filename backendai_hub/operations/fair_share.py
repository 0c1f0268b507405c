"""Who stands how in a resource group: what they weigh, are guaranteed and may have.

Administrators of a domain see and set what is in their domain; how domains stand to
each other is a matter of superadmins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.shares import (
    ChangedShare,
    ShareChange,
    ShareEntry,
    SharesRequest,
    ShareTable,
    UsageHistory,
    UsedDay,
)
from backendai_hub.core.access import Action, Principal, Reach, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ForbiddenError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.fair_share import MOST_DAYS, find_factor, read_weight
from backendai_hub.core.nouns import Noun, noun_of
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    SlotType,
    describe_amount,
    format_amount,
    parse_slots,
    slot_type,
)
from backendai_hub.db import nouns, shares, usage
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.shares import Scope, ShareRecord
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.db.tables import DomainRow, ProjectRow, UserRow
from backendai_hub.operations.guaranteed_sums import (
    refuse_excess,
    tell_shortage,
    warn,
)
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.shares import find_standings
from backendai_hub.scheduling.snapshot import NodeState

_GROUP, _DOMAIN = noun_of("resource-group"), noun_of("domain")
_PROJECT, _USER = noun_of("project"), noun_of("user")
_ROWS: Final = {"domain": DomainRow, "project": ProjectRow, "user": UserRow}
_KINDS: Final = ("domain", "project", "user")
_HOUR: Final = 3600.0


class SharesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Of which domain to show the projects, or of which project in it the users."""

    domain: str | None = None
    project: str | None = None


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose use to show, and of how many days."""

    domain: str | None = None
    project: str | None = None
    user: str | None = None
    days: int = 30


# --- reading -------------------------------------------------------------------------


async def show_shares(
    platform: Platform, principal: Principal, reference: str, query: SharesQuery
) -> ShareTable:
    """Show domains, the projects of one, or the users of one of these."""
    today = platform.database.clock().date()
    async with platform.database.read() as connection:
        group = await find_visible(connection, principal, _GROUP, reference)
        parents = await _find_scope(
            connection, principal, (query.domain, query.project, None)
        )
        above = tuple(item["id"] for item in parents)
        (rules,) = await shares.list_rules(connection, [group["id"]])
        nodes = await load_nodes(connection, whose=False)
        capacity = find_capacity(nodes, group["id"])
        used = await usage.load_history(connection, group["id"], today, rules.spec)
        state = await shares.load_share_state(connection, rules, capacity, used)
        settings = await shares.list_shares(connection, group["id"])
        waiting = await shares.count_waiting(connection, group["id"])
        found = {path for path in state.history if len(path) == len(above) + 1}
        found |= {s[: len(above) + 1] for s in (*state.live, *settings, *waiting)}
        ids = {p[-1] for p in found if p[:-1] == above and p[-1]}
        ids |= await _list_below(connection, group["id"], above)
        if not above and reach(principal, Action.READ_SHARES) is not Reach.ALL:
            ids &= {principal.domain_id}
        kind = _KINDS[len(above)]
        names = await shares.name_all(connection, _ROWS[kind], ids)
    standings = find_standings(state, [(*above, i) for i in names])
    entries = []
    for path, standing in standings.items():
        record = settings.get(_scope(path), ShareRecord())
        entries.append(
            ShareEntry(
                kind=kind,
                id=path[-1],
                name=names[path[-1]],
                weight=standing.weight,
                weight_is_default=record.weight is None,
                held=ResourceSlots(standing.held).to_text(),
                live_share=standing.live,
                dominant_slot=standing.dominant,
                history_share=standing.history,
                share=standing.share,
                factor=find_factor(standing.history, standing.weight),
                waiting=sum(n for s, n in waiting.items() if s[: len(path)] == path),
                guaranteed=ResourceSlots(record.guaranteed).to_text(),
                maximum={s: format_amount(s, n) for s, n in record.maximum.items()},
            )
        )
    return ShareTable(
        resource_group=group["name"],
        scheduler=rules.scheduler,
        fair_share_spec=rules.spec,
        capacity=ResourceSlots(capacity).to_text(),
        domain=parents[0]["name"] if parents else None,
        project=parents[1]["name"] if len(parents) > 1 else None,
        entries=sorted(entries, key=lambda entry: (entry.share, entry.name)),
        warnings=tell_shortage(
            [settings.get(_scope(path), ShareRecord()) for path in standings],
            capacity,
            [item["name"] for item in parents],
        ),
    )


def find_capacity(nodes: Collection[NodeState], group_id: str) -> dict[str, int]:
    """Sum what the nodes of a group have, whether they answer just now or not.

    So that nobody's turn changes because a node is away for a moment.
    """
    sums: dict[str, int] = {}
    for node in nodes:
        for device in node.devices if node.group == group_id else ():
            for slot, amount in device.total.items():
                sums[slot] = sums.get(slot, 0) + amount
    return sums


async def _list_below(
    connection: AsyncConnection, group_id: str, above: tuple[str, ...]
) -> set[str]:
    """List who could use a group, whether they have or not."""
    if not above:
        return await shares.list_domains_of(connection, group_id)
    if len(above) == 1:
        return await shares.list_projects_of(connection, above[0])
    return await shares.list_members_of(connection, above[1])


async def show_usage(
    platform: Platform, principal: Principal, reference: str, query: UsageQuery
) -> UsageHistory:
    """Show what has been used, day by day; days without any use are left out."""
    if not 1 <= query.days <= MOST_DAYS:
        raise InvalidRequestError(
            f"days: {query.days} is not between 1 and {MOST_DAYS}"
        )
    first = platform.database.clock().date() - timedelta(days=query.days - 1)
    async with platform.database.read() as connection:
        group = await find_visible(connection, principal, _GROUP, reference)
        scope = await _find_scope(
            connection, principal, (query.domain, query.project, query.user)
        )
        ids: list[str | None] = [item["id"] for item in scope]
        if not scope and reach(principal, Action.READ_SHARES) is not Reach.ALL:
            ids = [principal.domain_id]
        domain, project, user, *_ = [*ids, None, None, None]
        days = await usage.load_days(
            connection, group["id"], first, (domain, project, user)
        )
    names = [item["name"] for item in scope] + [None] * 3
    return UsageHistory(
        resource_group=group["name"],
        domain=names[0],
        project=names[1],
        user=names[2],
        days=[_used(day, slots) for day, slots in days.items()],
    )


def _used(day: date, slots: Mapping[str, float]) -> UsedDay:
    return UsedDay(
        day=day.isoformat(),
        hours={
            slot: seconds
            / _HOUR
            / ((1 << 30) if slot_type(slot) is SlotType.BYTES else MILLI)
            for slot, seconds in sorted(slots.items())
        },
    )


# --- changing ------------------------------------------------------------------------


async def change_shares(
    platform: Platform, principal: Principal, reference: str, body: SharesRequest
) -> list[ChangedShare]:
    """Set weights, guarantees, maxima; all of them, or nothing if anything is wrong."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        group = await find_visible(tx.connection, principal, _GROUP, reference)
        (rules,) = await shares.list_rules(tx.connection, [group["id"]])
        settings = await shares.list_shares(tx.connection, group["id"])
        stood = dict(settings)
        found = []
        for number, change in enumerate(body.changes):
            where = f"changes[{number}]"
            items = await _find_changed(tx, principal, where, change)
            scope = _scope(tuple(item["id"] for item in items))
            before = settings.get(scope, ShareRecord())
            record = settings[scope] = _change(where, before, change)
            await shares.put_share(tx, group["id"], scope, record)
            shown = _show_change(items, record, rules.spec.default_weight)
            if record != before:
                old = _show_change(items, before, rules.spec.default_weight)
                tx.audit(_act(group, items, old, shown))
            found.append((items, scope, shown))
        await refuse_excess(tx.connection, stood, settings)
        nodes = await load_nodes(tx.connection, whose=False)
        capacity = find_capacity(nodes, group["id"])
        tx.wake("scheduler")
    return [
        msgspec.structs.replace(
            shown,
            warnings=warn(settings, scope, capacity, [item["name"] for item in items]),
        )
        for items, scope, shown in found
    ]


async def _find_changed(
    tx: Transaction, principal: Principal, where: str, change: ShareChange
) -> list[Item]:
    try:
        items = await _find_scope(
            tx.connection, principal, (change.domain, change.project, change.user)
        )
    except (NotFoundError, MalformedRequestError) as error:
        raise InvalidRequestError(f"{where}: {error.message}") from None
    if not items:
        raise InvalidRequestError(f"{where}.domain: say which")
    if len(items) == 1 and reach(principal, Action.CHANGE_SHARES) is not Reach.ALL:
        raise ForbiddenError(
            f"{where}: what a domain weighs beside others, superadmins decide; you may"
            " change its projects and users"
        )
    return items


def _change(where: str, before: ShareRecord, change: ShareChange) -> ShareRecord:
    weight = before.weight
    if change.weight is not msgspec.UNSET:
        weight = (
            None
            if change.weight is None
            else read_weight(f"{where}.weight", change.weight)
        )
    guaranteed = ResourceSlots(
        _read_amounts(f"{where}.guaranteed", change.guaranteed, before.guaranteed)
    )
    maximum = _read_amounts(f"{where}.maximum", change.maximum, before.maximum)
    for slot, most in maximum.items():
        if guaranteed[slot] > most:
            due = describe_amount(slot, guaranteed[slot])
            raise InvalidRequestError(
                f"{where}: {slot}: {due} would be guaranteed and at most"
                f" {describe_amount(slot, most)} allowed; raise the maximum, or"
                " guarantee less"
            )
    return ShareRecord(weight=weight, guaranteed=dict(guaranteed), maximum=maximum)


def _read_amounts(
    where: str,
    given: Mapping[str, str | int | float] | msgspec.UnsetType | None,
    before: Mapping[str, int],
) -> Mapping[str, int]:
    """Read amounts, those of zero too: that is a maximum, and guarantees nothing."""
    if isinstance(given, msgspec.UnsetType):
        return before
    try:
        found = parse_slots(given or {})
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{where}: {error.message}") from None
    return {slot: found[slot] for slot in given or {}}


def _show_change(
    items: list[Item], record: ShareRecord, default_weight: float
) -> ChangedShare:
    names = [item["name"] for item in items] + [None, None]
    return ChangedShare(
        domain=names[0],
        project=names[1],
        user=names[2],
        weight=default_weight if record.weight is None else record.weight,
        weight_is_default=record.weight is None,
        guaranteed=ResourceSlots(record.guaranteed).to_text(),
        maximum={s: format_amount(s, n) for s, n in record.maximum.items()},
    )


def _act(group: Item, items: list[Item], old: ChangedShare, new: ChangedShare) -> Act:
    def told(shown: ChangedShare) -> dict[str, Any]:
        return {
            "resource_group": group["name"],
            "weight": None if shown.weight_is_default else shown.weight,
            "guaranteed": shown.guaranteed,
            "maximum": shown.maximum,
        }

    return Act(
        action=Action.CHANGE_SHARES,
        object_kind=_KINDS[len(items) - 1],
        object_id=items[-1]["id"],
        object_name=items[-1]["name"],
        domain_id=items[0]["id"],
        before=told(old),
        after=told(new),
    )


# --- whose ---------------------------------------------------------------------------


async def _find_scope(
    connection: AsyncConnection,
    principal: Principal,
    names: tuple[str | None, str | None, str | None],
) -> list[Item]:
    """Find domain, project and user as far as they are named, each in the last.

    What the caller does not see is not found.
    """
    domain_name, project_name, user_name = names
    if (project_name and not domain_name) or (user_name and not project_name):
        raise MalformedRequestError(
            "name the domain of a project, and the project of a user, as well"
        )
    found: list[Item] = []
    if domain_name:
        found.append(await find_visible(connection, principal, _DOMAIN, domain_name))
    if project_name:
        found.append(await _find_in(connection, _PROJECT, project_name, found[0]))
    if user_name:
        found.append(await _find_in(connection, _USER, user_name, found[0]))
    return found


async def _find_in(
    connection: AsyncConnection, noun: Noun, reference: str, domain: Item
) -> Item:
    item = None
    if "\0" not in reference:
        item = await nouns.find_item(
            connection, noun, reference, domain_id=domain["id"]
        )
    if item is None or item["domain_id"] != domain["id"]:
        raise NotFoundError(
            f"there is no {noun.name} {reference[:64]!r} in {domain['name']}"
        )
    return item


def _scope(path: tuple[str, ...]) -> Scope:
    domain, project, user, *_ = (*path, "", "", "")
    return domain, project, user
