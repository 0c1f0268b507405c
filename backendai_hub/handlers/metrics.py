"""What operators' instruments read, at an address of its own."""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any, Final

from tornado import httpserver, web

from backendai_hub.core.loop_watch import LoopWatch

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MOST_HEADERS: Final = 8192
_MOST_BODY: Final = 1024
_IDLE_SECONDS: Final = 30.0


class _WatchedSelector(selectors.DefaultSelector):
    """Tells when the loop listens, and when it does something instead."""

    def __init__(self, watch: LoopWatch) -> None:
        super().__init__()
        self._watch = watch

    def select(self, timeout: float | None = None) -> Any:
        """Listen, between two turns."""
        self._watch.end()
        found = super().select(timeout)
        self._watch.begin()
        return found


def make_loop(watch: LoopWatch) -> asyncio.AbstractEventLoop:
    """Make an event loop whose turns are watched."""
    return asyncio.SelectorEventLoop(_WatchedSelector(watch))


def make_watch() -> LoopWatch:
    """Make a watch of the loop of this thread."""
    return LoopWatch(time.monotonic, time.thread_time)


class MetricsHandler(web.RequestHandler):
    """The one page there is; whoever reaches the address may read it."""

    def initialize(self, watch: LoopWatch) -> None:
        """Take what is to be told."""
        self._watch = watch

    def get(self) -> None:
        """Tell how the event loop does."""
        self.set_header("Content-Type", _TYPE)
        self.finish(self._watch.text())


def build_metrics(watch: LoopWatch) -> httpserver.HTTPServer:
    """Build what answers at that address; it takes next to nothing from who asks."""
    application = web.Application([("/metrics", MetricsHandler, {"watch": watch})])
    return httpserver.HTTPServer(
        application,
        max_header_size=_MOST_HEADERS,
        max_body_size=_MOST_BODY,
        idle_connection_timeout=_IDLE_SECONDS,
    )
