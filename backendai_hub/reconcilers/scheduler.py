"""Places waiting sessions on nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from backendai_hub.db.signals import Signals
from backendai_hub.operations.placement import in_batches, place
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import carry_out, give_back
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.reconcilers.base import Reconciler
from backendai_hub.reconcilers.steps import Course
from backendai_hub.reconcilers.telling import Teller
from backendai_hub.scheduling.snapshot import GroupPolicy, Plan

log = logging.getLogger("backendai_hub.reconcilers.scheduler")

_LEAST_PATIENCE = 0.01
"""Clocks differ: what has not quite come yet is not asked for all the time."""

ANEW_SECONDS = 60.0
"""After so long everything is read from the database again, whatever is known."""

_AGAIN_TIMES = 20.0
"""A pass over everybody that nobody is known to gain by is made so many times as long
as the last one took after it, if that is later than usual: time passes for who has
waited long, and nothing else has changed."""

_AGAIN_MOST = 60.0
"""But after so long it is made, however long the last one took."""

_ANEW_TIMES = 200.0
"""Or after so many times as long as that took: who comes seldom has to wait for it."""


class SchedulerReconciler(Reconciler):
    """Look at what has changed; plan if anybody could gain from it; apply; explain.

    One that finds nothing else going on acts at once. Wake-ups that come while it
    acts, and up to fifty milliseconds after, become one pass.
    """

    name = "scheduler"
    rest = 3.0
    longest_rest = 0.05
    hurries = True

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
        self._planned_at = self._clock()
        self._took = 0.0
        """How long the last pass over everybody took to decide."""
        self._anew_at = self._planned_at
        """When everything is to be read from the database again."""
        self._came: set[str] = set()
        """Who has come since somebody planned for them."""
        self._gained = False
        """Whether others could gain as well since the last pass over everybody."""
        self._enough = 0.0
        """How long a pass goes on before it makes way for who has come."""
        self._teller = Teller(
            platform, self._view, self._clock, seconds=self.resync_seconds
        )

    async def reconcile(self) -> int:
        """Run one pass and return how many sessions were placed.

        Who waits for a place shall not wait for those who are asking for one, too.
        """
        with self.platform.database.spared():
            return await self._pass()

    async def _pass(self) -> int:
        ticket = self.signals.ticket(self.name)
        now = self._clock()
        await self._look()
        self._learn()
        placed = 0
        again = min(_AGAIN_TIMES * self._took, _AGAIN_MOST)
        again = max(self.resync_seconds, again)
        if self._gained or now - self._planned_at >= again:
            placed = await self._plan_for_all(now)
        elif self._came:
            placed = await self._plan_for(self._came)
        await self._teller.tell(lambda: self._is_called(ticket))
        return placed

    def _is_called(self, ticket: int) -> bool:
        return self.signals.ticket(self.name) != ticket

    def patience(self) -> float:
        """Look again when somebody may start, or a window begins or ends."""
        moment = self._view.until_next_moment()
        return (
            self.resync_seconds
            if moment is None
            else min(self.resync_seconds, max(moment, _LEAST_PATIENCE))
        )

    async def _look(self) -> None:
        """Read what has changed, or everything if that was long ago."""
        began = self._clock()
        if began < self._anew_at:
            await self._view.refresh()
            return
        self._view.forget()
        await self._view.refresh()
        ended = self._clock()
        self._anew_at = ended + max(ANEW_SECONDS, _ANEW_TIMES * (ended - began))

    def _learn(self) -> None:
        """Note who has come since the last plan, and whether others gain, too."""
        news = self._view.take_news()
        self._came |= news.came
        self._gained |= news.gained
        if self._came and not self._view.is_enough(self._came):
            self._gained = True

    # --- plans -----------------------------------------------------------------------

    async def _plan_for_all(self, now: float) -> int:
        """Make a pass over everybody, in steps, and do at once what each has decided.

        Who comes meanwhile does not wait for its end: nobody undecided has gained, or
        the pass makes way for who may be before all of them. The next one then goes on
        twice as long at least, so that everybody has their turn.

        One that fails is made again, and whoever could gain is still before who comes.
        """
        gained, came = self._gained, bool(self._came)
        self._planned_at = float("-inf")
        self._came, self._gained = set(), False
        try:
            return await self._go_through_all(now, gained=gained)
        except BaseException:
            self._gained |= gained or came
            raise

    async def _go_through_all(self, now: float, *, gained: bool) -> int:
        course = Course(self._view.snapshot())
        began, placed, took = self._clock(), 0, 0.0
        while True:
            ticket = self.signals.ticket(self.name)
            stepped = self._clock()
            decided = await course.step()
            took += self._clock() - stepped
            placed += await self._carry_out(course, decided)
            if decided.complete:
                break
            if not self._is_called(ticket):
                continue
            await self._view.refresh()
            self._learn()
            if not gained and not self._gained and self._came:
                placed += await self._plan_for(self._came)
            elif self._makes_way(course, self._clock() - began):
                self._gained |= gained
                return placed
        self._enough = 0.0
        self._planned_at, self._took = now, took
        self._warn(course.groups, decided.faults)
        return placed

    def _makes_way(self, course: Course, lasted: float) -> bool:
        """Tell whether to begin anew, with who has come and may be before the rest."""
        if lasted < self._enough:
            return False
        if not any(map(course.is_overtaken_by, self._view.describe(self._came))):
            return False
        self._enough = 2 * lasted
        return True

    async def _plan_for(self, came: Collection[str]) -> int:
        """Make a pass for those who have come: nobody else could start."""
        course = Course(self._view.snapshot(came))
        self._came = set()
        placed = 0
        try:
            while True:
                decided = await course.step()
                placed += await self._carry_out(course, decided)
                if decided.complete:
                    return placed
        except BaseException:
            self._gained = True  # so everybody is looked at, them included
            raise

    async def _carry_out(self, course: Course, decided: Plan) -> int:
        """Do what a step has decided; return how many have been placed."""
        self._teller.note(decided.waiting)
        placed = 0
        for batch in in_batches(decided.placements):
            waited = self._teller.take_tried([p.session for p in batch])
            held = await place(self.platform, batch, waited, decided.windows)
            self._view.placed.update(placement.session for placement in batch)
            if held < len(batch):
                # Something was not as it looked: look at all of it the next time.
                self._view.doubt(batch)
            placed += held
        sent = await carry_out(self.platform, decided.preemptions, decided.windows)
        if sent < len(decided.preemptions):
            self._view.forget()
        await give_back(self.platform, decided.returned)
        self._view.note(course.find([p.session for p in decided.placements]), decided)
        if decided.placements:
            log.info("placed %d of %d who could start", placed, len(decided.placements))
        return placed

    def _warn(
        self, groups: Mapping[str, GroupPolicy], faults: Mapping[str, str]
    ) -> None:
        """Note what is wrong with groups' policies; log it once while it lasts."""
        new = self.platform.policy_faults.note(groups, faults)
        for group, fault in new.items():
            log.error("resource group %s: %s", group or "(all)", fault)
