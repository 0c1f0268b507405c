"""What runs on the nodes, what it holds, and when it ends at the latest."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import (
    OCCUPYING,
    QUEUED,
    STARTING,
    SessionStatus,
    SessionType,
)
from backendai_hub.db.tables import (
    AllocationRow,
    ContainerRow,
    DeviceRow,
    DomainRow,
    ProjectRow,
    ResourceGroupRow,
    SessionRow,
    UserRow,
)
from backendai_hub.scheduling.snapshot import RunningSession, ScopeKey, Share


async def load_running(connection: AsyncConnection) -> tuple[RunningSession, ...]:
    """Read every session that holds devices, in the order of their ids."""
    rows = await connection.execute(
        select(
            SessionRow.id,
            SessionRow.owner_id,
            SessionRow.domain_id,
            SessionRow.project_id,
            SessionRow.keypair_id,
            SessionRow.resource_group_id,
            SessionRow.type,
            SessionRow.status,
            SessionRow.scheduled_at,
            SessionRow.started_at,
            SessionRow.deadline_at,
            SessionRow.batch_timeout,
            SessionRow.job_priority,
            SessionRow.is_preemptible,
        ).where(SessionRow.status.in_([str(status) for status in OCCUPYING]))
    )
    held = await _load_holdings(connection)
    found = [_running(row, held.get(row.id, ())) for row in rows]
    return tuple(sorted(found, key=lambda session: session.id))


async def _load_holdings(
    connection: AsyncConnection,
) -> dict[str, tuple[tuple[str, tuple[Share, ...]], ...]]:
    """Return what is held: session, and for each container its node and shares."""
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
        # Devices that have left their node give nothing to anybody else.
        .where(AllocationRow.freed_at.is_(None), DeviceRow.present)
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


def _running(
    row: Any, held: tuple[tuple[str, tuple[Share, ...]], ...]
) -> RunningSession:
    ends = end_of(row)
    since: datetime | None = row.started_at or row.scheduled_at
    scopes: tuple[ScopeKey, ...] = (
        (ScopeKind.DOMAIN, row.domain_id),
        (ScopeKind.PROJECT, row.project_id),
        (ScopeKind.USER, row.owner_id),
    )
    if row.keypair_id is not None:
        scopes = (*scopes, (ScopeKind.KEYPAIR, row.keypair_id))
    return RunningSession(
        id=row.id,
        owner_id=row.owner_id,
        scopes=scopes,
        holdings=held,
        group=row.resource_group_id or "",
        started=0 if since is None else int(since.timestamp()),
        ends=None if ends is None else int(ends.timestamp()),
        job_priority=row.job_priority,
        preemptible=row.is_preemptible,
        leaving=row.status != SessionStatus.RUNNING and row.status not in STARTING,
        system=row.type == SessionType.SYSTEM,
    )


_ENDING = {
    SessionStatus.RUNNING,
    SessionStatus.PREEMPTED,
    SessionStatus.TERMINATING,
}


def end_of(row: Any) -> datetime | None:
    """Tell when it ends at the latest: a session that only starts has no such end.

    *row* has its status, deadline, start, and the time limit of its command.
    """
    if row.status not in _ENDING:
        return None
    ends: list[datetime] = [] if row.deadline_at is None else [row.deadline_at]
    if row.batch_timeout is not None and row.started_at is not None:
        ends.append(row.started_at + timedelta(seconds=row.batch_timeout))
    return min(ends, default=None)


async def load_names(connection: AsyncConnection) -> dict[str, str]:
    """Return the names of domains, projects and resource groups, by id.

    And of those people who have something that waits or runs.
    """
    names: dict[str, str] = {}
    for table in (DomainRow, ProjectRow, ResourceGroupRow):
        rows = await connection.execute(select(table.id, table.name))
        names.update({row.id: row.name for row in rows})
    live = select(SessionRow.owner_id).where(
        SessionRow.status.in_([str(s) for s in QUEUED | OCCUPYING])
    )
    rows = await connection.execute(
        select(UserRow.id, UserRow.name).where(UserRow.id.in_(live))
    )
    names.update({row.id: row.name for row in rows})
    return names
