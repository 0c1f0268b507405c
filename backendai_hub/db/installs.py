"""Reading and writing which node has been asked to hold or to remove which image."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import and_, delete, insert, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import ImageState, ImageWish
from backendai_hub.db.agents import bump_generation
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import ImageInstallRow, ImageRow, RegistryRow

_INSTALLS = ImageInstallRow.__table__

# A removal that is done is over: the image may come back for a session.
_OVER = and_(
    ImageInstallRow.wanted == str(ImageWish.ABSENT),
    ImageInstallRow.state == str(ImageState.DONE),
)


class InstallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One image on one node: what is wanted of it, and how far that is."""

    id: str
    image_id: str
    agent_id: str
    reference: str
    wanted: ImageWish
    state: ImageState
    progress: float | None
    reason: str
    requested_by: str
    requested_at: datetime
    changed_at: datetime


class RegistryLogin(msgspec.Struct, frozen=True, kw_only=True):
    """How one image's registry is logged in to; the password is sealed."""

    image_id: str
    url: str
    username: str
    password: bytes | None


def _record(row: Any) -> InstallRecord:
    values = dict(row._mapping)
    values["wanted"] = ImageWish(values["wanted"])
    values["state"] = ImageState(values["state"])
    return InstallRecord(**values)


async def list_installs(
    connection: AsyncConnection,
    *,
    agent_id: str | None = None,
    image_id: str | None = None,
    is_open: bool = False,
) -> list[InstallRecord]:
    """List what nodes were asked; *is_open* leaves out removals that are over."""
    query = select(_INSTALLS).order_by(
        ImageInstallRow.agent_id, ImageInstallRow.reference
    )
    if agent_id is not None:
        query = query.where(ImageInstallRow.agent_id == agent_id)
    if image_id is not None:
        query = query.where(ImageInstallRow.image_id == image_id)
    if is_open:
        query = query.where(not_(_OVER))
    return [_record(row) for row in await connection.execute(query)]


async def list_logins(
    connection: AsyncConnection, image_ids: Collection[str]
) -> dict[str, RegistryLogin]:
    """Find how to log in to the registries of these images, where that is needed."""
    if not image_ids:
        return {}
    rows = await connection.execute(
        select(
            ImageRow.id.label("image_id"),
            RegistryRow.url,
            RegistryRow.username,
            RegistryRow.password,
        )
        .join(RegistryRow, RegistryRow.id == ImageRow.registry_id)
        .where(ImageRow.id.in_(image_ids), RegistryRow.password.is_not(None))
    )
    return {row.image_id: RegistryLogin(**row._mapping) for row in rows}


async def put_installs(tx: Transaction, asked: Sequence[InstallRecord]) -> int:
    """Ask nodes for images, in place of what was asked of the same before.

    The same wish again changes nothing, unless it is a removal that was over or
    something that has failed. Returns how many nodes have something new to do; their
    assignments get a new version.
    """
    changed = set()
    for record in sorted(asked, key=lambda r: (r.agent_id, r.reference)):
        if await _put_install(tx, record):
            changed.add(record.agent_id)
    for agent_id in sorted(changed):
        await bump_generation(tx, agent_id)
    return len(changed)


async def _put_install(tx: Transaction, record: InstallRecord) -> bool:
    row = (
        await tx.connection.execute(
            select(_INSTALLS)
            .where(
                ImageInstallRow.agent_id == record.agent_id,
                ImageInstallRow.reference == record.reference,
            )
            .with_for_update()
        )
    ).first()
    values = msgspec.structs.asdict(record)
    if row is None:
        await tx.execute(insert(ImageInstallRow).values(**values))
        return True
    before = _record(row)
    same = before.wanted is record.wanted
    over = same and before.wanted is ImageWish.ABSENT and before.state == "done"
    if same and not over and before.state != ImageState.FAILED:
        return False
    del values["id"]
    await tx.execute(
        update(ImageInstallRow).where(ImageInstallRow.id == before.id).values(**values)
    )
    return True


async def change_install(tx: Transaction, before: InstallRecord, **values: Any) -> bool:
    """Change how far an install is, unless something else is asked meanwhile."""
    changed = await tx.execute(
        update(ImageInstallRow)
        .where(
            ImageInstallRow.id == before.id,
            ImageInstallRow.wanted == str(before.wanted),
            ImageInstallRow.requested_at == before.requested_at,
        )
        .values(changed_at=tx.now, **values)
    )
    return bool(changed.rowcount)


async def forget_installs(tx: Transaction, ids: Sequence[str]) -> int:
    """Ask no more for these; what nodes hold, stays. Returns how many there were."""
    gone = await tx.execute(
        delete(ImageInstallRow)
        .where(ImageInstallRow.id.in_(ids))
        .returning(ImageInstallRow.agent_id)
    )
    agents = [agent_id for (agent_id,) in gone]
    for agent_id in sorted(set(agents)):
        await bump_generation(tx, agent_id)
    return len(agents)
