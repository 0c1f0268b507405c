"""Ends uploads that do not go on, so that nothing keeps room for ever."""

from __future__ import annotations

from typing import ClassVar

from backendai_hub.operations.uploads import sweep_uploads
from backendai_hub.reconcilers.base import Reconciler


class UploadsReconciler(Reconciler):
    """Looks once a minute for uploads whose time is up."""

    name: ClassVar[str] = "uploads"
    resync_seconds: ClassVar[float] = 60.0

    async def reconcile(self) -> int:
        """End what has waited for too long."""
        return await sweep_uploads(self.platform)
