"""Recalculating usage: a verifier, which compares and changes nothing.

Use is changed only together with what it counts, in one transaction. This reads both
and says where they differ; there is nothing to repair as long as the answer is zero.
"""

from __future__ import annotations

import msgspec

from backendai_hub.db.invariants import count_ledger, find_breaches
from backendai_hub.operations.platform import Platform


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many ledger rows were compared, and what was wrong with which."""

    compared: int
    drift: int
    breaches: list[str]


async def verify_usage(platform: Platform) -> UsageReport:
    """Compare the ledger with the live allocations and sessions."""
    async with platform.database.read() as connection:
        breaches = await find_breaches(connection)
        compared = await count_ledger(connection)
    return UsageReport(compared=compared, drift=len(breaches), breaches=breaches)
