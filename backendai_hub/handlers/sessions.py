"""Routes about sessions, and what the launch form needs."""

from __future__ import annotations

import asyncio

import msgspec

from backendai_hub import __version__
from backendai_hub.api.sessions import (
    EventMessage,
    HistoryPage,
    Resources,
    SessionChange,
    SessionLog,
    SessionPage,
    SessionRequest,
    ShownSession,
    SpawnedSession,
)
from backendai_hub.core.access import Action
from backendai_hub.core.errors import MalformedRequestError
from backendai_hub.core.sessions import Session
from backendai_hub.core.tenancy import Me
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.page_cache import PageKey
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.logs import LogQuery, read_log
from backendai_hub.operations.resources import load_resources
from backendai_hub.operations.session_names import rename_session
from backendai_hub.operations.submit import submit_session
from backendai_hub.operations.users import describe_self


class Version(msgspec.Struct, frozen=True):
    """What answers here."""

    version: str


class TerminateRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How to end a session."""

    force: bool = False


class SpawnedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which Hub server."""

    server: str


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Facts after number ``after``; wait up to ``wait`` seconds for one."""

    after: int = 0
    wait: float = 0.0


class VersionHandler(APIHandler):
    """The root of the API."""

    path = "api/"

    @operation(Action.READ_VERSION)
    async def get(self) -> Version:
        """Say which version answers."""
        return Version(__version__)


class MeHandler(APIHandler):
    """The caller."""

    path = "api/me"

    @operation(Action.READ_SELF)
    async def get(self) -> Me:
        """Say who the caller is here."""
        return describe_self(self.platform, self.principal, self.require_user())


class ResourcesHandler(APIHandler):
    """What can be launched."""

    path = "api/resources"

    @operation(Action.READ_RESOURCES)
    async def get(self) -> Resources:
        """List environments, limits, and what is free now."""
        return await load_resources(self.platform, self.require_user())


class SessionsHandler(APIHandler):
    """The collection of sessions the caller may see."""

    path = "api/sessions"

    @operation(Action.READ_SESSION, query=verbs.ListQuery, answer=SessionPage)
    async def get(self) -> msgspec.Raw:
        """List sessions, a page at a time."""
        self.require_user()
        key = PageKey(verbs.sight_of(self.principal), self.request.query)
        pages, versions = self.service.pages, self.platform.database.versions
        body = pages.find(key, versions)
        if body is None:
            query = self.decode_query(verbs.ListQuery)
            wanted = verbs.choose_sessions(key.sight, query)
            reading = pages.begin(wanted.owner_id, versions)
            page = await verbs.read_page(self.platform, wanted, query)
            body = msgspec.json.encode(page)
            pages.keep(key, reading, body)
        return msgspec.Raw(body)

    @operation(Action.CREATE_SESSION, status=201)
    async def post(self, body: SessionRequest) -> Session:
        """Ask for a session. It starts when every limit and a node allow it."""
        done = await submit_session(
            self.platform,
            self.principal,
            self.require_user(),
            body,
            self.request.headers.get("Idempotency-Key"),
        )
        if not done.created:
            self.set_status(200)
        self.set_header(
            "Location", f"{self.service.prefix}api/sessions/{done.session.id}"
        )
        return done.session


class SessionHandler(APIHandler):
    """One session."""

    path = "api/sessions/{session_id}"

    @operation(Action.READ_SESSION)
    async def get(self, session_id: str) -> ShownSession:
        """Read one session."""
        return await verbs.get_session(self.platform, self.principal, session_id)

    @operation(Action.RENAME_SESSION)
    async def patch(self, session_id: str, body: SessionChange) -> Session:
        """Give a session that has not ended another name; where it answers stays."""
        return await rename_session(
            self.platform, self.principal, session_id, body.name
        )


class TerminateHandler(APIHandler):
    """The end of one session."""

    path = "api/sessions/{session_id}/terminate"

    @operation(Action.TERMINATE_SESSION, status=202)
    async def post(self, session_id: str, body: TerminateRequest) -> Session:
        """End a session; ``force`` does not wait for its node."""
        return await verbs.terminate_session(
            self.platform, self.principal, session_id, force=body.force
        )


class SessionEventsHandler(APIHandler):
    """The history of one session."""

    path = "api/sessions/{session_id}/events"

    @operation(Action.READ_EVENTS, query=EventsQuery)
    async def get(self, session_id: str) -> list[EventMessage]:
        """List what has happened to a session, waiting for news if asked to."""
        query = self.decode_query(EventsQuery)
        if not 0 <= query.wait <= 60 or query.after < 0:
            raise MalformedRequestError(
                "wait is between 0 and 60 seconds, after is not negative"
            )
        signals = self.service.signals
        ticket = signals.ticket("events")
        found = await self._list(session_id, query.after)
        clock = asyncio.get_running_loop().time
        until = clock() + query.wait
        while not (found or self.service.stopping) and (left := until - clock()) > 0:
            await signals.wait("events", ticket, left)
            ticket = signals.ticket("events")
            found = await self._list(session_id, query.after)
        return found

    async def _list(self, session_id: str, after: int) -> list[EventMessage]:
        return await verbs.list_messages(
            self.platform, self.principal, after=after, session_id=session_id
        )


class SessionLogHandler(APIHandler):
    """What one session has printed."""

    path = "api/sessions/{session_id}/log"

    @operation(Action.READ_LOG, query=LogQuery)
    async def get(self, session_id: str) -> SessionLog:
        """Read the end of what a session has printed.

        While it runs its node is asked; of a batch session it is kept after its end.
        """
        return await read_log(
            self.platform,
            self.principal,
            session_id,
            query=self.decode_query(LogQuery),
            desk=self.service.logs,
        )


class SessionHistoryHandler(APIHandler):
    """What the scheduler has tried for one session."""

    path = "api/sessions/{session_id}/history"

    @operation(Action.READ_SESSION, query=verbs.HistoryQuery)
    async def get(self, session_id: str) -> HistoryPage:
        """List the attempts to place a session, like ones in a row as one."""
        query = self.decode_query(verbs.HistoryQuery)
        return await verbs.list_history(
            self.platform, self.principal, session_id, query
        )


class SpawnedHandler(APIHandler):
    """The session behind a Hub server; for the spawner."""

    path = "api/spawned"

    @operation(Action.READ_SPAWNED, query=SpawnedQuery)
    async def get(self) -> SpawnedSession:
        """Find the live session attached to a Hub server."""
        query = self.decode_query(SpawnedQuery)
        return await verbs.get_spawned(
            self.platform, self.require_user(), server=query.server
        )


class SpawnedByKeyHandler(APIHandler):
    """The session a key has made; for the spawner."""

    path = "api/spawned/{key}"

    @operation(Action.READ_SPAWNED)
    async def get(self, key: str) -> SpawnedSession:
        """Find the session an idempotency key has made."""
        return await verbs.get_spawned(self.platform, self.require_user(), key=key)
