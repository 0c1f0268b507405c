"""The sessions' part of the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

import msgspec

from backendai_hub.api.explanations import DryRun, Why
from backendai_hub.api.sessions import (
    EventMessage,
    HistoryPage,
    SessionLog,
    SessionPage,
    SessionRequest,
    ShownSession,
    SpawnedSession,
)
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.sse import read_events
from backendai_hub.client.transport import Transport, is_transient, segment
from backendai_hub.core.attempts import Attempt
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.live_usage import LiveUsage, SessionUsage
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus

Events = list[EventMessage]


class Sessions:
    """Ask for sessions, look at them, follow what happens to them, end them."""

    def __init__(self, transport: Transport, act_for: str | None) -> None:
        self._transport = transport
        self._act_for = act_for

    async def create(
        self, request: SessionRequest, *, idempotency_key: str | None = None
    ) -> Session:
        """Ask for a session.

        The same key always names the same session: asking again returns it, in
        whatever state it is.
        """
        return await self._transport.post(
            "sessions", request, Session, key=idempotency_key, act_for=self._act_for
        )

    async def dry_run(self, request: SessionRequest) -> DryRun:
        """Return what would become of a session if it were asked for now."""
        return await self._transport.post(
            "sessions/dry-run", request, DryRun, act_for=self._act_for
        )

    async def get(self, session_id: str) -> ShownSession:
        """Return one session; while it waits, with why it does."""
        return await self._transport.get(
            _path(session_id), ShownSession, act_for=self._act_for
        )

    async def list(
        self,
        *,
        status: str | None = None,
        owner: str | None = None,
        order: str | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[Session]:
        """Yield sessions, page after page, as they are asked for."""
        after: str | None = None
        while True:
            params = {
                "status": status,
                "owner": owner,
                "order": order,
                "limit": page_size,
                "after": after,
            }
            page = await self._transport.get(
                "sessions", SessionPage, params=params, act_for=self._act_for
            )
            for session in page.items:
                yield session
            after = page.next
            if after is None:
                return

    async def why(self, session_id: str) -> Why:
        """Return why a session waits, what would start it now, and when it starts."""
        return await self._transport.get(
            f"{_path(session_id)}/why", Why, act_for=self._act_for
        )

    async def rename(self, session_id: str, name: str) -> Session:
        """Give a session that has not ended another name."""
        return await self._transport.patch(
            _path(session_id), {"name": name}, Session, act_for=self._act_for
        )

    async def terminate(self, session_id: str, *, force: bool = False) -> Session:
        """End a session; what waits is cancelled. Ending it twice is no error."""
        return await self._transport.post(
            f"{_path(session_id)}/terminate",
            {"force": force},
            Session,
            act_for=self._act_for,
        )

    async def events(
        self, session_id: str, *, after: int = 0, wait: float = 0.0
    ) -> Events:
        """Return what happened to a session since event *after*.

        The service holds the answer up to *wait* seconds for something to happen.
        """
        return await self._transport.get(
            f"{_path(session_id)}/events",
            Events,
            params={"after": after, "wait": wait or None},
            act_for=self._act_for,
            wait=wait,
        )

    async def history(
        self, session_id: str, *, page_size: int = 50
    ) -> AsyncIterator[Attempt]:
        """Yield what was tried to place a session, page after page, oldest first."""
        after: int | None = None
        while True:
            page = await self._transport.get(
                f"{_path(session_id)}/history",
                HistoryPage,
                params={"after": after, "limit": page_size},
                act_for=self._act_for,
            )
            for attempt in page.items:
                yield attempt
            after = page.next
            if after is None:
                return

    async def wait(
        self, session_id: str, *, until: Literal["running", "ended"] = "running"
    ) -> Session:
        """Return the session once it runs or has ended, or only once it has ended.

        Of a batch session that has ended, ``result`` and ``exit_code`` say how.
        """
        after = 0
        while True:
            session = await self.get(session_id)
            running = session.status is SessionStatus.RUNNING and until == "running"
            if running or session.status in TERMINAL:
                return session
            for event in await self.events(session_id, after=after, wait=20.0):
                after = event.seq

    async def log(
        self,
        session_id: str,
        *,
        tail: int = 1000,
        attempt: int | None = None,
        host: str | None = None,
        follow: bool = False,
    ) -> SessionLog:
        """Return the end of what a session has printed, in its last attempt.

        Of its main container, unless *host* names another one, such as ``sub1``. With
        *follow* whoever watches the session (:meth:`watch`) is told when there is more.
        """
        return await self._transport.get(
            f"{_path(session_id)}/log",
            SessionLog,
            params={
                "tail": tail,
                "attempt": attempt,
                "host": host,
                "follow": "true" if follow else None,
            },
            act_for=self._act_for,
        )

    async def usage(self, session_id: str, *, since: float = 0.0) -> SessionUsage:
        """Return what a session uses now, what it used after *since*, and in all."""
        return await self._transport.get(
            f"{_path(session_id)}/usage",
            SessionUsage,
            params={"since": since or None},
            act_for=self._act_for,
        )

    async def live_usage(
        self, sessions: Sequence[str] | None = None, *, owner: str | None = None
    ) -> LiveUsage:
        """Return what one's own sessions use now, or these, or with ``*`` everybody's.

        Who may not see one of *sessions* is not told of it.
        """
        named = None if sessions is None else ",".join(sessions)
        return await self._transport.get(
            "usage/live",
            LiveUsage,
            params={"sessions": named, "owner": owner},
            act_for=self._act_for,
        )

    async def follow(self, *, after: int = 0) -> AsyncIterator[EventMessage]:
        """Yield every event the caller may see after *after*, through any outage."""
        backoff = Backoff(first=0.2, most=10.0)
        delays = backoff.delays()
        while True:
            try:
                async with self.listen(after=after) as events:
                    async for event in events:
                        after = event.seq
                        delays = backoff.delays()
                        yield event
            except Exception as error:
                if not is_transient(error):
                    raise
            await asyncio.sleep(next(delays))

    async def spawned(self, key: str) -> SpawnedSession | None:
        """Return the session that idempotency key *key* made, if there is one."""
        return await self._find(f"spawned/{segment(key)}", None)

    async def attached(self, server: str) -> SpawnedSession | None:
        """Return the live session attached to the user's server *server*, if any."""
        return await self._find("spawned", {"server": server})

    async def _find(
        self, path: str, params: dict[str, Any] | None
    ) -> SpawnedSession | None:
        try:
            return await self._transport.get(
                path, SpawnedSession, params=params, act_for=self._act_for
            )
        except NotFoundError:
            return None

    @asynccontextmanager
    async def listen(
        self, *, after: int | None = None
    ) -> AsyncIterator[AsyncIterator[EventMessage]]:
        """Listen to what happens after *after*, or from now on, until it breaks off.

        What happens once this is entered is not missed: what is listed inside and what
        the events tell come to the whole.
        """
        answer = await self._transport.stream(
            "events", params={"after": after}, act_for=self._act_for
        )
        async with answer, aclosing(_read(answer.content)) as events:
            yield events

    @asynccontextmanager
    async def watch(self, session_id: str) -> AsyncIterator[AsyncIterator[None]]:
        """Yield when a session is different, or has printed more, until it breaks off.

        Of what it prints one is told who has had its log followed meanwhile.
        """
        answer = await self._transport.stream(
            "events", params={"changes": "1"}, act_for=self._act_for
        )
        async with answer, aclosing(_notice(answer.content, session_id)) as noticed:
            yield noticed


class _Changed(msgspec.Struct):
    logs: list[str] = []


async def _read(content: AsyncIterable[bytes]) -> AsyncGenerator[EventMessage, None]:
    async for event in read_events(content):
        if event.event == "session":
            yield msgspec.json.decode(event.text, type=EventMessage)


async def _notice(
    content: AsyncIterable[bytes], session_id: str
) -> AsyncGenerator[None, None]:
    async for event in read_events(content):
        if event.event == "session":
            message = msgspec.json.decode(event.text, type=EventMessage)
            is_news = message.session_id == session_id
        else:
            changed = msgspec.json.decode(event.text, type=_Changed)
            is_news = session_id in changed.logs
        if is_news:
            yield


def _path(session_id: str) -> str:
    return f"sessions/{segment(session_id)}"
