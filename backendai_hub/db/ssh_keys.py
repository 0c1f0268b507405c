"""Reading and writing the SSH keys of keypairs."""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import SSHKeyRow


class SSHKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One key's row: its public part as text, and the private one, sealed."""

    keypair_id: str
    public_key: str
    sealed: bytes
    changed_at: datetime


async def find_ssh_key(
    connection: AsyncConnection, keypair_id: str
) -> SSHKeyRecord | None:
    """Read the SSH key of a keypair, if it has one."""
    row = (
        await connection.execute(
            select(SSHKeyRow.__table__).where(SSHKeyRow.keypair_id == keypair_id)
        )
    ).first()
    return None if row is None else SSHKeyRecord(**row._mapping)


async def put_ssh_key(tx: Transaction, record: SSHKeyRecord) -> None:
    """Store a key, in place of the one before."""
    await remove_ssh_key(tx, record.keypair_id)
    await tx.execute(insert(SSHKeyRow).values(msgspec.structs.asdict(record)))


async def remove_ssh_key(tx: Transaction, keypair_id: str) -> None:
    """Remove the key of a keypair; absent is success."""
    await tx.execute(delete(SSHKeyRow).where(SSHKeyRow.keypair_id == keypair_id))
