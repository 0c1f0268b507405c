"""Counting what is used, batch after batch, until nothing is due any more."""

from __future__ import annotations

from backendai_hub.db.shares import longest_lookback
from backendai_hub.db.usage import AT_ONCE, count_usage, forget_usage
from backendai_hub.operations.platform import Platform


async def count_all(platform: Platform) -> int:
    """Count everything that is due; return how many allocations were."""
    counted = 0
    while True:
        async with platform.database.transaction() as tx:
            batch = await count_usage(tx)
        counted += batch
        if batch < AT_ONCE:
            return counted


async def forget_old(platform: Platform) -> None:
    """Remove the days that count for no group any more."""
    async with platform.database.transaction() as tx:
        keep = await longest_lookback(tx.connection)
        await forget_usage(tx, tx.now.date(), keep)
