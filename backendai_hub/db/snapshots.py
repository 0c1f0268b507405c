"""A few queries make everything the scheduler decides from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import AgentStatus, join_labels
from backendai_hub.core.operators import StopKind, tell_drain
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import OCCUPYING
from backendai_hub.db.agents import (
    AgentRecord,
    Balance,
    DeviceRecord,
    list_agents,
    list_balances,
    list_devices,
)
from backendai_hub.db.naming import is_named
from backendai_hub.db.stops import list_stops
from backendai_hub.db.tables import (
    AllocationRow,
    ContainerRow,
    DeviceRow,
    SessionRow,
)
from backendai_hub.scheduling.snapshot import DeviceState, NodeState


async def load_nodes(
    connection: AsyncConnection,
    ids: Collection[str] | None = None,
    *,
    whose: bool = True,
) -> tuple[NodeState, ...]:
    """Read the nodes that have reported (these, or all), with what is free on them.

    ``whose`` tells also whose those are that serve one user at a time.
    """
    found = [
        agent
        for agent in await list_agents(connection, ids)
        if agent.first_seen_at is not None and agent.status != AgentStatus.TERMINATED
    ]
    if not found:
        return ()
    listed = await list_devices(connection, ids)
    owners_of_rows = None if ids is None else [device.id for device in listed]
    balances = await list_balances(connection, [ScopeKind.DEVICE], owners_of_rows)
    devices: dict[str, list[DeviceRecord]] = {}
    for device in listed:
        devices.setdefault(device.agent_id, []).append(device)
    single = [a.id for a in found if not _serves_many(a)] if whose else []
    owners = await _sole_owners(connection, single) if single else {}
    drains = await _load_drains(connection, found)
    sliced = await load_sliced(connection, [d.id for d in listed if d.slices])
    counts = await count_containers(
        connection, [a.id for a in found if a.max_containers is not None]
    )
    return tuple(
        msgspec.structs.replace(
            _node(
                agent,
                _devices(devices.get(agent.id, []), balances, sliced),
                owner=owners.get(agent.id),
                drain=drains.get(agent.id, ""),
            ),
            containers=counts.get(agent.id, 0),
        )
        for agent in found
    )


async def load_sliced(
    connection: AsyncConnection, devices: Collection[str]
) -> dict[str, int]:
    """Return which slices of these devices are in use, as bits."""
    if not devices:
        return {}
    rows = await connection.execute(
        select(AllocationRow.device_id, AllocationRow.slices).where(
            is_named(AllocationRow.device_id, devices),
            AllocationRow.freed_at.is_(None),
            AllocationRow.slices > 0,
        )
    )
    sliced: dict[str, int] = {}
    for device, slices in rows:
        sliced[device] = sliced.get(device, 0) | slices
    return sliced


async def count_containers(
    connection: AsyncConnection, nodes: Collection[str]
) -> dict[str, int]:
    """Return how many containers these nodes have that hold something there."""
    if not nodes:
        return {}
    rows = await connection.execute(
        select(DeviceRow.agent_id, func.count(AllocationRow.container_id.distinct()))
        .join(AllocationRow, AllocationRow.device_id == DeviceRow.id)
        .where(DeviceRow.agent_id.in_(nodes), AllocationRow.freed_at.is_(None))
        .group_by(DeviceRow.agent_id)
    )
    return {node: int(count) for node, count in rows}


async def _load_drains(
    connection: AsyncConnection, found: Sequence[AgentRecord]
) -> dict[str, str]:
    """Say why nodes take nothing new, where somebody has said so."""
    shut = {agent.id for agent in found if not agent.schedulable}
    stops = await list_stops(connection, shut) if shut else []
    return {s.target_id: tell_drain(s) for s in stops if s.kind is StopKind.NODE}


async def find_nodes(connection: AsyncConnection, devices: Collection[str]) -> set[str]:
    """Return the ids of the nodes that these devices are in."""
    query = select(DeviceRow.id, DeviceRow.agent_id)
    rows = await connection.execute(query.where(is_named(DeviceRow.id, devices)))
    return {node for device, node in rows if device in devices}


def _serves_many(agent: AgentRecord) -> bool:
    return bool(agent.isolation.get("multi_user", True))


async def _sole_owners(
    connection: AsyncConnection, agent_ids: Sequence[str]
) -> dict[str, str]:
    rows = await connection.execute(
        select(ContainerRow.agent_id, SessionRow.owner_id)
        .join(ContainerRow, ContainerRow.session_id == SessionRow.id)
        .where(
            SessionRow.status.in_([str(s) for s in OCCUPYING]),
            ContainerRow.agent_id.in_(agent_ids),
            ~ContainerRow.former,
        )
        .distinct()
    )
    return dict(rows)


def _node(
    agent: AgentRecord,
    devices: tuple[DeviceState, ...],
    *,
    owner: str | None,
    drain: str,
) -> NodeState:
    closed = ""
    if agent.status is not AgentStatus.ALIVE:
        closed = "does not answer at the moment"
    elif not agent.schedulable:
        closed = drain or "takes nothing new"
    return NodeState(
        id=agent.id,
        name=agent.name,
        group=agent.resource_group_id or "",
        runtime=str(agent.isolation.get("runtime", "")),
        architecture=agent.architecture,
        protocol=agent.protocol,
        devices=devices,
        closed=closed,
        sole_owner=owner,
        multi_user=_serves_many(agent),
        labels=join_labels(agent.labels, agent.set_labels),
        max_containers=agent.max_containers,
    )


def _devices(
    records: Sequence[DeviceRecord],
    balances: Mapping[tuple[ScopeKind, str], Mapping[str, Balance]],
    sliced: Mapping[str, int],
) -> tuple[DeviceState, ...]:
    """Describe the devices of one node that are there."""
    ids = {record.name: record.id for record in records if record.present}
    return tuple(
        msgspec.structs.replace(
            _device(record, balances.get((ScopeKind.DEVICE, record.id), {})),
            links={ids[n]: far for n, far in record.links.items() if n in ids},
            sliced=sliced.get(record.id, 0),
        )
        for record in records
        if record.present
    )


def _device(record: DeviceRecord, slots: Mapping[str, Balance]) -> DeviceState:
    # What a device offered once, or is not cut into any more, it does not have; but
    # who holds it gives it back once.
    total = {slot: b.quota or 0 for slot, b in slots.items() if b.quota or b.used}
    return DeviceState(
        id=record.id,
        name=record.name,
        total=total,
        free={s: max(0, most - slots[s].used) for s, most in total.items()},
        whole=record.whole,
        numa=record.numa,
        kind=record.kind,
        model=record.model,
        profiles={s: tuple(places) for s, places in record.profiles.items()},
    )
