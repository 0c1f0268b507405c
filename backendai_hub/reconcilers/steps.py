"""A pass in steps: what a step has decided can be done while the others are to come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec.structs import replace

from backendai_hub.operations.placement import AT_ONCE
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.plugins import follows_own
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    Plan,
    Snapshot,
)

BIG_QUEUE: Final = 50
"""Longer queues are planned in a thread; for short ones the hop costs more. Policies of
other packages may take their time, so they are never asked outside one."""

SKIMMED: Final = 1000
"""In longer queues those are set aside who cannot start anyway."""

STEP_SECONDS: Final = 0.05
"""How long a step takes at most, but for what it takes to decide about one session."""


class Course:
    """One pass over a snapshot, from its first step to its last."""

    def __init__(
        self, snapshot: Snapshot, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._snapshot, self._clock = snapshot, clock
        self._apart = len(snapshot.queue) > BIG_QUEUE or not all(
            map(follows_own, snapshot.groups.values())
        )
        self._known: dict[str, PendingSession] = {}
        self._pass: Pass | None = None
        self._sent: set[str] = set()
        """For whom others have been asked to go."""
        self._returned: set[str] = set()

    async def step(self) -> Plan:
        """Decide about some more; return what is new since the step before."""
        if not self._apart:
            return self._news(self._step())
        return self._news(await asyncio.to_thread(self._step))

    def _step(self) -> Plan:
        if self._pass is None:
            queue = self._snapshot.queue
            self._known = {session.id: session for session in queue}
            self._pass = Pass(self._snapshot, skims=len(queue) > SKIMMED)
        ends = self._clock() + STEP_SECONDS
        # However slow, each step decides about somebody.
        return self._pass.run(
            lambda decided: decided > 0 and self._clock() > ends,
            most_placed=AT_ONCE,
        )

    def _news(self, plan: Plan) -> Plan:
        """Leave out who is to go, and for whom nothing is kept, if that is done."""
        preemptions = tuple(p for p in plan.preemptions if p.session not in self._sent)
        returned = {i: w for i, w in plan.returned.items() if i not in self._returned}
        self._sent |= {p.session for p in preemptions}
        self._returned |= returned.keys()
        return replace(plan, preemptions=preemptions, returned=returned)

    @property
    def groups(self) -> Mapping[str, GroupPolicy]:
        """The policies of the resource groups that somebody waits for."""
        asked = {session.group for session in self._snapshot.queue}
        return {g: p for g, p in self._snapshot.groups.items() if g in asked}

    def find(self, ids: Collection[str]) -> list[PendingSession]:
        """Return those of these sessions that it is about."""
        return [self._known[i] for i in ids if i in self._known]

    def is_overtaken_by(self, session: PendingSession) -> bool:
        """Tell whether *session*, who has just come, may be before all undecided."""
        return self._pass is not None and self._pass.is_overtaken_by(session)
