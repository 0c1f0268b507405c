"""Passing HTTP on: what belongs to one hop stays behind, all else goes through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any, Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

CHUNK: Final = 64 * 1024
LONGEST_HEADER: Final = 64 * 1024
"""Cookies of many extensions, and tokens, are longer than servers' usual limits."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connection(web.RequestHandler):
    """One connection to us.

    What is not HTTP is refused without ceremony: it puts no traceback, and nothing
    that was sent, into the log.
    """

    gone: Callable[[], None] | None = None
    """Called once when the connection has ended."""

    def connection_lost(self, exc: BaseException | None) -> None:
        """Clean up, and tell whoever counts connections."""
        super().connection_lost(exc)
        gone, self.gone = self.gone, None
        if gone is not None:
            gone()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be handled."""
        if status != 400 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        self.logger.debug("a request could not be read: %s", type(exc).__name__)
        response = web.Response(status=400, text="This is not a valid HTTP request.\n")
        response.force_close()
        return response


class Server(web.Server):
    """Makes a :class:`Connection` of every connection."""

    def __call__(self) -> Connection:
        """Make the protocol of a new connection."""
        return Connection(self, loop=self._loop, **self._kwargs)


def make_server(handler: Handler, **options: Any) -> Server:
    """Make a server whose *handler* passes requests on."""
    return Server(
        handler,
        access_log=None,
        # Without it a reader that goes away would be noticed at the next write,
        # which on a quiet event stream never comes.
        handler_cancellation=True,
        lingering_time=2.0,
        max_line_size=LONGEST_HEADER,
        max_field_size=LONGEST_HEADER,
        **options,
    )


def open_client(connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
    """Open a client that passes requests on and adds nothing of its own."""
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        max_field_size=LONGEST_HEADER,
        max_line_size=LONGEST_HEADER,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0),
    )


def end_to_end(
    headers: CIMultiDictProxy[str], *, drop: Collection[str] = ()
) -> CIMultiDict[str]:
    """Copy *headers* without those of one hop, those it names, and *drop*."""
    named = {
        name.strip().lower()
        for value in headers.getall("Connection", ())
        for name in value.split(",")
    }
    left_out = HOP_BY_HOP | named | set(drop)
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in left_out
    )


def pass_body(request: web.BaseRequest) -> AsyncIterator[bytes] | None:
    """Return the request's body as a stream, or None if it has none."""
    return request.content.iter_chunked(CHUNK) if request.body_exists else None


async def pass_on(
    request: web.BaseRequest, answer: aiohttp.ClientResponse
) -> web.StreamResponse:
    """Stream *answer* to whoever asked, as it comes and no faster than it goes."""
    async with answer:
        response = web.StreamResponse(
            status=answer.status,
            reason=answer.reason,
            headers=end_to_end(answer.headers),
        )
        try:
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        except (OSError, aiohttp.ClientError):
            # Too late for another answer: let the break be seen as one.
            if request.transport is not None:
                request.transport.abort()
        return response
