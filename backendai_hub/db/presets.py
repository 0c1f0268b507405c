"""Reading resource presets."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.tables import PresetRow


class PresetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One preset, in smallest units."""

    name: str
    resource_group_id: str | None
    resource_slots: dict[str, int]
    shared_memory: int


async def list_presets(
    connection: AsyncConnection, group_ids: Sequence[str]
) -> list[PresetRecord]:
    """List the presets for everybody and those of these groups, by name."""
    rows = await connection.execute(
        select(
            PresetRow.name,
            PresetRow.resource_group_id,
            PresetRow.resource_slots,
            PresetRow.shared_memory,
        )
        .where(
            or_(
                PresetRow.resource_group_id.is_(None),
                PresetRow.resource_group_id.in_(group_ids),
            )
        )
        .order_by(PresetRow.name_key)
    )
    return [PresetRecord(**r._mapping) for r in rows]
