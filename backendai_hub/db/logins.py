"""The places that people are logged in from. One that has expired is no place."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import KeypairRow, LoginRow, UserPolicyRow, UserRow

_TABLE = LoginRow.__table__


class OpenLogin(msgspec.Struct, frozen=True, kw_only=True):
    """One place: a browser's session, or the keypair of a command line."""

    id: str
    user_id: str
    kind: str
    place: str
    session_hash: str | None
    keypair_id: str | None
    created_at: datetime
    expires_at: datetime | None


async def lock_logins(tx: Transaction, user_id: str) -> int | None:
    """Let nobody else change a person's logins; return how many they may have."""
    query = select(UserRow.id).where(UserRow.id == user_id).with_for_update()
    await tx.execute(query)
    cap = (
        select(UserPolicyRow.max_concurrent_logins)
        .join(UserRow, UserRow.resource_policy_id == UserPolicyRow.id)
        .where(UserRow.id == user_id)
    )
    found: int | None = (await tx.execute(cap)).scalar()
    return found


async def list_logins(
    connection: AsyncConnection, user_id: str, now: datetime
) -> list[OpenLogin]:
    """List where somebody is logged in, the longest first.

    A command line whose keypair is not accepted any more is not logged in.
    """
    query = (
        select(_TABLE)
        .outerjoin(KeypairRow, KeypairRow.id == LoginRow.keypair_id)
        .where(
            LoginRow.user_id == user_id,
            or_(LoginRow.expires_at.is_(None), LoginRow.expires_at > now),
            or_(LoginRow.keypair_id.is_(None), KeypairRow.is_active),
        )
        .order_by(LoginRow.created_at, LoginRow.id)
    )
    rows = (await connection.execute(query)).all()
    return [OpenLogin(**row._mapping) for row in rows]


async def insert_login(tx: Transaction, login: OpenLogin) -> None:
    """Store a login, and forget those of the same person that are over."""
    await tx.execute(
        delete(LoginRow).where(
            LoginRow.user_id == login.user_id, LoginRow.expires_at <= tx.now
        )
    )
    await tx.execute(insert(LoginRow).values(msgspec.structs.asdict(login)))


async def change_login(tx: Transaction, login_id: str, **values: Any) -> bool:
    """Change fields of one login; tell whether it is still there."""
    query = update(LoginRow).where(LoginRow.id == login_id).values(**values)
    return bool((await tx.execute(query)).rowcount)


async def delete_session(tx: Transaction, user_id: str, session_hash: str) -> bool:
    """Forget a browser's login; tell whether there was one."""
    query = delete(LoginRow).where(
        LoginRow.user_id == user_id, LoginRow.session_hash == session_hash
    )
    return bool((await tx.execute(query)).rowcount)


async def delete_sessions(tx: Transaction, name: str) -> None:
    """Forget the logins of all browsers of whom an account's *name* belongs to."""
    whose = select(UserRow.id).where(UserRow.name_key == name)
    await tx.execute(
        delete(LoginRow).where(
            LoginRow.user_id.in_(whose), LoginRow.session_hash.is_not(None)
        )
    )


async def delete_login(tx: Transaction, login_id: str) -> None:
    """Forget one login; absent is success."""
    await tx.execute(delete(LoginRow).where(LoginRow.id == login_id))


async def delete_logins(tx: Transaction, user_id: str) -> list[str]:
    """Forget all of a person's logins; return the keypairs to take away.

    Of the default keypair, which everybody has to have, only the secret goes.
    """
    query = (
        select(KeypairRow.id, KeypairRow.is_default)
        .join(LoginRow, LoginRow.keypair_id == KeypairRow.id)
        .where(LoginRow.user_id == user_id)
    )
    found = (await tx.execute(query)).all()
    await tx.execute(delete(LoginRow).where(LoginRow.user_id == user_id))
    kept = [row.id for row in found if row.is_default]
    await tx.execute(
        update(KeypairRow)
        .where(KeypairRow.id.in_(kept))
        .values(secret_hash=None, revision=KeypairRow.revision + 1)
    )
    return [row.id for row in found if not row.is_default]
