"""One conversation with the platform for everything in a kernel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from backendai_hub.client import HubClient
from backendai_hub.client.sync import LoopThread

T = TypeVar("T")


class Link:
    """A client, and the one thread in which all that waits for it does.

    Nothing is connected before it is needed: importing costs a notebook nothing.
    """

    def __init__(self, connect: Callable[[], HubClient] | None = None) -> None:
        self._connect = connect or HubClient.from_environment
        self._thread: LoopThread | None = None
        self._client: HubClient | None = None

    @property
    def client(self) -> HubClient:
        """The client; raises ``LookupError`` outside of sessions."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def thread(self) -> LoopThread:
        """Where its coroutines run."""
        if self._thread is None:
            self._thread = LoopThread()
        return self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for *work*, and return what it returns."""
        return self.thread.run(work)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Let *work* run beside the notebook."""
        return self.thread.start(work)

    def close(self) -> None:
        """Close the connections and end the thread."""
        if self._thread is None:
            return
        if self._client is not None:
            self._thread.run(self._client.close())
        self._thread.close()
        self._thread, self._client = None, None
