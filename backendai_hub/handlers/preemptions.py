"""Routes about who makes room for whom."""

from __future__ import annotations

from backendai_hub.api.preemptions import (
    PreemptionPage,
    PreemptionQuery,
    PreemptionTrial,
    PreemptionTrialRequest,
)
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.preemption_views import list_preemptions, try_rules


class PreemptionsHandler(APIHandler):
    """Who had to make room for whom."""

    path = "api/preemptions"

    @operation(Action.READ_SESSION, query=PreemptionQuery)
    async def get(self) -> PreemptionPage:
        """List plans that made room, the newest first; others' sessions are counted."""
        query = self.decode_query(PreemptionQuery)
        return await list_preemptions(self.platform, self.principal, query)


class PreemptionTrialHandler(APIHandler):
    """Who would have to make room for whom."""

    path = "api/resource-groups/{reference}/preemptions/trial"

    @operation(Action.READ_SCHEDULE)
    async def post(
        self, reference: str, body: PreemptionTrialRequest
    ) -> PreemptionTrial:
        """Say who would have to leave now if a group had these rules; nobody does."""
        return await try_rules(self.platform, self.principal, reference, body)
