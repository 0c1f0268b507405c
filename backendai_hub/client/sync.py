"""The client without ``await``, for notebooks and scripts.

One background thread runs the asynchronous client's event loop, so it works inside
a notebook, where a loop is running already.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from backendai_hub.api.sessions import EventMessage, Resources, SessionRequest
from backendai_hub.client.hub import Caller, HubClient
from backendai_hub.client.sessions import Events
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus

T = TypeVar("T")
SessionList = list[Session]


class LoopThread:
    """An event loop in a daemon thread; coroutines are handed to it and awaited."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="backendai-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* to its end and return what it returns."""
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("this client is closed; make a new one")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and wait for the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()


class SyncSessions:
    """Ask for sessions, look at them and end them, without ``await``."""

    def __init__(self, client: HubClient, thread: LoopThread) -> None:
        self._client = client
        self._run = thread.run

    def create(
        self, request: SessionRequest, *, idempotency_key: str | None = None
    ) -> Session:
        """Ask for a session; the same key always names the same session."""
        return self._run(
            self._client.sessions.create(request, idempotency_key=idempotency_key)
        )

    def get(self, session_id: str) -> Session:
        """Return one session."""
        return self._run(self._client.sessions.get(session_id))

    def list(self, **filters: Any) -> SessionList:
        """Return sessions; takes what :meth:`Sessions.list` takes."""

        async def gather() -> SessionList:
            return [session async for session in self._client.sessions.list(**filters)]

        return self._run(gather())

    def terminate(self, session_id: str, *, force: bool = False) -> Session:
        """End a session; what waits is cancelled."""
        return self._run(self._client.sessions.terminate(session_id, force=force))

    def events(self, session_id: str, *, after: int = 0, wait: float = 0.0) -> Events:
        """Return what happened to a session since event *after*."""
        return self._run(
            self._client.sessions.events(session_id, after=after, wait=wait)
        )

    def watch(self, session_id: str) -> Iterator[EventMessage]:
        """Yield what happens to a session until it has ended."""
        after = 0
        while True:
            for event in self.events(session_id, after=after, wait=20.0):
                after = event.seq
                yield event
                if event.status in TERMINAL:
                    return

    def wait(self, session_id: str) -> Session:
        """Return the session once it runs, or has ended before it could."""
        after = 0
        while True:
            session = self.get(session_id)
            if session.status is SessionStatus.RUNNING or session.status in TERMINAL:
                return session
            for event in self.events(session_id, after=after, wait=20.0):
                after = event.seq


class Client:
    """Talk to the hub service, synchronously.

    Inside a session ``Client()`` needs no arguments.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if url is None:
            self._client = HubClient.from_environment(environ)
        else:
            self._client = HubClient(url, token=token, token_file=token_file)
        self._thread = LoopThread()
        self.sessions = SyncSessions(self._client, self._thread)

    def me(self) -> Caller:
        """Return who the service takes the caller for."""
        return self._thread.run(self._client.me())

    def resources(self) -> Resources:
        """Return the environments to choose from, and the room there is now."""
        return self._thread.run(self._client.resources())

    def version(self) -> str:
        """Return the service's version."""
        return self._thread.run(self._client.version())

    def close(self) -> None:
        """Close the connections and end the background thread."""
        with suppress(RuntimeError):
            self._thread.run(self._client.close())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
