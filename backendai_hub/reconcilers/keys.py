"""Writes down, now and then, which keypairs have been used."""

from __future__ import annotations

from backendai_hub.operations.keypairs import write_uses
from backendai_hub.reconcilers.base import Reconciler


class KeysReconciler(Reconciler):
    """Counts of many requests become one transaction."""

    name = "keys"
    resync_seconds = 30.0

    async def reconcile(self) -> int:
        """Run one pass."""
        return await write_uses(self.platform)

    async def close(self) -> None:
        """Write what has come in since the last pass."""
        await write_uses(self.platform)
