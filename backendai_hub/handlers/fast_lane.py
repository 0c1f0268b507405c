"""Answers what is asked for most, a page of sessions, without going the whole way.

Where both whose credential it is and the page itself are known and still true
(:mod:`.identities`, :mod:`.page_cache`), there is nothing left to decide, and finding
a route, a handler and its arguments takes longer than the answer. Such a request is
counted and answered as :class:`.sessions.SessionsHandler` would. Everything else goes
the usual way: in doubt, nothing is decided here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, cast

from tornado import httputil, web

from backendai_hub.core.access import PEOPLE
from backendai_hub.handlers.base import SAFE_HEADERS, Service, make_request_id
from backendai_hub.handlers.identify import ACT_FOR, Identity, note_use
from backendai_hub.handlers.identities import Shown
from backendai_hub.handlers.limiter import RateState, rate_headers
from backendai_hub.handlers.page_cache import PageKey
from backendai_hub.handlers.sessions import SessionsHandler
from backendai_hub.operations.sessions import sight_of

_OK: Final = httputil.ResponseStartLine(
    "HTTP/1.1", HTTPStatus.OK.value, HTTPStatus.OK.phrase
)


class _Headers(dict[str, str]):
    """Headers that are right as they are; checking each would cost the most here."""

    get_all = dict.items


class FastLane(httputil.HTTPServerConnectionDelegate):
    """Stands in front of the application."""

    def __init__(self, application: web.Application, service: Service) -> None:
        self.application = application
        self._service = service
        self._path = f"{service.prefix}{SessionsHandler.path}"

    def start_request(
        self, server_conn: object, request_conn: httputil.HTTPConnection
    ) -> httputil.HTTPMessageDelegate:
        """Look at a new request before the application does."""
        return _Request(self, server_conn, request_conn)

    def on_close(self, server_conn: object) -> None:
        """Tell the application of the end of a connection."""
        self.application.on_close(server_conn)

    def answer(
        self, start: Any, headers: httputil.HTTPHeaders, address: Any
    ) -> tuple[_Headers, bytes] | None:
        """Return the answer to this request, if it is known; counts it then."""
        path, _, query = start.path.partition("?")
        if start.method != "GET" or path != self._path or _has_body(headers):
            return None
        shown = Shown.of(headers, address, ACT_FOR)
        if shown is None:
            return None
        service = self._service
        found: Identity | None = service.identities.find(shown, service.platform)
        if found is None or found.actor is None:
            return None
        sight = sight_of(found.principal)
        if found.principal.caller not in PEOPLE or sight.extent is None:
            return None
        key = PageKey(sight, query)
        body = service.pages.find(key, service.platform.database.versions)
        limiter = service.limiter
        if body is None or limiter.is_spent(found.rate_key, found.rate_limit):
            return None
        note_use(service.platform, found)
        state = limiter.count(found.rate_key, found.rate_limit)
        return _make_headers(state, len(body)), body


def _has_body(headers: httputil.HTTPHeaders) -> bool:
    return "Content-Length" in headers or "Transfer-Encoding" in headers


def _make_headers(state: RateState, length: int) -> _Headers:
    return _Headers(
        [
            ("Date", formatdate(time.time(), usegmt=True)),
            *SAFE_HEADERS.items(),
            ("X-Request-Id", make_request_id()),
            *rate_headers(state),
            ("Content-Length", str(length)),
        ]
    )


class _Request(httputil.HTTPMessageDelegate):
    """One request: answered here, or handed on as it comes."""

    def __init__(
        self,
        lane: FastLane,
        server_conn: object,
        request_conn: httputil.HTTPConnection,
    ) -> None:
        self._lane = lane
        self._server_conn = server_conn
        self._connection = request_conn
        self._answer: tuple[_Headers, bytes] | None = None
        self._usual: httputil.HTTPMessageDelegate | None = None

    def headers_received(
        self, start_line: Any, headers: httputil.HTTPHeaders
    ) -> Awaitable[None] | None:
        """Decide which way it goes."""
        address = cast("Any", self._connection).context.remote_ip
        self._answer = self._lane.answer(start_line, headers, address)
        if self._answer is not None:
            return None
        application = self._lane.application
        self._usual = application.start_request(self._server_conn, self._connection)
        return self._usual.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Hand a piece of the body on."""
        return None if self._usual is None else self._usual.data_received(chunk)

    def finish(self) -> None:
        """Answer, now that the request is complete."""
        if self._usual is not None:
            self._usual.finish()
        elif self._answer is not None:
            headers, body = self._answer
            written = self._connection.write_headers(_OK, cast("Any", headers), body)
            # Who has gone away meanwhile needs no answer.
            written.add_done_callback(lambda future: future.exception())
            self._connection.finish()

    def on_connection_close(self) -> None:
        """Tell that whoever asked has gone."""
        if self._usual is not None:
            self._usual.on_connection_close()
