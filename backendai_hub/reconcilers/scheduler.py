"""Places waiting sessions on nodes."""

from __future__ import annotations

import asyncio
import logging

from backendai_hub.operations.placement import apply_plan, load_snapshot
from backendai_hub.reconcilers.base import Reconciler
from backendai_hub.scheduling.plan import plan

log = logging.getLogger("backendai_hub.reconcilers.scheduler")

BIG_QUEUE = 50
"""Longer queues are planned in a thread; for short ones the hop costs more."""


class SchedulerReconciler(Reconciler):
    """Snapshot, plan, apply."""

    name = "scheduler"
    rest = 3.0

    async def reconcile(self) -> int:
        """Run one pass and return how many sessions were placed."""
        snapshot = await load_snapshot(self.platform)
        if not snapshot.queue:
            return 0
        if len(snapshot.queue) > BIG_QUEUE:
            decided = await asyncio.to_thread(plan, snapshot)
        else:
            decided = plan(snapshot)
        placed = await apply_plan(self.platform, decided)
        if decided.placements:
            log.info("placed %d of %d waiting", placed, len(snapshot.queue))
        return placed
