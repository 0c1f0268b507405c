"""What is shown of images beside their own rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.references import shorten
from backendai_hub.db.tables import (
    AgentRow,
    ImageAliasRow,
    ImageRow,
    RegistryRow,
    UserRow,
)


def is_held(
    runtime: str,
    held: Collection[str],
    references: Mapping[str, str],
    digests: Collection[str],
) -> bool:
    """Tell whether a node with this runtime, which lists what it has, has an image.

    Engines leave the usual registry's name away, and call an image by its digests:
    that of its configuration, or of its manifest, whichever tag it was fetched by.
    """
    reference = references.get(runtime)
    if reference is None:
        return False
    return (
        reference in held
        or shorten(reference) in held
        or any(digest and digest in held for digest in digests)
    )


async def describe_images(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """For each image: its registry, owner, aliases, and how many nodes hold it."""
    rows = await connection.execute(
        select(
            ImageRow.id,
            ImageRow.references,
            ImageRow.digest,
            ImageRow.config_digest,
            RegistryRow.name.label("registry"),
            UserRow.name.label("owner"),
        )
        .join(RegistryRow, RegistryRow.id == ImageRow.registry_id)
        .outerjoin(UserRow, UserRow.id == ImageRow.owner_id)
        .where(ImageRow.id.in_(ids))
    )
    nodes = [
        (str(isolation.get("runtime", "")), frozenset(held))
        for isolation, held in await connection.execute(
            select(AgentRow.isolation, AgentRow.images).where(
                AgentRow.status == "ALIVE"
            )
        )
    ]
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
            "installed": sum(
                is_held(runtime, held, row.references, (row.digest, row.config_digest))
                for runtime, held in nodes
            ),
        }
        for row in rows
    }
