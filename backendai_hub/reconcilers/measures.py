"""Writes down what sessions have used, and lets go of old measurements."""

from __future__ import annotations

from backendai_hub.operations.live_usage import write_down
from backendai_hub.reconcilers.base import Reconciler


class MeasuresReconciler(Reconciler):
    """A session's sums become a row when it is measured no more."""

    name = "measures"
    resync_seconds = 10.0

    async def reconcile(self) -> int:
        """Run one pass."""
        return await write_down(self.platform)

    async def close(self) -> None:
        """Write what of running sessions only this process knows."""
        while await write_down(self.platform, also_running=True):
            pass
