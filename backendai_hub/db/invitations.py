"""Reading and writing invitations, and what people were given in folders."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.api.folders import Guest, Invitation
from backendai_hub.core.times import format_time
from backendai_hub.core.vfolders import FolderPermission, InvitationState
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    FolderGrantRow,
    FolderRow,
    InvitationRow,
    UserRow,
)

_INVITER, _INVITEE = aliased(UserRow, name="inviter"), aliased(UserRow, name="invitee")
_PENDING = str(InvitationState.PENDING)


def _select() -> Any:
    return (
        select(
            InvitationRow.__table__,
            FolderRow.name.label("folder"),
            FolderRow.host,
            _INVITER.name.label("inviter"),
            _INVITEE.name.label("invitee"),
        )
        .join(FolderRow, FolderRow.id == InvitationRow.folder_id)
        .join(_INVITER, _INVITER.id == InvitationRow.inviter_id)
        .join(_INVITEE, _INVITEE.id == InvitationRow.invitee_id)
    )


def _read(row: Any) -> Invitation:
    values = dict(row)
    values["permission"] = FolderPermission(values["permission"])
    values["state"] = InvitationState(values["state"])
    for name in ("created_at", "modified_at"):
        values[name] = format_time(values[name]) or ""
    return Invitation(**values)


async def insert_invitation(
    tx: Transaction,
    invitation_id: str,
    *,
    folder_id: str,
    inviter_id: str,
    invitee_id: str,
    permission: FolderPermission,
) -> None:
    """Store an invitation."""
    await tx.execute(
        insert(InvitationRow).values(
            id=invitation_id,
            folder_id=folder_id,
            inviter_id=inviter_id,
            invitee_id=invitee_id,
            permission=str(permission),
            created_at=tx.now,
            modified_at=tx.now,
        )
    )


async def find_invitation(
    connection: AsyncConnection, invitation_id: str
) -> Invitation | None:
    """Find one invitation."""
    query = _select().where(InvitationRow.id == invitation_id)
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _read(row)


async def list_invitations(
    connection: AsyncConnection,
    user_id: str,
    *,
    folder_id: str | None = None,
    state: str | None = _PENDING,
) -> list[Invitation]:
    """List invitations that somebody has got or made, the newest first."""
    row = InvitationRow
    query = _select().where(or_(row.invitee_id == user_id, row.inviter_id == user_id))
    if folder_id is not None:
        query = query.where(row.folder_id == folder_id)
    if state is not None:
        query = query.where(row.state == state)
    rows = await connection.execute(query.order_by(row.id.desc()).limit(1000))
    return [_read(found) for found in rows.mappings()]


async def is_pending(
    connection: AsyncConnection, folder_id: str, invitee_id: str
) -> bool:
    """Tell whether somebody has an invitation to a folder that is not answered."""
    query = select(func.count()).where(
        InvitationRow.folder_id == folder_id,
        InvitationRow.invitee_id == invitee_id,
        InvitationRow.state == _PENDING,
    )
    return bool(await connection.scalar(query))


async def change_invitation(tx: Transaction, invitation_id: str, **values: Any) -> bool:
    """Change an invitation that is not answered yet; tell whether it was not."""
    changed = await tx.execute(
        update(InvitationRow)
        .where(InvitationRow.id == invitation_id, InvitationRow.state == _PENDING)
        .values(modified_at=tx.now, **values)
    )
    return bool(changed.rowcount)


async def cancel_all(tx: Transaction, condition: Any) -> None:
    """Take back the invitations of *condition* that are not answered yet."""
    await tx.execute(
        update(InvitationRow)
        .where(condition, InvitationRow.state == _PENDING)
        .values(state=str(InvitationState.CANCELED), modified_at=tx.now)
    )


async def forget_folder(tx: Transaction, folder_id: str) -> None:
    """Remove everything about who may use a folder."""
    for row in (InvitationRow, FolderGrantRow):
        await tx.execute(delete(row).where(row.folder_id == folder_id))


async def list_guests(connection: AsyncConnection, folder_id: str) -> list[Guest]:
    """List whom a folder is something else for, by name."""
    rows = await connection.execute(
        select(
            UserRow.name.label("user"),
            FolderGrantRow.user_id,
            FolderGrantRow.permission,
            FolderGrantRow.kind,
            FolderGrantRow.created_at,
        )
        .join(UserRow, UserRow.id == FolderGrantRow.user_id)
        .where(FolderGrantRow.folder_id == folder_id)
        .order_by(UserRow.name_key)
    )
    return [
        Guest(
            user=row.user,
            user_id=row.user_id,
            permission=FolderPermission(row.permission),
            kind=row.kind,
            created_at=format_time(row.created_at) or "",
        )
        for row in rows
    ]
