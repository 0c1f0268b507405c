"""Routes of operators: what waits, what is drained or frozen, and queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy.exc import DBAPIError

from backendai_hub.api.operators import (
    EndRequest,
    GroupState,
    PriorityRequest,
    QueuePage,
    SessionOutcome,
    SessionOutcomes,
)
from backendai_hub.core.access import Action
from backendai_hub.core.agents import Agent
from backendai_hub.core.errors import HubError, InvalidRequestError
from backendai_hub.core.sessions import Session
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.problems import as_hub_error
from backendai_hub.operations import queue_verbs, stops
from backendai_hub.operations.queues import QueueQuery, read_queue
from backendai_hub.operations.sessions import terminate_session

MOST_AT_ONCE = 1000


class _ManySessionsHandler(APIHandler):
    many = True

    async def do_each(
        self,
        action: Action,
        sessions: Sequence[str],
        verb: Callable[[str], Awaitable[Session]],
    ) -> SessionOutcomes:
        """Do something to each of many sessions, which ends for itself."""
        if len(sessions) > MOST_AT_ONCE:
            raise InvalidRequestError(
                f"sessions: {len(sessions)} of them; at most {MOST_AT_ONCE} at once"
            )
        results = [await self._attempt(action, one, verb) for one in sessions]
        failed = sum(1 for result in results if result.error is not None)
        return SessionOutcomes(
            succeeded=len(results) - failed, failed=failed, results=results
        )

    async def _attempt(
        self, action: Action, session_id: str, verb: Callable[[str], Awaitable[Session]]
    ) -> SessionOutcome:
        try:
            session = await verb(session_id)
        except (HubError, DBAPIError) as failure:
            error = as_hub_error(failure, 500)
            await self.trail.refuse_entry(action, "session", session_id[:64], error)
            return SessionOutcome(
                id=session_id,
                status=error.status,
                error=error.message,
                code=error.code,
            )
        return SessionOutcome(id=session_id, status=200, name=session.name)


class PriorityHandler(_ManySessionsHandler):
    """The priority of sessions that wait."""

    path = "api/sessions/priority"

    @operation(Action.PRIORITIZE_SESSION)
    async def post(self, body: PriorityRequest) -> SessionOutcomes:
        """Give sessions that wait another priority; each ends for itself."""
        return await self.do_each(
            Action.PRIORITIZE_SESSION,
            body.sessions,
            lambda session: queue_verbs.set_priority(
                self.platform, self.principal, session, body.priority
            ),
        )


class EndSessionsHandler(_ManySessionsHandler):
    """The end of many sessions."""

    path = "api/sessions/terminate"

    @operation(Action.TERMINATE_SESSION)
    async def post(self, body: EndRequest) -> SessionOutcomes:
        """End sessions, each for itself; ``force`` does not wait for their nodes."""
        return await self.do_each(
            Action.TERMINATE_SESSION,
            body.sessions,
            lambda session: terminate_session(
                self.platform, self.principal, session, force=body.force
            ),
        )


class HoldHandler(APIHandler):
    """What keeps one session from starting."""

    path = "api/sessions/{session_id}/hold"

    @operation(Action.HOLD_SESSION)
    async def post(self, session_id: str, body: queue_verbs.HoldRequest) -> Session:
        """Keep a session that waits from starting; it keeps its place."""
        return await queue_verbs.hold_session(
            self.platform, self.principal, session_id, body
        )


class ReleaseHandler(APIHandler):
    """The end of a hold."""

    path = "api/sessions/{session_id}/release"

    @operation(Action.RELEASE_SESSION)
    async def post(self, session_id: str) -> Session:
        """Let a held session start; owners cannot release what admins hold."""
        return await queue_verbs.release_session(
            self.platform, self.principal, session_id
        )


class DrainHandler(APIHandler):
    """A node that takes nothing new."""

    path = "api/agents/{reference}/drain"

    @operation(Action.DRAIN_AGENT)
    async def post(self, reference: str, body: stops.DrainRequest) -> Agent:
        """Let nothing new start on a node; what runs goes on."""
        return await stops.drain_agent(self.platform, self.principal, reference, body)


class UndrainHandler(APIHandler):
    """A node that takes sessions again."""

    path = "api/agents/{reference}/undrain"

    @operation(Action.UNDRAIN_AGENT)
    async def post(self, reference: str) -> Agent:
        """Let sessions start on a node again."""
        return await stops.undrain_agent(self.platform, self.principal, reference)


class FreezeHandler(APIHandler):
    """A resource group in which nothing starts."""

    path = "api/resource-groups/{reference}/freeze"

    @operation(Action.FREEZE_GROUP)
    async def post(self, reference: str, body: stops.FreezeRequest) -> GroupState:
        """Let nothing start in a resource group; what runs goes on."""
        return await stops.freeze_group(self.platform, self.principal, reference, body)


class UnfreezeHandler(APIHandler):
    """A resource group that goes on."""

    path = "api/resource-groups/{reference}/unfreeze"

    @operation(Action.UNFREEZE_GROUP)
    async def post(self, reference: str) -> GroupState:
        """Let sessions start in a resource group again."""
        return await stops.unfreeze_group(self.platform, self.principal, reference)


class QueueHandler(APIHandler):
    """Who waits in a resource group."""

    path = "api/resource-groups/{reference}/queue"

    @operation(Action.READ_QUEUE, query=QueueQuery)
    async def get(self, reference: str) -> QueuePage:
        """List who waits in the order of the scheduler; others show as positions."""
        return await read_queue(
            self.platform,
            self.principal,
            reference,
            self.decode_query(QueueQuery),
            self.service.queues,
        )
