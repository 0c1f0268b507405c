"""Calling a session something else."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import TERMINAL, Session, check_session_name
from backendai_hub.db import session_views, sessions
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import get_allowed


async def rename_session(
    platform: Platform, principal: Principal, session_id: str, name: str
) -> Session:
    """Give a session that has not ended another name; where it answers stays.

    No two of somebody's sessions that have not ended are called the same.
    """
    check_session_name(name)
    try:
        async with platform.database.transaction() as tx:
            record = await get_allowed(
                tx.connection, principal, session_id, Action.RENAME_SESSION, lock=True
            )
            if record.status in TERMINAL:
                raise ConflictError(
                    f"session {record.name} has ended; it keeps its name",
                    status_now=str(record.status),
                )
            if name != record.name:
                await _rename(tx, principal, record, name)
    except IntegrityError:
        raise ConflictError(
            f"another live session of the same owner is named {name!r}; stop it first"
            " or choose another name"
        ) from None
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, session_id)


async def _rename(
    tx: Transaction, principal: Principal, record: SessionRecord, name: str
) -> None:
    await sessions.change_session(tx, record, name=name)
    tx.audit(
        Act(
            action=Action.RENAME_SESSION,
            object_kind="session",
            object_id=record.id,
            object_name=record.name,
            domain_id=record.domain_id,
            owner_id=record.owner_id,
            before={"name": record.name},
            after={"name": name},
        )
    )
    tx.record(
        Event(
            kind=EventKind.SESSION_RENAMED,
            text=f"named {name} instead of {record.name} by {principal.name}",
            actor=principal.name,
            session_id=record.id,
            owner_id=record.owner_id,
            status=record.status,
        )
    )
