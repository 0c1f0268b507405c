"""Looks through storage hosts, now and then, for what has had its time."""

from __future__ import annotations

from typing import ClassVar

from backendai_hub.operations.folder_moves import bring_home
from backendai_hub.operations.storage_care import awake, care
from backendai_hub.reconcilers.base import Reconciler


class StorageReconciler(Reconciler):
    """Once an hour compares what lies on the hosts with what is known."""

    name: ClassVar[str] = "storage"
    resync_seconds: ClassVar[float] = 3600.0

    async def reconcile(self) -> int:
        """Look through all hosts that answer, and clean up."""
        removed = await care(self.platform)
        return removed + await bring_home(self.platform, awake(self.platform))
