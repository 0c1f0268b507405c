"""Ends what has been in one state too long, or unused."""

from __future__ import annotations

from backendai_hub.operations.deadlines import end_expired, end_overdue
from backendai_hub.operations.idleness import end_idle
from backendai_hub.reconcilers.base import Reconciler


class DeadlinesReconciler(Reconciler):
    """Ends what has waited or run too long, or was not used, with a reason."""

    name = "deadlines"
    resync_seconds = 2.0

    async def reconcile(self) -> int:
        """Run one pass."""
        ended = await end_overdue(self.platform)
        ended += await end_expired(self.platform)
        return ended + await end_idle(self.platform)
