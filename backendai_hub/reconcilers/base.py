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
LONGEST_WAY = 0.2
"""Who makes way for others does so for so many seconds at most."""


class Reconciler(ABC):
    """Something that is made true again and again."""

    name: ClassVar[str]
    resync_seconds: ClassVar[float] = 10.0
    settle_seconds: ClassVar[float] = 0.0
    """Wait this long after a wake-up, so that several become one pass."""

    rest: ClassVar[float] = 0.0
    """Rest so many times as long as a pass took before the next one, within bounds, so
    that wake-ups that come all the time leave the processor to what they are about."""

    longest_rest: ClassVar[float] = 0.5

    hurries: ClassVar[bool] = False
    """Whether somebody waits for a pass, so that other reconcilers make way for it."""

    def __init__(self, platform: Platform, signals: Signals) -> None:
        self.platform = platform
        self.signals = signals

    @abstractmethod
    async def reconcile(self) -> int:
        """Do one pass; return how much was done."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what the reconciler holds."""

    def patience(self) -> float:
        """Return after how many seconds to look again although nobody calls."""
        return self.resync_seconds

    async def run(self) -> None:
        """Reconcile for ever; a failed pass is logged and tried again later."""
        failures = 0
        clock = asyncio.get_running_loop().time
        while True:
            ticket = self.signals.ticket(self.name)
            began = clock()
            try:
                if self.hurries:
                    with self.signals.hurrying():
                        await self.reconcile()
                else:
                    await self.signals.calm(LONGEST_WAY)
                    await self.reconcile()
                failures = 0
            except Exception:
                failures += 1
                log.exception("%s: pass failed (%d in a row)", self.name, failures)
            if failures:
                pause = min(LONGEST_BACKOFF, 0.2 * 2**failures)
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311
                continue
            ended = clock()
            rested = ended + min(self.longest_rest, self.rest * (ended - began))
            await self.signals.wait(self.name, ticket, self.patience())
            pause = max(self.settle_seconds, rested - clock())
            if pause > 0:
                await asyncio.sleep(pause)
