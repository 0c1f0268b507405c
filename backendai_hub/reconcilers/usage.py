"""Counts what is used, for whose turn it is later."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from backendai_hub.db.signals import Signals
from backendai_hub.operations.counting import count_all, forget_old
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler


class UsageReconciler(Reconciler):
    """Adds what has been used to the days' buckets, and once a day forgets old ones."""

    name: ClassVar[str] = "usage"
    resync_seconds: ClassVar[float] = 60.0

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self._forgotten: date | None = None

    async def reconcile(self) -> int:
        """Count what is due; return how many allocations that were."""
        today = self.platform.database.clock().date()
        if today != self._forgotten:
            await forget_old(self.platform)
            self._forgotten = today
        return await count_all(self.platform)
