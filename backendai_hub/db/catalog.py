"""Writing down which images registries have, and reading what a rescan needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.names import fold
from backendai_hub.core.sessions import QUEUED, STARTING
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    AgentRow,
    ImageAliasRow,
    ImageInstallRow,
    ImageRow,
    RegistryRow,
    SessionRow,
    UserRow,
)

Columns = Mapping[str, Any]

_AT_ONCE: Final = 200
_NEEDING: Final = [str(s) for s in QUEUED | STARTING]


class OfferedImage(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an image as tells whether its registry still has it."""

    id: str
    name_key: str
    repository: str
    architecture: str


class GroupNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, as far as it matters for which images it can hold."""

    id: str
    name: str
    status: str
    architecture: str
    isolation: dict[str, Any]
    images: list[str]


# -- registries -------------------------------------------------------------------


async def find_registry(
    connection: AsyncConnection, registry_id: str
) -> Columns | None:
    """Read a registry with its sealed password."""
    query = select(RegistryRow.__table__).where(RegistryRow.id == registry_id)
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else dict(row)


async def note_rescan(tx: Transaction, registry_id: str) -> None:
    """Write down that a registry has been read."""
    await tx.execute(
        update(RegistryRow)
        .where(RegistryRow.id == registry_id)
        .values(rescanned_at=tx.now)
    )


async def list_offered(
    connection: AsyncConnection, registry_id: str
) -> list[OfferedImage]:
    """List the images of a registry that are on offer."""
    rows = await connection.execute(
        select(
            ImageRow.id, ImageRow.name_key, ImageRow.repository, ImageRow.architecture
        ).where(ImageRow.registry_id == registry_id, ImageRow.status == "ALIVE")
    )
    return [OfferedImage(**row._mapping) for row in rows]


# -- images -----------------------------------------------------------------------


async def lock_image(tx: Transaction, name: str, architecture: str) -> Columns | None:
    """Read the image of this name for this architecture, if it was ever known."""
    row = (
        (
            await tx.connection.execute(
                select(ImageRow.__table__)
                .where(
                    ImageRow.name_key == fold(name),
                    ImageRow.architecture == architecture,
                )
                .with_for_update()
            )
        )
        .mappings()
        .first()
    )
    return None if row is None else dict(row)


async def insert_image(tx: Transaction, image_id: str, values: Columns) -> None:
    """Store a new image."""
    await tx.execute(
        insert(ImageRow).values(
            id=image_id,
            name_key=fold(values["name"]),
            created_at=tx.now,
            modified_at=tx.now,
            **values,
        )
    )


async def change_image(tx: Transaction, image_id: str, values: Columns) -> None:
    """Change fields of an image."""
    await tx.execute(
        update(ImageRow)
        .where(ImageRow.id == image_id)
        .values(modified_at=tx.now, revision=ImageRow.revision + 1, **values)
    )


async def forget_images(tx: Transaction, ids: Sequence[str]) -> int:
    """Take images off offer; what runs goes on. Returns how many were on offer."""
    count = 0
    for first in range(0, len(ids), _AT_ONCE):
        chosen = ImageRow.id.in_(ids[first : first + _AT_ONCE])
        changed = await tx.execute(
            update(ImageRow)
            .where(chosen, ImageRow.status == "ALIVE")
            .values(
                status="DELETED",
                modified_at=tx.now,
                revision=ImageRow.revision + 1,
            )
        )
        count += changed.rowcount
    return count


async def list_same_name(
    connection: AsyncConnection, registry_id: str, name: str
) -> list[str]:
    """List the ids of all images of a registry with one name, on offer or not."""
    rows = await connection.execute(
        select(ImageRow.id).where(
            ImageRow.registry_id == registry_id, ImageRow.name_key == fold(name)
        )
    )
    return [image_id for (image_id,) in rows]


async def count_needing(connection: AsyncConnection, ids: Sequence[str]) -> int:
    """Count the sessions that still have to fetch one of these images."""
    query = select(func.count()).select_from(SessionRow)
    query = query.where(SessionRow.image_id.in_(ids), SessionRow.status.in_(_NEEDING))
    return int(await connection.scalar(query) or 0)


async def is_user(connection: AsyncConnection, user_id: str) -> bool:
    """Tell whether there is a user of this id."""
    query = select(UserRow.id).where(UserRow.id == user_id)
    return await connection.scalar(query) is not None


async def list_wishes(connection: AsyncConnection, ids: Sequence[str]) -> list[str]:
    """List the ids of what nodes were asked to hold of these images."""
    rows = await connection.execute(
        select(ImageInstallRow.id).where(
            and_(ImageInstallRow.image_id.in_(ids), ImageInstallRow.wanted == "present")
        )
    )
    return [install_id for (install_id,) in rows]


async def list_group_nodes(
    connection: AsyncConnection, group_id: str | None = None
) -> list[GroupNode]:
    """List the nodes of a resource group, or all of them, by name."""
    query = select(
        AgentRow.id,
        AgentRow.name,
        AgentRow.status,
        AgentRow.architecture,
        AgentRow.isolation,
        AgentRow.images,
    ).order_by(AgentRow.name, AgentRow.id)
    if group_id is not None:
        query = query.where(AgentRow.resource_group_id == group_id)
    return [GroupNode(**row._mapping) for row in await connection.execute(query)]


# -- aliases ----------------------------------------------------------------------


async def find_alias(connection: AsyncConnection, alias: str) -> Columns | None:
    """Read whose alias this is, and whether that image is on offer."""
    query = (
        select(ImageAliasRow.image_id, ImageRow.name, ImageRow.status)
        .join(ImageRow, ImageRow.id == ImageAliasRow.image_id)
        .where(ImageAliasRow.alias_key == fold(alias))
    )
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else dict(row)


async def count_aliases(connection: AsyncConnection, image_id: str) -> int:
    """Count an image's aliases."""
    query = select(func.count()).select_from(ImageAliasRow)
    return int(
        await connection.scalar(query.where(ImageAliasRow.image_id == image_id)) or 0
    )


async def is_image_name(connection: AsyncConnection, name: str) -> bool:
    """Tell whether some image, on offer or not, has this name."""
    query = select(ImageRow.id).where(ImageRow.name_key == fold(name)).limit(1)
    return await connection.scalar(query) is not None


async def add_alias(tx: Transaction, image_id: str, alias: str) -> None:
    """Give an image another name."""
    await tx.execute(
        insert(ImageAliasRow).values(
            alias=alias, alias_key=fold(alias), image_id=image_id
        )
    )


async def remove_alias(tx: Transaction, image_id: str, alias: str) -> bool:
    """Take a name from an image; tell whether it had it."""
    gone = await tx.execute(
        delete(ImageAliasRow).where(
            ImageAliasRow.image_id == image_id, ImageAliasRow.alias_key == fold(alias)
        )
    )
    return bool(gone.rowcount)
