"""Places waiting sessions on nodes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from backendai_hub.core.attempts import Result
from backendai_hub.core.sessions import WAITING_WORDS, SessionStatus
from backendai_hub.db.attempts import Tried
from backendai_hub.db.signals import Signals
from backendai_hub.operations.placement import (
    AT_ONCE,
    count_attempts,
    explain,
    in_batches,
    place,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import carry_out, give_back
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.reconcilers.base import Reconciler
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Plan, Snapshot

log = logging.getLogger("backendai_hub.reconcilers.scheduler")

BIG_QUEUE = 50
"""Longer queues are planned in a thread; for short ones the hop costs more."""

_FIRST_WORDS = WAITING_WORDS[SessionStatus.PENDING]

_LEAST_PATIENCE = 0.01
"""Clocks differ: what has not quite come yet is not asked for all the time."""

ANEW_SECONDS = 60.0
"""After so long everything is read from the database again, whatever is known."""

_ANEW_TIMES = 20.0
"""Or after so many times as long as that took: it costs a twentieth at most."""

_LEAST_TRIED = 1000
"""So many counts may be of sessions that have gone before they are looked for."""


class SchedulerReconciler(Reconciler):
    """Look at what has changed; plan if anybody could gain from it; apply; explain.

    One that finds nothing else going on acts at once. Wake-ups that come while it
    acts, and up to fifty milliseconds after, become one pass.
    """

    name = "scheduler"
    rest = 3.0
    longest_rest = 0.05

    def __init__(
        self,
        platform: Platform,
        signals: Signals,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(platform, signals)
        self._view = QueueView(platform)
        self._clock = clock or asyncio.get_running_loop().time
        self._planned_at = self._counted_at = self._clock()
        self._anew_at = self._planned_at
        """When everything is to be read from the database again."""
        self._reasons: Mapping[str, str] = {}
        self._faults: Mapping[str, str] = {}
        self._tried: Counter[str] = Counter()
        """How often each has been tried since that was written down."""
        self._told = ""
        """Who was the last to get a new reason in place of an older one."""

    async def reconcile(self) -> int:
        """Run one pass and return how many sessions were placed.

        Who waits for a place shall not wait for those who are asking for one, too.
        """
        with self.platform.database.spared():
            return await self._pass()

    async def _pass(self) -> int:
        ticket = self.signals.ticket(self.name)
        now = self._clock()
        gained = await self._look()
        placed = 0
        if gained or now - self._planned_at >= self.resync_seconds:
            self._planned_at = float("-inf")  # if this fails, it is made again
            placed = await self._plan(self._view.snapshot())
            self._planned_at = now
        await self._explain(ticket)
        return placed

    def patience(self) -> float:
        """Look again when somebody may start, or a window begins or ends."""
        moment = self._view.until_next_moment()
        return (
            self.resync_seconds
            if moment is None
            else min(self.resync_seconds, max(moment, _LEAST_PATIENCE))
        )

    async def _look(self) -> bool:
        """Read what has changed, or everything if that was long ago."""
        began = self._clock()
        if began < self._anew_at:
            return await self._view.refresh()
        self._view.forget()
        gained = await self._view.refresh()
        ended = self._clock()
        self._anew_at = ended + max(ANEW_SECONDS, _ANEW_TIMES * (ended - began))
        return gained

    async def _plan(self, snapshot: Snapshot) -> int:
        self._reasons = {}
        if not snapshot.queue:
            return 0
        decided = await self._decide(snapshot)
        self._reasons = decided.waiting
        self._warn(decided.faults)
        self._tried.update(decided.waiting.keys())
        if len(self._tried) > _LEAST_TRIED + 2 * len(decided.waiting):
            self._forget_gone()
        placed = 0
        for batch in in_batches(decided.placements):
            waited = self._take_tried([p.session for p in batch])
            placed += await place(self.platform, batch, waited, decided.windows)
            self._view.placed.update(placement.session for placement in batch)
        sent = await carry_out(self.platform, decided.preemptions, decided.windows)
        await give_back(self.platform, decided.returned)
        self._view.note(snapshot.queue, decided)
        if decided.placements:
            log.info("placed %d of %d waiting", placed, len(snapshot.queue))
        if placed < len(decided.placements) or sent < len(decided.preemptions):
            # Something was not as it looked: look at all of it the next time.
            self._view.forget()
        return placed

    async def _decide(self, snapshot: Snapshot) -> Plan:
        if len(snapshot.queue) > BIG_QUEUE:
            return await asyncio.to_thread(plan, snapshot)
        return plan(snapshot)

    def _warn(self, faults: Mapping[str, str]) -> None:
        """Log what is wrong with the policies of a group, once while it lasts."""
        for group, fault in faults.items():
            if self._faults.get(group) != fault:
                log.error("resource group %s: %s", group or "(all)", fault)
        self._faults = faults

    async def _explain(self, ticket: int) -> None:
        """Store the reasons that have changed; whoever has just come goes first.

        What is left when somebody calls is stored after the next passes, in turn.
        """
        known = self._view.records
        news = sorted(
            session_id
            for session_id, reason in self._reasons.items()
            if session_id in known
            and known[session_id].status is SessionStatus.PENDING
            and known[session_id].reason != reason
        )
        for some in in_batches(sorted(news, key=self._turn_of)):
            counts = {i: self._tried.pop(i, 1) for i in some}
            reasons = {i: self._reasons[i] for i in some}
            await explain(self.platform, reasons, counts)
            if known[some[-1]].reason != _FIRST_WORDS:
                self._told = some[-1]
            if self.signals.ticket(self.name) != ticket:
                return
        if not news:
            await self._count()

    def _turn_of(self, session_id: str) -> tuple[bool, bool, str]:
        """Put those first who have no reason yet, then who was not told for long."""
        is_new = self._view.records[session_id].reason == _FIRST_WORDS
        return not is_new, session_id <= self._told, session_id

    def _take_tried(self, ids: Iterable[str]) -> dict[str, Tried]:
        """Return attempts that are not written down, of sessions that still wait."""
        known = self._view.records
        return {
            i: Tried(i, Result.WAITING, known[i].reason, count)
            for i in ids
            if i in known and (count := self._tried.pop(i, 0))
        }

    async def _count(self) -> None:
        """Write down how often those were tried who have been tried most."""
        self._forget_gone()
        now = self._clock()
        if not self._tried or now - self._counted_at < self.resync_seconds:
            return
        self._counted_at = now
        most = [session_id for session_id, _ in self._tried.most_common(AT_ONCE)]
        await count_attempts(self.platform, list(self._take_tried(most).values()))

    def _forget_gone(self) -> None:
        for session_id in self._tried.keys() - self._view.records.keys():
            del self._tried[session_id]
