"""Storing what a placement has taken."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import insert

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AllocationRow


async def insert_allocations(
    tx: Transaction, rows: Sequence[dict[str, Any]], owners: Collection[str]
) -> None:
    """Store live allocations of these users; the ledger is taken from beside it."""
    await tx.execute(insert(AllocationRow), list(rows), owner=owners)
