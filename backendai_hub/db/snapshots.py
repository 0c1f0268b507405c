"""A few queries make everything the scheduler decides from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import AgentStatus
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
from backendai_hub.db.stops import list_stops
from backendai_hub.db.tables import DeviceRow, SessionRow
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
    return tuple(
        _node(
            agent,
            devices.get(agent.id, []),
            balances,
            owner=owners.get(agent.id),
            drain=drains.get(agent.id, ""),
        )
        for agent in found
    )


async def _load_drains(
    connection: AsyncConnection, found: Sequence[AgentRecord]
) -> dict[str, str]:
    """Say why nodes take nothing new, where somebody has said so."""
    shut = {agent.id for agent in found if not agent.schedulable}
    stops = await list_stops(connection, shut) if shut else []
    return {s.target_id: tell_drain(s) for s in stops if s.kind is StopKind.NODE}


async def find_nodes(connection: AsyncConnection, devices: Collection[str]) -> set[str]:
    """Return the ids of the nodes that these devices are in."""
    query = select(DeviceRow.agent_id).where(DeviceRow.id.in_(devices)).distinct()
    return set(await connection.scalars(query))


def _serves_many(agent: AgentRecord) -> bool:
    return bool(agent.isolation.get("multi_user", True))


async def _sole_owners(
    connection: AsyncConnection, agent_ids: Sequence[str]
) -> dict[str, str]:
    rows = await connection.execute(
        select(SessionRow.agent_id, SessionRow.owner_id)
        .where(
            SessionRow.status.in_([str(s) for s in OCCUPYING]),
            SessionRow.agent_id.in_(agent_ids),
        )
        .distinct()
    )
    return {agent: owner for agent, owner in rows if agent is not None}


def _node(
    agent: AgentRecord,
    devices: Sequence[DeviceRecord],
    balances: Mapping[tuple[ScopeKind, str], Mapping[str, Balance]],
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
        devices=tuple(
            _device(d, balances.get((ScopeKind.DEVICE, d.id), {}))
            for d in devices
            if d.present
        ),
        closed=closed,
        sole_owner=owner,
        multi_user=_serves_many(agent),
    )


def _device(record: DeviceRecord, slots: Mapping[str, Balance]) -> DeviceState:
    total = {slot: balance.quota or 0 for slot, balance in slots.items()}
    return DeviceState(
        id=record.id,
        name=record.name,
        total=total,
        free={s: max(0, total[s] - balance.used) for s, balance in slots.items()},
        whole=record.whole,
        numa=record.numa,
        kind=record.kind,
    )
