"""Looks after batch sessions: their time, their nodes, and who waits for them."""

from __future__ import annotations

from datetime import datetime, timedelta

from backendai_hub.db.signals import Signals
from backendai_hub.operations.batch import (
    cancel_dependents,
    end_timed_out,
    requeue_stranded,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

STALL = timedelta(seconds=5)


class BatchReconciler(Reconciler):
    """Ends, cancels and starts again what no report of a node will.

    After a stall of our own, or a jump of the clock, silence is counted anew: nobody's
    lease may seem to have run out because we did not listen.
    """

    name = "batch"
    resync_seconds = 1.0

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self._listening_since = platform.database.clock()
        self._last_pass: datetime | None = None

    async def reconcile(self) -> int:
        """Run one pass."""
        now = self.platform.database.clock()
        if self._last_pass is not None and not (
            timedelta(0) <= now - self._last_pass <= STALL
        ):
            self._listening_since = now
        self._last_pass = now
        done = await end_timed_out(self.platform)
        done += await cancel_dependents(self.platform)
        return done + await requeue_stranded(self.platform, self._listening_since)
