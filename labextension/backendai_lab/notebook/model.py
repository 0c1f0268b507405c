"""What is known of sessions at the moment, kept up to date by one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final
from weakref import WeakSet

import aiohttp
import msgspec
from traitlets import Dict, Enum, HasTraits, Unicode

from backendai_hub.api.explanations import Why
from backendai_hub.api.sessions import EventMessage
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.transport import is_transient
from backendai_hub.core.errors import HubError
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus
from backendai_lab.notebook.link import Link

USAGE_SECONDS: Final = 2.0
MOST_ENDED: Final = 20
"""So many sessions that have ended while somebody watched stay in sight."""

_OUTAGES: Final = (HubError, LookupError, OSError, aiohttp.ClientError)
_WAITING: Final = frozenset({SessionStatus.PENDING, SessionStatus.RESERVED})


class SessionsModel(HasTraits):
    """The caller's live sessions, why they wait, and what they use.

    It listens while somebody watches, and stops by itself when nobody does any more.
    Traits are set in the link's thread: who observes them must not wait there.
    """

    sessions = Dict(help="Sessions by their ids, newest first.")
    why = Dict(help="Why those that wait do, by their ids.")
    usage = Dict(help="What those that run use, by their ids.")
    state = Enum(("idle", "connecting", "live", "retrying"), "idle")
    error = Unicode(help="Why the last thing did not work.")

    def __init__(self, link: Link, *, backoff: Backoff | None = None) -> None:
        super().__init__()
        self._link = link
        self._backoff = backoff or Backoff(first=0.5, most=10.0)
        self._watchers: WeakSet[object] = WeakSet()
        self._listening: Future[None] | None = None

    def watch(self, watcher: object) -> None:
        """Keep up to date as long as *watcher* lives and has not left."""
        self._watchers.add(watcher)
        if self._listening is None or self._listening.done():
            self.state = "connecting"
            self._listening = self._link.start(self._keep_up())

    def leave(self, watcher: object) -> None:
        """Do without *watcher*; the last who leaves ends the listening."""
        self._watchers.discard(watcher)
        if not self._watchers and self._listening is not None:
            self._listening.cancel()
            self._listening = None
            self.state = "idle"

    def put(self, session: Session) -> None:
        """Take what is known of one session, unless more is known already."""
        known = self.sessions.get(session.id)
        if known is not None and known.revision > session.revision:
            return
        self.sessions = _arrange([*_without(self.sessions, session.id), session])
        if session.status not in _WAITING and session.id in self.why:
            self.why = {k: v for k, v in self.why.items() if k != session.id}

    def stop(self, session_id: str) -> Future[Session]:
        """End a session. It is shown as ending at once, and as it was on a refusal."""
        before = self.sessions.get(session_id)
        if before is not None:
            stopping = (
                SessionStatus.CANCELLED
                if before.status is SessionStatus.PENDING
                else SessionStatus.TERMINATING
            )
            self.put(msgspec.structs.replace(before, status=stopping))
        return self._link.start(self._stop(session_id, before))

    async def _stop(self, session_id: str, before: Session | None) -> Session:
        try:
            session = await self._link.client.sessions.terminate(session_id)
        except HubError as error:
            self.error = error.message
            if before is not None:
                self.put(before)
            raise
        self.put(session)
        return session

    async def _keep_up(self) -> None:
        delays = self._backoff.delays()
        while self._watchers:
            try:
                await self._listen()
                delays = self._backoff.delays()
            except _OUTAGES as error:
                self.error = getattr(error, "message", "") or str(error)
                if not is_transient(error):
                    self.state = "idle"
                    return
            self.state = "retrying"
            await asyncio.sleep(next(delays))

    async def _listen(self) -> None:
        client = self._link.client
        async with client.sessions.listen() as events:
            found = [s async for s in client.sessions.list(status="live")]
            ended = [s for s in self.sessions.values() if s.status in TERMINAL]
            gone = [s for s in ended if s.id not in {f.id for f in found}]
            self.sessions = _arrange([*found, *gone])
            for session in found:
                if session.status in _WAITING:
                    await self._ask_why(session.id)
            self.state, self.error = "live", ""
            measuring = asyncio.create_task(self._measure())
            try:
                async for event in events:
                    if not self._watchers:
                        return
                    self._take(event)
            finally:
                measuring.cancel()

    def _take(self, event: EventMessage) -> None:
        if event.why is not None and event.session_id:
            self.why = {**self.why, event.session_id: event.why}
        if event.session is not None:
            self.put(event.session)

    async def _ask_why(self, session_id: str) -> None:
        why: Why | None = (await self._link.client.sessions.get(session_id)).why
        if why is not None:
            self.why = {**self.why, session_id: why}

    async def _measure(self) -> None:
        while True:
            running = [
                s for s in self.sessions.values() if s.status is SessionStatus.RUNNING
            ]
            if running:
                with suppress(*_OUTAGES):  # what is used is not worth a word
                    found = await self._link.client.sessions.live_usage()
                    self.usage = {item.session_id: item for item in found.items}
            await asyncio.sleep(USAGE_SECONDS)


def _without(sessions: dict[str, Session], session_id: str) -> list[Session]:
    return [s for s in sessions.values() if s.id != session_id]


def _arrange(sessions: Iterable[Session]) -> dict[str, Session]:
    """Put the newest first, and drop what ended long before the others."""
    newest = sorted(sessions, key=lambda s: (s.created_at, s.id), reverse=True)
    ended = [s.id for s in newest if s.status in TERMINAL][MOST_ENDED:]
    return {s.id: s for s in newest if s.id not in ended}
