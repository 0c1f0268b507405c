"""Routes that say why sessions wait, and what would become of others."""

from __future__ import annotations

from backendai_hub.api.explanations import DryRun, Why
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.dry_runs import try_out


class WhyHandler(APIHandler):
    """Why one session waits."""

    path = "api/sessions/{session_id}/why"

    @operation(Action.READ_SESSION)
    async def get(self, session_id: str) -> Why:
        """Say why a session waits, what would start it now, and when it starts."""
        return await self.service.explanations.explain(
            self.platform, self.principal, session_id
        )


class DryRunHandler(APIHandler):
    """A session that is only thought of."""

    path = "api/sessions/dry-run"

    @operation(Action.CHECK_SESSION)
    async def post(self, body: SessionRequest) -> DryRun:
        """Say what would become of a session: refused, started now, or waiting."""
        return await try_out(
            self.platform,
            self.principal,
            self.require_user(),
            body,
            self.service.explanations,
        )
