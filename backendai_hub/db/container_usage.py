"""What containers have used in all; written down when they are measured no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.live_usage import UsageTotals
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import ContainerRow, ContainerUsageRow

_TOTALS = UsageTotals.__struct_fields__


async def load_totals(
    connection: AsyncConnection,
    *,
    session_id: str | None = None,
    containers: Collection[str] = (),
) -> dict[str, UsageTotals]:
    """Load what was written down of containers: of a session's, or of some by id."""
    query = select(ContainerUsageRow.__table__)
    if session_id is None:
        query = query.where(ContainerUsageRow.container_id.in_(containers))
    else:
        query = query.where(ContainerUsageRow.session_id == session_id)
    rows = await connection.execute(query)
    return {
        row.container_id: UsageTotals(**{name: getattr(row, name) for name in _TOTALS})
        for row in rows
    }


async def write_totals(tx: Transaction, totals: Mapping[str, UsageTotals]) -> None:
    """Write down what containers have used; of those that were purged, nothing."""
    rows = await tx.connection.execute(
        select(ContainerRow.id, ContainerRow.session_id).where(
            ContainerRow.id.in_(list(totals))
        )
    )
    there = {row.id: row.session_id for row in rows}
    if not there:
        return
    ids = list(there)
    await tx.execute(
        delete(ContainerUsageRow).where(ContainerUsageRow.container_id.in_(ids))
    )
    await tx.execute(
        insert(ContainerUsageRow),
        [
            {
                "container_id": container_id,
                "session_id": session_id,
                "measured_at": tx.now,
                **msgspec.structs.asdict(totals[container_id]),
            }
            for container_id, session_id in there.items()
        ],
    )
