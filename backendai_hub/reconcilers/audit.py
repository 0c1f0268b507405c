"""Keeps the audit's head outside of the database, every few minutes."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar

from sqlalchemy.exc import SQLAlchemyError

from backendai_hub.core.audit import Head
from backendai_hub.core.times import format_time
from backendai_hub.db import chain
from backendai_hub.db.signals import Signals
from backendai_hub.operations.audit_heads import HeadFile
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

log = logging.getLogger("backendai_hub.audit")


class AuditReconciler(Reconciler):
    """Exports the head when it has moved, and once more at the end.

    The line goes to a file and to the log, which sites collect elsewhere.
    """

    name = "audit"
    resync_seconds: ClassVar[float] = 300.0

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self._file = HeadFile(platform.settings.audit_heads)
        self._exported: int | None = None

    async def reconcile(self) -> int:
        """Export the head if it is another than the last one exported."""
        if self._exported is None:
            known, _ = await asyncio.to_thread(self._file.read)
            self._exported = next(reversed(known), 0)
        async with self.platform.database.read() as connection:
            head = await chain.read_head(connection)
        if head is None or head.seq == self._exported:
            return 0
        at = format_time(self.platform.database.clock()) or ""
        stamped = Head(seq=head.seq, hash=head.hash, at=at)
        await asyncio.to_thread(self._file.append, stamped)
        log.info("audit: row %d is the newest, its hash is %s", head.seq, head.hash)
        self._exported = head.seq
        return 1

    async def close(self) -> None:
        """Export the head for the last time."""
        try:
            await self.reconcile()
        except (SQLAlchemyError, OSError):
            log.exception("audit: the head could not be exported at the end")
