"""Showing administrators the nodes: page by page, or one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.nodes import AgentPage, AgentQuery
from backendai_hub.core.agents import (
    Agent,
    AgentStatus,
    Drain,
    Isolation,
    join_labels,
)
from backendai_hub.core.cursors import read_cursor, write_cursor
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.names import fold
from backendai_hub.core.operators import Stop, StopKind
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.core.times import format_time
from backendai_hub.db import agents
from backendai_hub.db.agents import NEVER, AgentFilter, AgentRecord
from backendai_hub.db.groups import list_group_names
from backendai_hub.db.stops import Left, count_left, list_stopped
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE: Final = 200
_NOBODY: Final = Left(0, None, 0)


async def list_agents(platform: Platform, query: AgentQuery) -> AgentPage:
    """Return one page of the nodes."""
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    order = query.order.removeprefix("-")
    if order not in agents.SORTS:
        raise InvalidRequestError(
            f"order: {query.order[:32]!r} is not one of {', '.join(agents.SORTS)},"
            " with '-' before it for the other direction"
        )
    statuses = _read_statuses(query.status)
    after = None if query.after is None else _read_cursor(query.after, order)
    async with platform.database.read() as connection:
        groups = await list_group_names(connection)
        chosen = AgentFilter(
            groups=_find_groups(groups, query.resource_group),
            statuses=statuses,
            architectures=_split(query.architecture),
            runtimes=_split(query.runtime),
            schedulable=query.schedulable,
            search=(query.search or "").replace("\0", ""),
        )
        found = await agents.list_page(
            connection,
            chosen,
            limit=query.limit + 1,
            after=after,
            order=query.order,
        )
        page = found[: query.limit]
        items = await _show(platform, connection, page, groups)
    following = None
    if len(found) > query.limit:
        following = _write_cursor(page[-1], order, groups)
    return AgentPage(items=items, next=following)


async def read_agent(platform: Platform, reference: str) -> Agent:
    """Return one node, by its name or id."""
    async with platform.database.read() as connection:
        record = await find_named(connection, reference)
        groups = await list_group_names(connection)
        (shown,) = await _show(platform, connection, [record], groups)
    return shown


async def find_named(connection: AsyncConnection, reference: str) -> AgentRecord:
    """Find a node by its name or id."""
    wanted = fold(reference)
    named = [
        record
        for record in await agents.list_agents(connection)
        if wanted in {record.id, fold(record.name)}
    ]
    if not named:
        raise NotFoundError(f"there is no node {reference[:64]!r}")
    if len(named) > 1:
        ids = ", ".join(record.id for record in named)
        raise InvalidRequestError(
            f"several nodes are named {reference[:64]!r}; say which by id: {ids}"
        )
    return named[0]


def _split(words: str | None) -> list[str] | None:
    """Return the values of a filter; None where nobody has asked for any."""
    if words is None:
        return None
    return [word.replace("\0", "").strip() for word in words.split(",")]


def _read_statuses(words: str | None) -> list[AgentStatus] | None:
    found = _split(words)
    return None if found is None else [read_status(word) for word in found]


def read_status(word: str) -> AgentStatus:
    """Read the word for how a node is, in any case."""
    try:
        return AgentStatus(word.upper())
    except ValueError:
        raise InvalidRequestError(
            f"status: there is no {word[:32]!r}; use one of {', '.join(AgentStatus)}"
        ) from None


def _find_groups(groups: Mapping[str, str], words: str | None) -> list[str] | None:
    """Return the ids of the groups with these names."""
    names = _split(words)
    if names is None:
        return None
    folded = {fold(name) for name in names}
    return [i for i, name in groups.items() if fold(name) in folded]


def _write_cursor(record: AgentRecord, order: str, groups: Mapping[str, str]) -> str:
    if order == "resource_group":
        value = groups.get(record.resource_group_id or "", "")
    elif order == "last_seen_at":
        value = (record.last_seen_at or NEVER).isoformat()
    else:
        value = str(getattr(record, order))
    return write_cursor(order, value, record.id)


def _read_cursor(cursor: str, order: str) -> tuple[str | datetime, str]:
    refusal = MalformedRequestError(
        "after: not a cursor of this list in this order; leave it out for the first"
        " page"
    )
    kind, value, agent_id = read_cursor(cursor, tuple[str, str, str])
    if kind != order:
        raise refusal
    if order != "last_seen_at":
        return value, agent_id
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise refusal from None
    if moment.utcoffset() != timedelta(0):
        raise refusal
    return moment.astimezone(UTC), agent_id


async def _show(
    platform: Platform,
    connection: AsyncConnection,
    records: Sequence[AgentRecord],
    groups: Mapping[str, str],
) -> list[Agent]:
    """Show these nodes, with as many questions for many as for one."""
    ids = [record.id for record in records]
    capacity, used = await count_slots(connection, ids)
    drains = await list_stopped(connection, StopKind.NODE)
    left = await count_left(connection, ids)
    now = platform.database.clock().timestamp()
    return [
        Agent(
            id=r.id,
            name=r.name,
            status=r.status,
            schedulable=r.schedulable,
            architecture=r.architecture,
            version=r.version,
            capacity=capacity[r.id].to_text(),
            used=used[r.id].to_text(),
            isolation=msgspec.convert(r.isolation, Isolation)
            if r.isolation
            else Isolation(
                runtime="", tier="", limits="", network="", multi_user=False
            ),
            resource_group=groups.get(r.resource_group_id or ""),
            images=r.images,
            last_seen_at=format_time(r.last_seen_at),
            unknown_containers=r.unknown,
            labels=join_labels(r.labels, r.set_labels),
            max_containers=r.max_containers,
            drain=_show_drain(drains.get(r.id), left.get(r.id, _NOBODY)),
            usage=platform.usage.keeper.find_node(r.id, now),
            sessions=left.get(r.id, _NOBODY).sessions,
        )
        for r in records
    ]


async def count_slots(
    connection: AsyncConnection, ids: Collection[str]
) -> tuple[Mapping[str, ResourceSlots], Mapping[str, ResourceSlots]]:
    """Count what nodes have, and what of it is taken, by their ids."""
    devices = await agents.list_devices(connection, ids)
    balances = await agents.list_balances(
        connection, [ScopeKind.DEVICE], [device.id for device in devices]
    )
    capacity: defaultdict[str, ResourceSlots] = defaultdict(ResourceSlots)
    used: defaultdict[str, ResourceSlots] = defaultdict(ResourceSlots)
    for device in devices:
        slots = balances.get((ScopeKind.DEVICE, device.id), {})
        if device.present:
            capacity[device.agent_id] += ResourceSlots(
                {slot: balance.quota or 0 for slot, balance in slots.items()}
            )
        used[device.agent_id] += ResourceSlots(
            {slot: balance.used for slot, balance in slots.items()}
        )
    return capacity, used


def _show_drain(stop: Stop | None, left: Left) -> Drain | None:
    if stop is None:
        return None
    late = stop.due is not None and (
        left.endless > 0 or (left.last_end is not None and left.last_end > stop.due)
    )
    return Drain(
        reason=stop.reason,
        by=stop.actor,
        since=format_time(stop.since) or "",
        due=format_time(stop.due),
        sessions=left.sessions,
        last_end=format_time(left.last_end),
        endless=left.endless,
        late=late,
    )
