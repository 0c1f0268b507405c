"""Reading and writing the containers of sessions, and what these hold of devices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.clusters import MAIN_HOST
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AllocationRow, ContainerRow, DeviceRow


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One container row."""

    id: str
    session_id: str
    agent_id: str
    desired: str
    image: str
    generation: int
    created_at: datetime
    gone_at: datetime | None
    former: bool = False
    role: str = "main"
    idx: int = 1
    host: str = MAIN_HOST
    state: str = "scheduled"
    reason: str = ""
    exit_code: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more, as far as anybody knows."""
        return self.gone_at is not None or self.state in {"exited", "gone", "stranded"}

    @property
    def has_left(self) -> bool:
        """Whether it can never be seen running again."""
        return self.gone_at is not None or self.state in {"gone", "stranded"}


_CONTAINERS = ContainerRow.__table__


async def insert_containers(
    tx: Transaction, records: Sequence[ContainerRecord]
) -> None:
    """Store new containers."""
    await tx.execute(insert(ContainerRow), [msgspec.structs.asdict(r) for r in records])


async def list_containers(
    connection: AsyncConnection,
    *,
    agent_id: str | None = None,
    session_id: str | None = None,
    ids: Sequence[str] | None = None,
) -> list[ContainerRecord]:
    """List containers their nodes have not reported gone (by id: those too)."""
    query = select(_CONTAINERS).order_by(ContainerRow.created_at, ContainerRow.id)
    if ids is None:
        query = query.where(ContainerRow.gone_at.is_(None))
    else:
        query = query.where(ContainerRow.id.in_(ids))
    if agent_id is not None:
        query = query.where(ContainerRow.agent_id == agent_id)
    if session_id is not None:
        query = query.where(ContainerRow.session_id == session_id)
    rows = await connection.execute(query)
    return [ContainerRecord(**r._mapping) for r in rows]


async def list_members(
    connection: AsyncConnection, session_id: str
) -> list[ContainerRecord]:
    """List the containers of a session's present attempt, the main one first."""
    rows = await connection.execute(
        select(_CONTAINERS)
        .where(ContainerRow.session_id == session_id, ~ContainerRow.former)
        .order_by(ContainerRow.role, ContainerRow.idx)
    )
    return [ContainerRecord(**r._mapping) for r in rows]


async def note_state(
    tx: Transaction,
    container_id: str,
    state: str,
    *,
    reason: str = "",
    exit_code: int | None = None,
) -> None:
    """Note what a container's node says of it; its session is locked."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id == container_id)
        .values(state=state, reason=reason, exit_code=exit_code)
    )


async def list_wanted_on(connection: AsyncConnection, session_id: str) -> list[str]:
    """List the nodes that are asked to run containers of a session, by id."""
    rows = await connection.scalars(
        select(ContainerRow.agent_id)
        .where(ContainerRow.session_id == session_id, ContainerRow.desired == "running")
        .distinct()
        .order_by(ContainerRow.agent_id)
    )
    return list(rows)


async def want_absent(
    tx: Transaction, session_id: str, agent_id: str, generation: int
) -> None:
    """Ask for a session's containers on one node to be removed."""
    await tx.execute(
        update(ContainerRow)
        .where(
            ContainerRow.session_id == session_id,
            ContainerRow.agent_id == agent_id,
            ContainerRow.desired == "running",
        )
        .values(desired="absent", generation=generation)
    )


async def reopen_container(tx: Transaction, container_id: str, generation: int) -> None:
    """Ask again for the removal of a container that has turned up again."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id == container_id)
        .values(desired="absent", generation=generation, gone_at=None)
    )


async def mark_gone(tx: Transaction, ids: Sequence[str]) -> None:
    """Note that these containers have left no trace on their node."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id.in_(ids), ContainerRow.gone_at.is_(None))
        .values(gone_at=tx.now, state="gone")
    )


async def list_shares(
    connection: AsyncConnection, ids: Sequence[str]
) -> list[tuple[str, DeviceShare]]:
    """List what each of these containers has now, by the names of devices."""
    rows = await connection.execute(
        select(
            AllocationRow.container_id,
            DeviceRow.name,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.slices,
        )
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(AllocationRow.container_id.in_(ids), AllocationRow.freed_at.is_(None))
        .order_by(DeviceRow.name, AllocationRow.slot, AllocationRow.slices)
    )
    return [
        (container, DeviceShare(device=device, slot=slot, amount=n, slices=slices))
        for container, device, slot, n, slices in rows
    ]
