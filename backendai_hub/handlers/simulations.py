"""Routes that say what would be."""

from __future__ import annotations

from backendai_hub.api.simulations import (
    ExportedTrace,
    SimulationProgress,
    SimulationReport,
    SimulationRequest,
    TraceQuery,
)
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import MOST_READ, APIHandler, operation
from backendai_hub.operations.scenarios import export_trace


class ExportHandler(APIHandler):
    """How things are, to be looked into elsewhere."""

    path = "api/schedule/trace"

    @operation(Action.READ_SCHEDULE, query=TraceQuery)
    async def get(self) -> ExportedTrace:
        """Write nodes, what runs or ran, who waits, and the limits as a trace."""
        return await export_trace(self.platform, self.decode_query(TraceQuery))


class SimulateHandler(APIHandler):
    """What would be."""

    path = "api/schedule/simulate"
    most_body = MOST_READ

    @operation(Action.READ_SCHEDULE)
    async def get(self) -> SimulationProgress:
        """Say how far the simulation is that is being made."""
        return self.service.simulations.progress

    @operation(Action.READ_SCHEDULE)
    async def post(self, body: SimulationRequest) -> SimulationReport:
        """Say how things would go, as they are and with changes; nothing is changed."""
        return await self.service.simulations.simulate(self.platform, body)
