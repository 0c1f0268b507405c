"""Storing what a placement has taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import AllocationRow


async def insert_allocations(
    tx: Transaction, rows: Sequence[dict[str, Any]], owner_id: str
) -> None:
    """Store live allocations of one user; the ledger entries are taken beside it."""
    await tx.execute(insert(AllocationRow), list(rows), owner=owner_id)
