"""The loop all reconcilers share: woken by a hint, and every so often anyway.

A reconciler takes no input. It looks at what is, does what is missing, and may be
run at any time, twice, or after a crash.
"""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from typing import ClassVar

from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform

log = logging.getLogger("backendai_hub.reconcilers")

LONGEST_BACKOFF = 10.0


class Reconciler(ABC):
    """Something that is made true again and again."""

    name: ClassVar[str]
    resync_seconds: ClassVar[float] = 10.0
    settle_seconds: ClassVar[float] = 0.0
    """Wait this long after a wake-up, so that several become one pass."""

    def __init__(self, platform: Platform, signals: Signals) -> None:
        self.platform = platform
        self.signals = signals

    @abstractmethod
    async def reconcile(self) -> int:
        """Do one pass; return how much was done."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what the reconciler holds."""

    async def run(self) -> None:
        """Reconcile for ever; a failed pass is logged and tried again later."""
        failures = 0
        while True:
            ticket = self.signals.ticket(self.name)
            try:
                await self.reconcile()
                failures = 0
            except Exception:
                failures += 1
                log.exception("%s: pass failed (%d in a row)", self.name, failures)
            if failures:
                pause = min(LONGEST_BACKOFF, 0.2 * 2**failures)
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311
                continue
            await self.signals.wait(self.name, ticket, self.resync_seconds)
            if self.settle_seconds:
                await asyncio.sleep(self.settle_seconds)
