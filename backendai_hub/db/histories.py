"""What sessions have held, also of those that have ended by now."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.tables import (
    AllocationRow,
    ContainerRow,
    DeviceRow,
    ImageRow,
    ProjectRow,
    UserRow,
)
from backendai_hub.scheduling.snapshot import Share

Holdings = tuple[tuple[str, tuple[Share, ...]], ...]


async def load_held(
    connection: AsyncConnection, sessions: Collection[str]
) -> dict[str, Holdings]:
    """Return what these have held in their last attempt: nodes and shares."""
    rows = await connection.execute(
        select(
            AllocationRow.session_id,
            AllocationRow.container_id,
            ContainerRow.agent_id,
            AllocationRow.device_id,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.slices,
        )
        .join(ContainerRow, ContainerRow.id == AllocationRow.container_id)
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(
            AllocationRow.session_id.in_(sessions),
            ~ContainerRow.former,
            DeviceRow.present,
        )
        .order_by(AllocationRow.id)
    )
    held: dict[str, dict[tuple[str, str], list[Share]]] = {}
    for session_id, container, node, device, slot, amount, slices in rows:
        containers = held.setdefault(session_id, {})
        shares = containers.setdefault((container, node), [])
        shares.append(Share(device, slot, amount, slices))
    return {
        session_id: tuple((node, tuple(s)) for (_, node), s in containers.items())
        for session_id, containers in held.items()
    }


async def load_architectures(connection: AsyncConnection) -> dict[str, str]:
    """Return what processors images need, by their ids."""
    rows = await connection.execute(select(ImageRow.id, ImageRow.architecture))
    return {row.id: row.architecture for row in rows}


async def load_people(
    connection: AsyncConnection, users: Collection[str]
) -> dict[str, str]:
    """Return the names of these users, by their ids."""
    rows = await connection.execute(
        select(UserRow.id, UserRow.name).where(UserRow.id.in_(users))
    )
    return {row.id: row.name for row in rows}


async def load_projects(connection: AsyncConnection) -> tuple[tuple[str, str], ...]:
    """Return every project, by its id after that of its domain."""
    rows = await connection.execute(select(ProjectRow.domain_id, ProjectRow.id))
    return tuple((row.domain_id, row.id) for row in rows)
