"""What single people were given in virtual folders."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import (
    delete,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.vfolders import (
    FolderPermission,
)
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    InvitationRow,
)


async def find_grant(
    connection: AsyncConnection, folder_id: str, user_id: str
) -> FolderPermission | None:
    """Return what one person was given in a folder, if they were."""
    found = await connection.scalar(
        select(FolderGrantRow.permission).where(
            FolderGrantRow.folder_id == folder_id, FolderGrantRow.user_id == user_id
        )
    )
    return None if found is None else FolderPermission(found)


async def load_grants_of(
    connection: AsyncConnection, user_id: str, folder_ids: Collection[str]
) -> dict[str, FolderPermission]:
    """Return what one person was given in each of these folders."""
    rows = await connection.execute(
        select(FolderGrantRow.folder_id, FolderGrantRow.permission).where(
            FolderGrantRow.user_id == user_id,
            FolderGrantRow.folder_id.in_(sorted(folder_ids)),
        )
    )
    return {str(key): FolderPermission(value) for key, value in rows}


async def put_grant(
    tx: Transaction,
    folder_id: str,
    user_id: str,
    permission: FolderPermission,
    *,
    kind: str,
) -> None:
    """Give somebody something in a folder, in place of what they were given before."""
    await drop_grant(tx, folder_id, user_id)
    await tx.execute(
        insert_ignore(tx, FolderGrantRow).values(
            folder_id=folder_id,
            user_id=user_id,
            permission=str(permission),
            kind=kind,
            created_at=tx.now,
        )
    )


async def drop_grant(tx: Transaction, folder_id: str, user_id: str) -> bool:
    """Take back what somebody was given; tell whether there was anything."""
    gone = await tx.execute(
        delete(FolderGrantRow).where(
            FolderGrantRow.folder_id == folder_id, FolderGrantRow.user_id == user_id
        )
    )
    return bool(gone.rowcount)


async def move_folders(tx: Transaction, user_id: str, domain_id: str) -> None:
    """Take somebody's folders along into another domain, where nobody shares them."""
    owned = select(FolderRow.id).where(FolderRow.user_id == user_id)
    for row in (FolderGrantRow, InvitationRow):
        await tx.execute(delete(row).where(row.folder_id.in_(owned)))
    await tx.execute(delete(FolderGrantRow).where(FolderGrantRow.user_id == user_id))
    await tx.execute(delete(InvitationRow).where(InvitationRow.invitee_id == user_id))
    await tx.execute(
        update(FolderRow)
        .where(FolderRow.user_id == user_id)
        .values(domain_id=domain_id, revision=FolderRow.revision + 1)
    )
