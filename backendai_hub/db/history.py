"""Reading events, and the accounts of the shipped authenticator."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.events import EventKind
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_rights import is_given_to, is_in_store_of
from backendai_hub.db.tables import (
    AccountRow,
    EventRow,
    FolderRow,
    ProjectRow,
    SessionRow,
    UserRow,
)

TOLD_TO_GUESTS: Final = (
    EventKind.FOLDER_CHANGED,
    EventKind.FOLDER_TRASHED,
    EventKind.FOLDER_RESTORED,
)
"""That these have happened is told to who may look into the folder; whom else it was
given to, and what its owner does with it, is not."""


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, with its number."""

    seq: int
    at: datetime
    kind: str
    text: str
    actor: str
    session_id: str | None
    owner_id: str | None
    agent_id: str | None
    status: str | None
    folder_id: str | None = None


class Listener(NamedTuple):
    """Somebody who is told what is theirs, and of folders of others open to them."""

    owners: Collection[str]
    """Themselves and their projects: what becomes of a project's folders is theirs."""
    user_id: str
    domain_id: str

    def hear(self, event: EventRecord) -> EventRecord:
        """Return *event* as it is told: of what is another's, not in which words."""
        is_theirs = event.owner_id in self.owners
        return event if is_theirs else msgspec.structs.replace(event, text="")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One password account's row."""

    name: str
    password_hash: str
    must_change: bool
    failures: int
    locked_until: datetime | None
    changed_at: datetime
    logins_ended_at: datetime | None = None

    @property
    def valid_from(self) -> datetime:
        """From when on logins count: those from before it are over."""
        return max(self.changed_at, self.logins_ended_at or self.changed_at)


async def list_events(
    connection: AsyncConnection,
    *,
    after: int,
    listener: Listener | None = None,
    domain_id: str | None = None,
    session_id: str | None = None,
    limit: int = 200,
) -> list[EventRecord]:
    """List the facts after *after*: one listener's, a domain's, a session's, or all."""
    query = select(EventRow.__table__).where(EventRow.seq > after)
    if listener is not None:
        query = query.where(_is_for(listener))
    if domain_id is not None:
        # What happened to a session stays in its domain when its owner moves away.
        there = select(SessionRow.id).where(SessionRow.domain_id == domain_id)
        people = select(UserRow.id).where(UserRow.domain_id == domain_id)
        projects = select(ProjectRow.id).where(ProjectRow.domain_id == domain_id)
        theirs = EventRow.owner_id.in_(people) | EventRow.owner_id.in_(projects)
        query = query.where(
            EventRow.session_id.in_(there) | (EventRow.session_id.is_(None) & theirs)
        )
    if session_id is not None:
        query = query.where(EventRow.session_id == session_id)
    rows = await connection.execute(query.order_by(EventRow.seq).limit(limit))
    return [EventRecord(**r._mapping) for r in rows]


def _is_for(listener: Listener) -> ColumnElement[bool]:
    is_open = is_given_to(listener.user_id) | is_in_store_of(listener.domain_id)
    return or_(
        EventRow.owner_id.in_(sorted(listener.owners)),
        and_(
            EventRow.kind.in_(TOLD_TO_GUESTS),
            EventRow.folder_id.in_(select(FolderRow.id).where(is_open)),
        ),
    )


async def last_event(connection: AsyncConnection) -> int:
    """Return the number of the newest fact."""
    return int(await connection.scalar(select(func.max(EventRow.seq))) or 0)


async def get_account(
    connection: AsyncConnection, name: str, *, lock: bool = False
) -> Account | None:
    """Read one account."""
    query = select(AccountRow.__table__).where(AccountRow.name == name)
    row = (await connection.execute(query.with_for_update() if lock else query)).first()
    return None if row is None else Account(**row._mapping)


async def insert_account(tx: Transaction, account: Account) -> None:
    """Store a new account."""
    await tx.execute(insert(AccountRow).values(msgspec.structs.asdict(account)))


async def change_account(tx: Transaction, name: str, **values: Any) -> None:
    """Change fields of one account."""
    await tx.execute(update(AccountRow).where(AccountRow.name == name).values(**values))
