"""Ends what has been in one state too long."""

from __future__ import annotations

from backendai_hub.operations.deadlines import end_expired, end_overdue
from backendai_hub.reconcilers.base import Reconciler


class DeadlinesReconciler(Reconciler):
    """Ends what has waited or run too long, with a reason."""

    name = "deadlines"
    resync_seconds = 2.0

    async def reconcile(self) -> int:
        """Run one pass."""
        return await end_overdue(self.platform) + await end_expired(self.platform)
