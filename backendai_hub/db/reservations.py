"""Reading reservations: for the scheduler, and to see what is kept already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.operators import Held
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.db.tables import AgentRow, DeviceRow, LedgerRow, ReservationRow
from backendai_hub.scheduling.snapshot import ReservedWindow


class ReservedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that may be reserved, and what it has in all."""

    id: str
    agent_id: str
    slots: Mapping[str, int]


_WINDOWS: Final = (
    select(
        ReservationRow.name,
        ReservationRow.begins_at,
        ReservationRow.ends_at,
        ReservationRow.held,
    )
    .where(ReservationRow.ends_at > bindparam("now"))
    .order_by(ReservationRow.begins_at, ReservationRow.name)
)


async def load_windows(
    connection: AsyncConnection, now: datetime
) -> tuple[ReservedWindow, ...]:
    """Read the reservations that have not ended, as the scheduler sees them."""
    rows = await connection.execute(_WINDOWS, {"now": now})
    return tuple(_window(*row) for row in rows)


def _window(
    name: str, begins: datetime, ends: datetime, held: Mapping[str, Any]
) -> ReservedWindow:
    kept = msgspec.convert(held, Held)
    return ReservedWindow(
        name=f"the reservation {name}",
        starts=int(begins.timestamp()),
        ends=int(ends.timestamp()),
        nodes=kept.nodes,
        devices=kept.devices,
        open_to=tuple((ScopeKind(kind), scope) for kind, scope in kept.open_to),
    )


async def list_overlapping(
    connection: AsyncConnection, begins: datetime, ends: datetime
) -> list[tuple[str, str, Held]]:
    """List (id, name, what it holds) of those that share time with this one."""
    rows = await connection.execute(
        select(ReservationRow.id, ReservationRow.name, ReservationRow.held)
        .where(ReservationRow.begins_at < ends, ReservationRow.ends_at > begins)
        .order_by(ReservationRow.begins_at, ReservationRow.name)
    )
    return [(row.id, row.name, msgspec.convert(row.held, Held)) for row in rows]


async def list_group_nodes(
    connection: AsyncConnection, group_id: str
) -> list[tuple[str, str]]:
    """List (id, name) of the nodes of a group."""
    rows = await connection.execute(
        select(AgentRow.id, AgentRow.name)
        .where(AgentRow.resource_group_id == group_id, AgentRow.status != "TERMINATED")
        .order_by(AgentRow.name, AgentRow.id)
    )
    return [(row.id, row.name) for row in rows]


async def list_group_devices(
    connection: AsyncConnection, nodes: Sequence[str]
) -> list[ReservedDevice]:
    """List the devices of nodes, node after node, with what each has in all."""
    rows = await connection.execute(
        select(DeviceRow.id, DeviceRow.agent_id, LedgerRow.slot, LedgerRow.quota)
        .join(
            LedgerRow,
            (LedgerRow.owner_id == DeviceRow.id)
            & (LedgerRow.kind == str(ScopeKind.DEVICE)),
        )
        .where(DeviceRow.agent_id.in_(nodes), DeviceRow.present)
        .order_by(DeviceRow.name, DeviceRow.id)
    )
    slots: dict[tuple[str, str], dict[str, int]] = {}
    for device, agent, slot, quota in rows:
        slots.setdefault((agent, device), {})[slot] = quota or 0
    rank = {node: place for place, node in enumerate(nodes)}
    return [
        ReservedDevice(id=device, agent_id=agent, slots=has)
        for (agent, device), has in sorted(
            slots.items(), key=lambda item: rank[item[0][0]]
        )
    ]
