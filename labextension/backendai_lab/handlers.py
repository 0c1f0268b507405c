"""The platform's API on the session's own origin, as the person who asks.

Pages in JupyterLab cannot call the platform themselves: with a domain per user the
cookies are not theirs to use, and no token may be in a page's hands. They call
``<base_url>backendai/api/…`` here instead, and the request goes on to the platform
with *that person's* JupyterHub token. It is never the server's own token, which
would lend the owner's rights to everybody who may visit.
"""

from __future__ import annotations

import asyncio
import os
import re
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import aiohttp
from jupyter_server.base.handlers import APIHandler
from tornado import web
from tornado.iostream import StreamClosedError
from yarl import URL

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

API_URL: Final = "BACKENDAI_API_URL"
PLACE: Final = "/backendai/api/"
LARGEST_BODY: Final = 1 << 27
"""Beyond what a part of an upload has; bodies are passed on as they come."""

REQUEST_HEADERS: Final = (
    "Accept",
    "Accept-Language",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
    "Tus-Resumable",
    "Upload-Checksum",
    "Upload-Length",
    "Upload-Metadata",
    "Upload-Offset",
)
RESPONSE_HEADERS: Final = (
    "Accept-Ranges",
    "Cache-Control",
    "Content-Disposition",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "ETag",
    "Retry-After",
    "Tus-Extension",
    "Tus-Max-Size",
    "Tus-Resumable",
    "Tus-Version",
    "Upload-Expires",
    "Upload-Length",
    "Upload-Offset",
    "Upload-Path",
)
POLICY: Final = "Content-Security-Policy"


def is_api_path(path: str) -> bool:
    """Tell whether *path*, as it was written, stays below the API's root.

    Dots, empty segments, backslashes and encoded slashes are refused rather than
    tidied: the next server might tidy them another way.
    """
    segments = path.split("/")
    return all(
        plain not in {".", ".."}
        and (plain or position == len(segments) - 1)
        and plain.isprintable()
        and not set(plain) & set("/\\?#%")
        for position, plain in enumerate(map(unquote, segments))
    )


