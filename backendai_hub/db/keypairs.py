"""Reading keypairs for a login, and noting that they were used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.names import fold
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import KeypairRow, UserRow


class KeypairRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a login needs of a keypair."""

    id: str
    user: str
    secret_hash: str | None
    is_active: bool
    is_admin: bool
    rate_limit: int


async def find_keypair(
    connection: AsyncConnection, access_key: str
) -> KeypairRecord | None:
    """Find a keypair by its access key."""
    query = (
        select(
            KeypairRow.id,
            UserRow.name.label("user"),
            KeypairRow.secret_hash,
            KeypairRow.is_active,
            KeypairRow.is_admin,
            KeypairRow.rate_limit,
        )
        .join(UserRow, UserRow.id == KeypairRow.user_id)
        .where(KeypairRow.name_key == fold(access_key))
    )
    row = (await connection.execute(query)).first()
    return None if row is None else KeypairRecord(**row._mapping)


async def find_default(connection: AsyncConnection, user_id: str) -> str:
    """Return the id of a user's default keypair."""
    query = select(KeypairRow.id).where(
        KeypairRow.user_id == user_id, KeypairRow.is_default
    )
    return str((await connection.execute(query)).scalar_one())


async def note_uses(tx: Transaction, uses: Mapping[str, tuple[int, datetime]]) -> None:
    """Add requests that keypairs have made, and when the last one was."""
    for keypair_id, (count, last) in sorted(uses.items()):
        await tx.execute(
            update(KeypairRow)
            .where(KeypairRow.id == keypair_id)
            .values(num_queries=KeypairRow.num_queries + count, last_used_at=last)
        )
