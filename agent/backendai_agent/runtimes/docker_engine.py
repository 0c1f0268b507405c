"""Calls to the container engine from an asyncio program, and its events.

docker-py blocks, so its calls run on a few threads of their own; one more thread
follows the engine's events for as long as the runtime is open.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

import docker
import docker.errors
import requests
import urllib3.exceptions

from backendai_agent.runtimes.base import RuntimeFailure

THREADS: Final = 16
CALL_SECONDS: Final = 120
RETRY_SECONDS: Final = (0.1, 0.3, 1.0, 3.0)
EVERYTHING: Final = ""
"""Handed out instead of a container id when events may have been missed."""

T = TypeVar("T")

_UNREACHABLE: Final = (
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)


class NotThereError(RuntimeFailure):
    """The engine knows no such container, image or network."""


class ClashError(RuntimeFailure):
    """The engine refuses because of the present state, a name in use for instance."""


class Engine:
    """One container engine, Docker or one that speaks its API."""

    def __init__(
        self, url: str, log: logging.Logger | logging.LoggerAdapter[Any]
    ) -> None:
        self.url = url
        self._log = log
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")
        self._api: docker.APIClient | None = None
        self._closed = threading.Event()
        self._follower: threading.Thread | None = None
        self._stream: Any = None

    # -- calls -------------------------------------------------------------------

    async def ask(self, question: Callable[[docker.APIClient], T]) -> T:
        """Put *question* to the engine's API on a thread; its errors come in words."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, question)

    def ask_here(self, question: Callable[[docker.APIClient], T]) -> T:
        """Put *question* on the caller's own thread, which waits for the answer."""
        return self._ask(question)

    async def ask_at_length(self, question: Callable[[docker.APIClient], T]) -> T:
        """Put a *question* that may take hours, on a thread of its own.

        Others never wait for that thread, not even the end of the program.
        """
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        thread = threading.Thread(
            target=self._settle, args=(answer, question), daemon=True
        )
        thread.start()
        return await asyncio.wrap_future(answer)

    def _settle(
        self, answer: Future[T], question: Callable[[docker.APIClient], T]
    ) -> None:
        try:
            answer.set_result(self._ask(question))
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            answer.set_exception(error)

    def _ask(self, question: Callable[[docker.APIClient], T]) -> T:
        try:
            return question(self.api)
        except docker.errors.APIError as error:
            raise describe(error) from error
        except (docker.errors.DockerException, *_UNREACHABLE) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> RuntimeFailure:
        self._log.debug("the container engine failed us: %r", error)
        return RuntimeFailure(
            f"the container engine at {self.url} does not answer; is it running,"
            " and may the agent use it?"
        )

    @property
    def api(self) -> docker.APIClient:
        """The engine's API; the first use asks for its version, and so blocks."""
        if self._api is None:
            self._api = docker.APIClient(
                base_url=self.url,
                version="auto",
                timeout=CALL_SECONDS,
                max_pool_size=THREADS,
                num_pools=2,
            )
        return self._api

    # -- events ------------------------------------------------------------------

    def follow(self, filters: dict[str, Any], heard: Callable[[str], None]) -> None:
        """Call *heard* from a thread with the name of every container that changed.

        Outages are bridged: after each one *heard* gets :data:`EVERYTHING`.
        """
        self._follower = threading.Thread(
            target=self._follow, args=(filters, heard), name="docker-events"
        )
        self._follower.daemon = True
        self._follower.start()

    def _follow(self, filters: dict[str, Any], heard: Callable[[str], None]) -> None:
        since = int(time.time()) - 1  # nothing is missed before we are connected
        failures = 0
        while not self._closed.is_set():
            try:
                for event in self._events(filters, since):
                    failures = 0
                    since = int(event.get("time", 0)) or since
                    heard(event.get("Actor", {}).get("Attributes", {}).get("name", ""))
            except (docker.errors.DockerException, *_UNREACHABLE) as error:
                self._log.debug("the container engine's events broke off: %r", error)
            if self._closed.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]):
                return
            failures += 1
            heard(EVERYTHING)

    def _events(self, filters: dict[str, Any], since: int) -> Any:
        self._stream = self.api.events(since=since, filters=filters, decode=True)
        if self._closed.is_set():
            self._stream.close()
        return self._stream

    # -- end ---------------------------------------------------------------------

    async def close(self) -> None:
        """End the threads and connections."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closed.set()
        if self._stream is not None:
            self._stream.close()
        if self._follower is not None:
            self._follower.join(timeout=5)
        self._threads.shutdown(wait=True, cancel_futures=True)
        if self._api is not None:
            self._api.close()


class Bell:
    """Hands what happens on a thread to any number of asyncio listeners."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queues: set[asyncio.Queue[str]] = set()

    def ring(self, name: str) -> None:
        """Tell every listener *name*; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, name)

    def _put(self, name: str) -> None:
        for queue in self._queues:
            queue.put_nowait(name)

    async def listen(self) -> AsyncIterator[str]:
        """Yield every name that is rung from now on."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._queues.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._queues.discard(queue)


def describe(error: docker.errors.APIError) -> RuntimeFailure:
    """Put the engine's refusal into words, keeping its own."""
    said = str(error.explanation or error).strip()
    match error.status_code:
        case 404:
            return NotThereError(said)
        case 409:
            return ClashError(said)
    return RuntimeFailure(f"the container engine refused: {said}")
