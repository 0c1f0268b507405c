"""A few queries make everything the scheduler decides from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.sessions import OCCUPYING
from backendai_hub.db.agents import (
    AgentRecord,
    Balance,
    DeviceRecord,
    list_agents,
    list_balances,
    list_devices,
)
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.tables import DomainRow, ProjectRow, SessionRow, UserRow
from backendai_hub.scheduling.snapshot import DeviceState, NodeState

_SCOPES = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER)


async def load_nodes(connection: AsyncConnection) -> tuple[NodeState, ...]:
    """Read every node that has reported, with what is free on its devices."""
    balances = await list_balances(connection, [ScopeKind.DEVICE])
    devices: dict[str, list[DeviceRecord]] = {}
    for device in await list_devices(connection):
        devices.setdefault(device.agent_id, []).append(device)
    owners = await _sole_owners(connection)
    return tuple(
        _node(agent, devices.get(agent.id, []), balances, owners.get(agent.id))
        for agent in await list_agents(connection)
        if agent.first_seen_at is not None and agent.status != AgentStatus.TERMINATED
    )


async def _sole_owners(connection: AsyncConnection) -> dict[str, str]:
    rows = await connection.execute(
        select(SessionRow.agent_id, SessionRow.owner_id)
        .where(SessionRow.status.in_([str(s) for s in OCCUPYING]))
        .distinct()
    )
    return {agent: owner for agent, owner in rows if agent is not None}


def _node(
    agent: AgentRecord,
    devices: Sequence[DeviceRecord],
    balances: Mapping[tuple[ScopeKind, str], Mapping[str, Balance]],
    owner: str | None,
) -> NodeState:
    closed = ""
    if agent.status is not AgentStatus.ALIVE:
        closed = "does not answer at the moment"
    elif not agent.schedulable:
        closed = "takes nothing new"
    return NodeState(
        id=agent.id,
        name=agent.name,
        runtime=str(agent.isolation.get("runtime", "")),
        architecture=agent.architecture,
        devices=tuple(
            _device(d, balances.get((ScopeKind.DEVICE, d.id), {}))
            for d in devices
            if d.present
        ),
        closed=closed,
        sole_owner=owner,
        multi_user=bool(agent.isolation.get("multi_user", True)),
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


async def load_scopes(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> dict[tuple[ScopeKind, str], QuotaScope]:
    """Read the limits and the use of every scope these sessions count in."""
    owners = {owner for record in records for _, owner in record.scopes}
    balances = await list_balances(connection, _SCOPES, owners)
    names = await _scope_names(connection, records)
    return {
        (kind, owner): QuotaScope(
            kind=kind,
            id=owner,
            name=names.get(owner, owner),
            limits={
                slot: balance.quota
                for slot, balance in balances.get((kind, owner), {}).items()
                if balance.quota is not None
            },
            used={
                slot: balance.used
                for slot, balance in balances.get((kind, owner), {}).items()
            },
        )
        for record in records
        for kind, owner in record.scopes
    }


async def _scope_names(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> dict[str, str]:
    names: dict[str, str] = {}
    for table, ids in (
        (DomainRow, {r.domain_id for r in records}),
        (ProjectRow, {r.project_id for r in records}),
        (UserRow, {r.owner_id for r in records}),
    ):
        rows = await connection.execute(
            select(table.id, table.name).where(table.id.in_(ids))
        )
        names.update((scope_id, name) for scope_id, name in rows)
    return names
