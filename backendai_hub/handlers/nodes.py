"""The routes about nodes that are administrators'."""

from __future__ import annotations

from backendai_hub.api.nodes import AgentPage, AgentQuery
from backendai_hub.core.access import Action
from backendai_hub.core.agents import Agent
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.node_lists import list_agents, read_agent


class AgentsHandler(APIHandler):
    """The nodes."""

    path = "api/agents"

    @operation(Action.READ_AGENTS, query=AgentQuery)
    async def get(self) -> AgentPage:
        """List the nodes, what they have, and how they keep users apart."""
        return await list_agents(self.platform, self.decode_query(AgentQuery))


class AgentHandler(APIHandler):
    """One node."""

    path = "api/agents/{reference}"

    @operation(Action.READ_AGENTS)
    async def get(self, reference: str) -> Agent:
        """Show one node, by its name or id."""
        return await read_agent(self.platform, reference)

    @operation(Action.UPDATE_AGENT)
    async def patch(self, reference: str, body: AgentChange) -> Agent:
        """Move a node to another group, label it, or let it take nothing new."""
        return await change_agent(self.platform, self.principal, reference, body)
