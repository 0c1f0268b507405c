"""Logging in with a keypair, and noting that it was used."""

from __future__ import annotations

import hmac

from backendai_hub.db import keypairs
from backendai_hub.db.keypairs import KeypairRecord
from backendai_hub.operations.keypair_rules import hash_secret
from backendai_hub.operations.platform import Platform


async def find_login(
    platform: Platform, access_key: str, secret: str
) -> KeypairRecord | None:
    """Return the keypair if it is active and *secret* is its secret."""
    if len(access_key) > 64 or len(secret) > 256:
        return None
    async with platform.database.read() as connection:
        found = await keypairs.find_keypair(connection, access_key)
    stored = found.secret_hash if found is not None else None
    # Compared also where there is nothing to compare with: both take as long.
    same = hmac.compare_digest(stored or "-" * 64, hash_secret(secret))
    if found is None or stored is None or not same or not found.is_active:
        return None
    return found


async def write_uses(platform: Platform) -> int:
    """Write down how often keypairs have been used since the last time, and when.

    What cannot be written now is kept for the next time. Returns how many keypairs.
    """
    uses = platform.key_uses.take()
    if not uses:
        return 0
    try:
        async with platform.database.transaction() as tx:
            await keypairs.note_uses(tx, uses)
    except BaseException:
        platform.key_uses.put_back(uses)
        raise
    return len(uses)
