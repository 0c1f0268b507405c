"""Routes that say why sessions wait."""

from __future__ import annotations

from backendai_hub.api.explanations import Why
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation


class WhyHandler(APIHandler):
    """Why one session waits."""

    path = "api/sessions/{session_id}/why"

    @operation(Action.READ_SESSION)
    async def get(self, session_id: str) -> Why:
        """Say why a session waits, what would start it now, and when it starts."""
        return await self.service.explanations.explain(
            self.platform, self.principal, session_id
        )
