"""Notices silent nodes."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from backendai_hub.db.signals import Signals
from backendai_hub.operations.nodes import judge_agents
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

log = logging.getLogger("backendai_hub.reconcilers.nodes")

STALL = timedelta(seconds=5)


class NodesReconciler(Reconciler):
    """Judges nodes by their silence, not by our own.

    If this process itself was stopped for a while, silence is counted from its
    return: the reports were there, nobody read them. So it is after a jump of the
    clock, in either direction.
    """

    name = "nodes"
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
        return await judge_agents(self.platform, self._listening_since)
