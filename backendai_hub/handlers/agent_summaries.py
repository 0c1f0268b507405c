"""The route about nodes that is everybody's."""

from __future__ import annotations

from backendai_hub.api.agent_summaries import AgentSummaryPage, AgentSummaryQuery
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.agent_summaries import list_summaries


class AgentSummariesHandler(APIHandler):
    """The nodes that one's sessions can run on."""

    path = "api/agent-summaries"

    @operation(Action.READ_AGENT_SUMMARIES, query=AgentSummaryQuery)
    async def get(self) -> AgentSummaryPage:
        """List the nodes of the groups open to oneself, unless they are hidden."""
        query = self.decode_query(AgentSummaryQuery)
        return await list_summaries(self.platform, self.require_user(), query)
