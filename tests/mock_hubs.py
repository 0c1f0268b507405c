"""What JupyterHubs of tests leave behind, closed while their event loop still runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from jupyterhub.httpclient import JupyterHubHTTPClient

from backendai_spawner.clients import close_shared_clients


class StartedHubs:
    """The JupyterHubs that a test started, and what only their end may close.

    JupyterHub closes its own connections last, after it wrote its database; a write
    that fails leaves them open, and so does whoever asks for a page after that.
    """

    def __init__(self) -> None:
        self._apps: list[Any] = []
        self._clients: list[JupyterHubHTTPClient] = []

    def begin(self, app: Any) -> None:
        """Know of *app* from when it is configured; it may fail to start."""
        self._apps.append(app)

    def note_client(self) -> None:
        """Know of the client that JupyterHub has now; the next one replaces it."""
        if JupyterHubHTTPClient.initialized():
            self._clients.append(JupyterHubHTTPClient.instance())

    async def close(self) -> None:
        """Stop what would open connections again, then close them and the files."""
        for app in self._apps:
            _stop_timers(app)
        await _stop_tasks()
        await close_shared_clients()
        self.note_client()
        for client in self._clients:
            await client.close()
        for app in self._apps:
            if app.db_file is not None:
                app.db_file.close()


@asynccontextmanager
async def running_hub(config: Any) -> AsyncIterator[Any]:
    """Run a JupyterHub in this event loop, as the fixture ``hub_app`` does.

    That one ends with its test; here several tests may share one.
    """
    from jupyterhub.tests.mocking import MockHub  # noqa: PLC0415 - it is slow

    hubs = StartedHubs()
    MockHub.clear_instance()
    hubs.note_client()
    app = MockHub.instance(config=config)
    hubs.begin(app)
    try:
        await app.initialize()
        await app.start()
        yield app
    finally:
        if app.http_server:
            app.http_server.stop()
        await app.shutdown_cancel_tasks()
        MockHub.clear_instance()
        await hubs.close()


def _stop_timers(app: Any) -> None:
    for timer in app._periodic_callbacks.values():
        timer.stop()
    if app.metrics_collector:
        app.metrics_collector.stop()


async def _stop_tasks() -> None:
    """Cancel what is under way; a Hub whose cleanup failed did not come to that."""
    if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
