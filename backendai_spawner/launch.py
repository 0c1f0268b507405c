"""One server's errands at the hub service: find, request, await and end a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from backendai_hub.api.explanations import Why
from backendai_hub.api.sessions import SessionRequest, SpawnedSession
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.hub import HubClient
from backendai_hub.client.transport import is_transient
from backendai_hub.core.errors import ConflictError, HubError, NotFoundError
from backendai_hub.core.sessions import (
    TERMINAL,
    Attachment,
    Session,
    SessionStatus,
)
from backendai_spawner.progress import SpawnProgress
from backendai_spawner.refusals import SpawnRefusedError, ended_early

T = TypeVar("T")

PATIENT: Final = Backoff(first=0.2, most=15.0)
HOLD: Final = 15.0
"""Seconds a long-poll is held; also how old a shown reason can get."""


class _Seen(NamedTuple):
    """A session, the last event about it, and why it waits if that is news."""

    session: Session
    after: int
    why: Why | None


class Launch:
    """Brings the session of one named server to RUNNING, however long that takes.

    An outage of the service never ends it: whatever may pass is tried again, for
    ever, and only a definite answer is passed on.
    """

    def __init__(
        self,
        client: HubClient,
        attachment: Attachment,
        *,
        progress: SpawnProgress,
        log: logging.Logger,
        backoff: Backoff = PATIENT,
    ) -> None:
        self._sessions = client.sessions
        self._client = client
        self._attachment = attachment
        self._progress = progress
        self._log = log
        self._backoff = backoff

    async def find(self, key: str | None) -> SpawnedSession | None:
        """Return our live session: the one attached here, or the one *key* made."""
        server = self._attachment.server
        found = await self.persist(lambda: self._sessions.attached(server))
        if found is None and key is not None:
            found = await self.persist(lambda: self._sessions.spawned(key))
        if found is None or not self._is_ours(found.session):
            return None
        if found.session.status is SessionStatus.TERMINATING:
            self._progress.tell("Waiting for the previous session to end")
            await self.until_ended(found.session.id)
            return None
        return None if found.session.status in TERMINAL else found

    async def is_spent(self, key: str) -> bool:
        """Tell whether *key* has made a session: it would only name that one again."""
        found = await self.persist(lambda: self._sessions.spawned(key))
        return found is not None

    async def first_image(self) -> str:
        """Return the environment for people who chose none."""
        resources = await self.persist(self._client.resources)
        ready = [image for image in resources.images if image.installed]
        for image in ready or resources.images:
            return image.name
        raise SpawnRefusedError(
            "image: there is no environment to choose yet; please tell the"
            " administrator of this hub",
            reason="no-image",
            status_code=503,
        )

    async def request(self, request: SessionRequest, key: str) -> Session:
        """Ask for the session; a refusal is passed on, an outage is not."""
        return await self.persist(
            lambda: self._sessions.create(request, idempotency_key=key)
        )

    async def until_running(self, session: Session) -> Session:
        """Return *session* once it runs; raise if it ends before."""
        after, why = 0, None
        while True:
            self._progress.show(session, why)
            if session.status is SessionStatus.RUNNING:
                return session
            if session.status in TERMINAL:
                raise ended_early(session)
            session, after, told = await self._next(session.id, after)
            if session.status is not SessionStatus.PENDING:
                why = None
            else:
                # Asked for once, in case nobody has been told yet; news tell the rest.
                why = told or why or await self._ask_why(session)

    async def _ask_why(self, session: Session) -> Why | None:
        """Ask what a session waits for; who waits can wait for that, too."""
        try:
            return await self._sessions.why(session.id)
        except (HubError, OSError) as error:
            self._log.info("No explanation of %s: %s", session.id, error)
            return None

    async def end(self, session_id: str, *, force: bool) -> None:
        """End a session and return when it has; one that is gone has ended."""
        try:
            await self.persist(
                lambda: self._sessions.terminate(session_id, force=force)
            )
        except ConflictError as error:
            self._log.info("Session %s: %s", session_id, error.message)
        except NotFoundError:
            return
        await self.until_ended(session_id)

    async def until_ended(self, session_id: str) -> None:
        """Return when a session holds nothing any more."""
        after = 0
        while True:
            try:
                session, after, _ = await self._next(session_id, after)
            except SpawnRefusedError:
                return
            if session.status in TERMINAL:
                return

    async def persist(
        self,
        ask: Callable[[], Awaitable[T]],
        *,
        may_pass: Callable[[BaseException], bool] = is_transient,
    ) -> T:
        """Return what *ask* returns, asking again while its failure *may_pass*."""
        delays = self._backoff.delays()
        while True:
            try:
                return await ask()
            except (HubError, OSError) as error:
                if not may_pass(error):
                    raise
                delay = next(delays)
                self._log.warning("Asking again in %.1f s: %s", delay, error)
                self._progress.tell("The Backend.AI service does not answer; trying on")
            await asyncio.sleep(delay)

    async def _next(self, session_id: str, after: int) -> _Seen:
        """Wait a while for something to happen; return the session as it is then."""
        try:
            events = await self.persist(
                lambda: self._sessions.events(session_id, after=after, wait=HOLD),
                may_pass=_may_pass_meanwhile,
            )
            # News carry the session as it is now. Without any, what it waits for may
            # still have changed.
            session = events[-1].session if events else None
            why = next((e.why for e in reversed(events) if e.why is not None), None)
            if session is None:
                session = shown = await self.persist(
                    lambda: self._sessions.get(session_id),
                    may_pass=_may_pass_meanwhile,
                )
                why = shown.why
        except NotFoundError as error:
            raise SpawnRefusedError(
                "The session does not exist any more",
                reason=error.code,
                status_code=error.status,
            ) from error
        return _Seen(session, max([after, *(event.seq for event in events)]), why)

    def _is_ours(self, session: Session) -> bool:
        # The key comes from user_options, which users write: it must not lead to
        # somebody else's session.
        attached = session.attachment
        return attached is not None and (attached.user, attached.server) == (
            self._attachment.user,
            self._attachment.server,
        )


def _may_pass_meanwhile(error: BaseException) -> bool:
    """Tell whether a session we already have may still be well.

    A token being renewed, a limit on requests: nothing but the service's word that
    the session is gone may end a start that could be waiting for days.
    """
    return not isinstance(error, NotFoundError)