def forwarded_query(query: str) -> str:
    """Return *query* without what only this server needs to see."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(k, v) for k, v in pairs if k not in {"token", "_xsrf"}])


def split_api_url(url: str) -> tuple[str | None, str]:
    """Return the Unix socket of *url*, if it names one, and an HTTP URL."""
    parts = urlsplit(url)
    if parts.scheme == "http+unix":
        return unquote(parts.netloc), f"http://localhost{parts.path}"
    if parts.scheme in {"http", "https"} and parts.netloc:
        return None, url
    raise web.HTTPError(503, f"{API_URL} is not a URL this server can use")


@web.stream_request_body
class PlatformHandler(APIHandler):
    """Passes one request to the platform and streams the answer back.

    What is sent goes on as it comes, so that a part of an upload is never held here.
    """

    # A page that is merely open polls; that is no sign of somebody at work.
    _track_activity = False
    _asking: asyncio.Task[aiohttp.ClientResponse] | None = None
    _refusal: web.HTTPError | None = None

    async def prepare(self, **given: Any) -> Any:
        """Ask the platform as soon as it is known who asks."""
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(4)
        self._ends = AsyncExitStack()
        connection: Any = self.request.connection
        connection.set_max_body_size(LARGEST_BODY)
        try:
            await super().prepare(**given)
        except web.HTTPError as refusal:
            # Who is refused while still sending hears only that the line broke.
            self._refusal = refusal
            return
        if self.current_user and not self._finished:
            self._asking = asyncio.create_task(self._ask())

    async def data_received(self, chunk: bytes) -> None:
        """Pass on a part of the body, or drop it once the platform has answered."""
        if self._asking is not None:
            await self._pass(chunk, self._asking)

    def on_connection_close(self) -> None:
        """Ask for nothing that nobody waits for."""
        if self._asking is not None:
            self._asking.cancel()

    @web.authenticated
    async def head(self) -> None:
        """Ask how far something is, or how large."""
        await self._forward()

    @web.authenticated
    async def get(self) -> None:
        """Read from the platform."""
        await self._forward()

    @web.authenticated
    async def post(self) -> None:
        """Create or act."""
        await self._forward()

    @web.authenticated
    async def put(self) -> None:
        """Replace."""
        await self._forward()

    @web.authenticated
    async def patch(self) -> None:
        """Change."""
        await self._forward()

    @web.authenticated
    async def delete(self) -> None:
        """Remove."""
        await self._forward()

    async def _forward(self) -> None:
        if self._refusal is not None or self._asking is None:
            raise self._refusal or web.HTTPError(403)
        await self._pass(None, self._asking)
        try:
            async with self._ends:
                await self._relay(await self._asking)
        except (aiohttp.ClientError, TimeoutError) as error:
            if self._headers_written:
                # Half an answer was sent: breaking off is the only honest end.
                self.log.warning("The platform broke off an answer: %s", error)
                self.request.connection.close()  # type: ignore[union-attr]
                return
            raise web.HTTPError(502, "The platform does not answer") from error

    async def _ask(self) -> aiohttp.ClientResponse:
        # As it was written: Tornado would hand over a path it has decoded.
        path = str(self.request.path).partition(PLACE)[2]
        if not is_api_path(path):
            raise web.HTTPError(404, "There is no such thing here")
        socket, root = split_api_url(os.environ.get(API_URL, ""))
        url = f"{root.rstrip('/')}/{path}"
        if query := forwarded_query(self.request.query):
            url = f"{url}?{query}"
        headers = self._request_headers()
        client = await self._ends.enter_async_context(open_client(socket))
        return await self._ends.enter_async_context(
            client.request(
                str(self.request.method),
                as_written(url),
                data=self._pass_on() if self._has_body() else None,
                headers=headers,
                allow_redirects=False,
            )
        )

    async def _pass(self, part: bytes | None, asking: asyncio.Task[Any]) -> None:
        """Pass on a part of the body, unless the platform has answered already."""
        passing = asyncio.ensure_future(self._chunks.put(part))
        await asyncio.wait({passing, asking}, return_when=FIRST_COMPLETED)
        passing.cancel()

    def _has_body(self) -> bool:
        given = self.request.headers
        return given.get("Content-Length", "0") != "0" or "Transfer-Encoding" in given

    async def _pass_on(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    def _request_headers(self) -> dict[str, str]:
        hub_auth = getattr(self.identity_provider, "hub_auth", None)
        token = hub_auth.get_token(self) if hub_auth is not None else None
        if not token:
            raise web.HTTPError(403, "Log in through JupyterHub first")
        headers = pick(self.request.headers, REQUEST_HEADERS)
        headers["Authorization"] = f"token {token}"
        headers["Accept-Encoding"] = "identity"  # the length told is the one sent
        if self._has_body() and (length := self.request.headers.get("Content-Length")):
            headers["Content-Length"] = length
        return headers

    async def _relay(self, response: aiohttp.ClientResponse) -> None:
        if 300 <= response.status < 400 and response.status != 304:
            raise web.HTTPError(502, "The platform sent us elsewhere; not following")
        self.set_status(response.status, response.reason)
        for name in RESPONSE_HEADERS:
            self.clear_header(name)
        for name, value in pick(response.headers, (*RESPONSE_HEADERS, POLICY)).items():
            self.set_header(name, value)
        if location := response.headers.get("Location"):
            self.set_header("Location", self._here(location))
        self.set_header("X-Content-Type-Options", "nosniff")
        try:
            async for chunk in response.content.iter_any():
                self.write(chunk)
                await self.flush()
            await self.finish()
        except StreamClosedError:
            self.log.debug("The browser went away from %s", self.request.path)

    def _here(self, location: str) -> str:
        """Return where on this server the platform's address *location* is."""
        root = urlsplit(split_api_url(os.environ.get(API_URL, ""))[1]).path
        _, _, rest = urlsplit(location).path.partition(f"{root.rstrip('/')}/")
        return f"{self.base_url.rstrip('/')}{PLACE}{rest}" if rest else ""


def pick(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return those of *headers* that are in *names*."""
    return {name: headers[name] for name in names if name in headers}


def as_written(url: str) -> URL:
    """Return *url* for aiohttp so that it is sent byte for byte."""
    return URL(url, encoded=True)


def open_client(socket: str | None) -> aiohttp.ClientSession:
    """Open a client for one request, over *socket* if there is one.

    Events are sent at least every 15 seconds, so a silence of a minute is a
    connection that died; there is no limit on the whole.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
    connector = aiohttp.UnixConnector(path=socket) if socket else None
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


def keep_tokens(server: ServerApp) -> None:
    """Leave the visitor's JupyterHub token out of the pages that *server* sends.

    JupyterHub writes it into JupyterLab's page, where every script could read it.
    Without it JupyterLab sends its cookie, which no script can read, and proves by its
    XSRF token that the request is its own.
    """
    provider: Any = server.identity_provider
    fill = getattr(provider, "page_config_hook", None)
    if fill is None:
        return  # not started by a JupyterHub

    def fill_without_token(handler: Any, config: dict[str, Any]) -> dict[str, Any]:
        return {**fill(handler, config), "token": ""}

    provider.page_config_hook = fill_without_token


def add_handlers(server: ServerApp) -> None:
    """Serve ``<base_url>backendai/api/…`` on *server*."""
    base = re.escape(server.base_url.rstrip("/"))
    application: web.Application = server.web_app
    application.add_handlers(".*$", [(f"{base}{PLACE}.*", PlatformHandler)])
