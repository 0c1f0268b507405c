"""Writing and reading acts."""

from __future__ import annotations

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.sessions import format_time
from backendai_hub.db.tables import AuditRow


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed which fields of an object, and when."""

    actor: str
    fields: list[str]
    at: str


async def list_changes(
    connection: AsyncConnection, object_id: str, revision: int, limit: int = 5
) -> list[Change]:
    """List what was done to an object after *revision*, the newest first."""
    rows = await connection.execute(
        select(AuditRow.actor, AuditRow.at, AuditRow.after)
        .where(AuditRow.object_id == object_id, AuditRow.result == "success")
        .order_by(AuditRow.seq.desc())
        .limit(limit)
    )
    return [
        Change(
            actor=actor,
            fields=[name for name in after if name != "revision"],
            at=format_time(at) or "",
        )
        for actor, at, after in rows
        if after and int(after.get("revision", 0)) > revision
    ]
