"""The client's part about what waits: priorities, holds, freezes, queues."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from backendai_hub.api.operators import (
    GroupState,
    QueueEntry,
    QueuePage,
    SessionOutcomes,
)
from backendai_hub.api.preemptions import (
    PreemptionPage,
    PreemptionTrial,
    PreemptionTrialRequest,
)
from backendai_hub.api.simulations import (
    ExportedTrace,
    SimulationProgress,
    SimulationReport,
    SimulationRequest,
)
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import segment
from backendai_hub.core.preemptions import EnactedPreemption
from backendai_hub.core.sessions import Session

_SIMULATION_SECONDS = 60.0
"""The service gives up a simulation after so long."""


class Schedule(Part):
    """Say what may start, and in which order."""

    async def set_priority(
        self, sessions: Sequence[str], priority: int
    ) -> SessionOutcomes:
        """Give sessions that wait another priority; each ends for itself."""
        return await self._transport.post(
            "sessions/priority",
            {"sessions": list(sessions), "priority": priority},
            SessionOutcomes,
            act_for=self._act_for,
        )

    async def terminate(
        self, sessions: Sequence[str], *, force: bool = False
    ) -> SessionOutcomes:
        """End many sessions; *force* does not wait for their nodes."""
        return await self._transport.post(
            "sessions/terminate",
            {"sessions": list(sessions), "force": force},
            SessionOutcomes,
            act_for=self._act_for,
        )

    async def hold(self, session_id: str, *, reason: str) -> Session:
        """Keep a session that waits from starting; it keeps its place."""
        return await self._transport.post(
            f"sessions/{segment(session_id)}/hold",
            {"reason": reason},
            Session,
            act_for=self._act_for,
        )

    async def release(self, session_id: str) -> Session:
        """Let a held session start."""
        return await self._transport.post(
            f"sessions/{segment(session_id)}/release",
            {},
            Session,
            act_for=self._act_for,
        )

    async def freeze(self, group: str, *, reason: str) -> GroupState:
        """Let nothing start in a resource group; what runs goes on."""
        return await self._transport.post(
            f"resource-groups/{segment(group)}/freeze",
            {"reason": reason},
            GroupState,
            act_for=self._act_for,
        )

    async def unfreeze(self, group: str) -> GroupState:
        """Let sessions start in a resource group again."""
        return await self._transport.post(
            f"resource-groups/{segment(group)}/unfreeze",
            {},
            GroupState,
            act_for=self._act_for,
        )

    async def read_queue(
        self, group: str, *, limit: int = 50, after: int = 0
    ) -> QueuePage:
        """Return one page of a group's queue, in the order of the scheduler."""
        return await self._transport.get(
            f"resource-groups/{segment(group)}/queue",
            QueuePage,
            params={"limit": limit, "after": after},
            act_for=self._act_for,
        )

    async def queue(
        self, group: str, *, page_size: int = 50
    ) -> AsyncIterator[QueueEntry]:
        """Yield who waits in a group, as far as the caller may see them."""
        after = 0
        while True:
            page = await self.read_queue(group, limit=page_size, after=after)
            for entry in page.items:
                yield entry
            if page.next is None:
                return
            after = page.next

    async def preemptions(
        self, *, page_size: int = 50, **filters: Any
    ) -> AsyncIterator[EnactedPreemption]:
        """Yield who made room for whom, the newest first, page after page.

        Filters are session (an id, of either side), resource_group, kind and open.
        """
        after: str | None = None
        while True:
            page = await self._transport.get(
                "preemptions",
                PreemptionPage,
                params={**filters, "limit": page_size, "after": after},
                act_for=self._act_for,
            )
            for item in page.items:
                yield item
            after = page.next
            if after is None:
                return

    async def try_preemption(
        self, group: str, request: PreemptionTrialRequest | None = None
    ) -> PreemptionTrial:
        """Say who would have to make room now if a group had the rules of *request*."""
        return await self._transport.post(
            f"resource-groups/{segment(group)}/preemptions/trial",
            request or PreemptionTrialRequest(),
            PreemptionTrial,
            act_for=self._act_for,
        )

    async def export(
        self, *, days: int | None = None, pseudonyms: bool = False
    ) -> ExportedTrace:
        """Return how things are, or what ran in the last *days*, as a trace.

        With *pseudonyms* nobody in it is called by their name.
        """
        asked = {"days": days, "pseudonyms": "true" if pseudonyms else None}
        return await self._transport.get(
            "schedule/trace",
            ExportedTrace,
            params=asked,
            act_for=self._act_for,
            wait=_SIMULATION_SECONDS,
        )

    async def simulation_progress(self) -> SimulationProgress:
        """Say how far the simulation is that is being made, if one is."""
        return await self._transport.get(
            "schedule/simulate", SimulationProgress, act_for=self._act_for
        )

    async def simulate(self, request: SimulationRequest) -> SimulationReport:
        """Say how things would go, as they are and with what *request* changes."""
        return await self._transport.ask(
            "schedule/simulate",
            request,
            SimulationReport,
            act_for=self._act_for,
            wait=_SIMULATION_SECONDS,
        )
