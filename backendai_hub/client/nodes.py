"""The client's part about nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from backendai_hub.api.agent_summaries import AgentSummary, AgentSummaryPage
from backendai_hub.api.nodes import AgentPage
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import segment
from backendai_hub.core.agents import Agent


class Nodes(Part):
    """See nodes, and say to which group they belong and what they take."""

    async def list(
        self, /, *, page_size: int = 100, **filters: Any
    ) -> AsyncIterator[Agent]:
        """Yield nodes, page after page, as they are asked for.

        Filters are search, resource_group, status, schedulable, architecture and
        runtime; *order* is a field, with ``-`` before it descending.
        """
        after: str | None = None
        while True:
            page = await self._transport.get(
                "agents",
                AgentPage,
                params={**filters, "limit": page_size, "after": after},
                act_for=self._act_for,
            )
            for item in page.items:
                yield item
            after = page.next
            if after is None:
                return

    async def get(self, node: str) -> Agent:
        """Return one node, by its name or id."""
        return await self._transport.get(
            f"agents/{segment(node)}", Agent, act_for=self._act_for
        )

    async def summaries(
        self, /, *, page_size: int = 100, **filters: Any
    ) -> AsyncIterator[AgentSummary]:
        """Yield the nodes of the groups open to oneself, by name, page after page.

        Filters are search, resource_group, status and architecture.
        """
        after: str | None = None
        while True:
            page = await self._transport.get(
                "agent-summaries",
                AgentSummaryPage,
                params={**filters, "limit": page_size, "after": after},
                act_for=self._act_for,
            )
            for item in page.items:
                yield item
            after = page.next
            if after is None:
                return

    async def update(
        self,
        node: str,
        *,
        resource_group: str | None = None,
        schedulable: bool | None = None,
        force: bool = False,
        labels: Mapping[str, str | None] | None = None,
    ) -> Agent:
        """Change what is named; *force* moves a node although sessions run on it.

        *labels* win over the node's own; None leaves one to the node again.
        """
        body: dict[str, Any] = {"force": force}
        if labels:
            body["labels"] = dict(labels)
        if resource_group is not None:
            body["resource_group"] = resource_group
        if schedulable is not None:
            body["schedulable"] = schedulable
        return await self._transport.patch(
            f"agents/{segment(node)}", body, Agent, act_for=self._act_for
        )

    async def drain(self, node: str, *, reason: str, by: str | None = None) -> Agent:
        """Let nothing new start on a node; *by* is when it ought to be empty."""
        return await self._transport.post(
            f"agents/{segment(node)}/drain",
            {"reason": reason, "by": by},
            Agent,
            act_for=self._act_for,
        )

    async def undrain(self, node: str) -> Agent:
        """Let sessions start on a node again."""
        return await self._transport.post(
            f"agents/{segment(node)}/undrain", {}, Agent, act_for=self._act_for
        )
