"""What is shown of images beside their own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.tables import (
    AgentRow,
    ImageAliasRow,
    ImageRow,
    RegistryRow,
    UserRow,
)


async def describe_images(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """For each image: its registry, owner, aliases, and how many nodes hold it."""
    rows = await connection.execute(
        select(
            ImageRow.id,
            ImageRow.references,
            RegistryRow.name.label("registry"),
            UserRow.name.label("owner"),
        )
        .join(RegistryRow, RegistryRow.id == ImageRow.registry_id)
        .outerjoin(UserRow, UserRow.id == ImageRow.owner_id)
        .where(ImageRow.id.in_(ids))
    )
    held: dict[tuple[str, str], int] = {}
    nodes = await connection.execute(
        select(AgentRow.isolation, AgentRow.images).where(AgentRow.status == "ALIVE")
    )
    for isolation, references in nodes:
        for reference in set(references):
            key = (str(isolation.get("runtime", "")), reference)
            held[key] = held.get(key, 0) + 1
    aliases: dict[str, list[str]] = {}
    for image_id, alias in await connection.execute(
        select(ImageAliasRow.image_id, ImageAliasRow.alias)
        .where(ImageAliasRow.image_id.in_(ids))
        .order_by(ImageAliasRow.alias)
    ):
        aliases.setdefault(image_id, []).append(alias)
    return {
        row.id: {
            "registry": row.registry,
            "owner": row.owner,
            "aliases": aliases.get(row.id, []),
            "installed": sum(held.get(r, 0) for r in row.references.items()),
        }
        for row in rows
    }
