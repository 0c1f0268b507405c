"""Whose containers are, and what they have: looked up once for who measures them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.usage_keeper import Subject
from backendai_hub.db.tables import (
    AgentRow,
    AllocationRow,
    ContainerRow,
    DeviceRow,
    SessionRow,
)


async def load_subjects(
    connection: AsyncConnection, agent_id: str, ids: Collection[str]
) -> list[Subject]:
    """Load those of some containers that are to be on this node."""
    rows = await connection.execute(
        select(
            ContainerRow.id,
            ContainerRow.session_id,
            ContainerRow.agent_id,
            ContainerRow.host,
            ContainerRow.role,
            ContainerRow.idx,
            SessionRow.owner_id,
            SessionRow.domain_id,
            SessionRow.slots,
            AgentRow.name.label("node"),
        )
        .join(SessionRow, SessionRow.id == ContainerRow.session_id)
        .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
        .where(
            ContainerRow.id.in_(ids),
            ContainerRow.agent_id == agent_id,
            ContainerRow.gone_at.is_(None),
        )
    )
    devices = await _load_devices(connection, ids)
    return [_subject(row, devices.get(row.id, {})) for row in rows]


async def _load_devices(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, dict[tuple[str, int], str]]:
    """Load the models of what each container has of accelerators."""
    rows = await connection.execute(
        select(
            AllocationRow.container_id,
            DeviceRow.name,
            AllocationRow.slices,
            DeviceRow.model,
        )
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(
            AllocationRow.container_id.in_(ids),
            AllocationRow.freed_at.is_(None),
            DeviceRow.kind != "host",
        )
    )
    found: dict[str, dict[tuple[str, int], str]] = {}
    for container_id, name, slices, model in rows:
        found.setdefault(container_id, {})[name, slices] = model
    return found


def _subject(row: Any, devices: Mapping[tuple[str, int], str]) -> Subject:
    cpu = row.slots.get("cpu")
    return Subject(
        id=row.id,
        session_id=row.session_id,
        agent_id=row.agent_id,
        owner_id=row.owner_id,
        domain_id=row.domain_id,
        node=row.node,
        host=row.host,
        rank=0 if row.role == "main" else row.idx,
        cpu_limit=None if cpu is None else cpu / 1000,
        memory_limit=row.slots.get("mem"),
        devices=devices,
    )
