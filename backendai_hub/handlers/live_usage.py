"""Routes about what sessions use at the moment."""

from __future__ import annotations

from backendai_hub.core.access import Action
from backendai_hub.core.live_usage import LiveUsage, SessionUsage
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.live_usage import (
    LiveUsageQuery,
    SessionUsageQuery,
    read_live,
    read_usage,
)


class SessionUsageHandler(APIHandler):
    """What one session uses."""

    path = "api/sessions/{session_id}/usage"

    @operation(Action.READ_SESSION, query=SessionUsageQuery)
    async def get(self, session_id: str) -> SessionUsage:
        """Read what a session uses: now, in the last minutes, and in all."""
        query = self.decode_query(SessionUsageQuery)
        return await read_usage(self.platform, self.principal, session_id, query)


class LiveUsageHandler(APIHandler):
    """What many sessions use."""

    path = "api/usage/live"

    @operation(Action.READ_SESSION, query=LiveUsageQuery)
    async def get(self) -> LiveUsage:
        """Read what many sessions use now: one's own, named ones, or all one sees."""
        self.require_user()
        query = self.decode_query(LiveUsageQuery)
        return read_live(self.platform, self.principal, query)
