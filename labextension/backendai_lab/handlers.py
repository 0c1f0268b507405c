"""The platform's API on the session's own origin, as the person who asks.

Pages in JupyterLab cannot call the platform themselves: with a domain per user the
cookies are not theirs to use, and no token may be in a page's hands. They call
``<base_url>backendai/api/…`` here instead, and the request goes on to the platform
with *that person's* JupyterHub token. It is never the server's own token, which
would lend the owner's rights to everybody who may visit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
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
LARGEST_BODY: Final = 1 << 20

REQUEST_HEADERS: Final = (
    "Accept",
    "Accept-Language",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
)
RESPONSE_HEADERS: Final = ("Cache-Control", "Content-Type", "ETag", "Retry-After")


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


class PlatformHandler(APIHandler):
    """Passes one request to the platform and streams the answer back."""

    # A page that is merely open polls; that is no sign of somebody at work.
    _track_activity = False

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
        # As it was written: Tornado would hand over a path it has decoded.
        path = str(self.request.path).partition(PLACE)[2]
        if not is_api_path(path):
            raise web.HTTPError(404, "There is no such thing here")
        if len(self.request.body) > LARGEST_BODY:
            raise web.HTTPError(413, f"At most {LARGEST_BODY} bytes can be sent")
        socket, root = split_api_url(os.environ.get(API_URL, ""))
        url = f"{root.rstrip('/')}/{path}"
        if query := forwarded_query(self.request.query):
            url = f"{url}?{query}"
        try:
            async with (
                open_client(socket) as client,
                client.request(
                    str(self.request.method),
                    as_written(url),
                    data=self.request.body or None,
                    headers=self._request_headers(),
                    allow_redirects=False,
                ) as response,
            ):
                await self._relay(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            if self._headers_written:
                # Half an answer was sent: breaking off is the only honest end.
                self.log.warning("The platform broke off an answer: %s", error)
                self.request.connection.close()  # type: ignore[union-attr]
                return
            raise web.HTTPError(502, "The platform does not answer") from error

    def _request_headers(self) -> dict[str, str]:
        hub_auth = getattr(self.identity_provider, "hub_auth", None)
        token = hub_auth.get_token(self) if hub_auth is not None else None
        if not token:
            raise web.HTTPError(403, "Log in through JupyterHub first")
        headers = pick(self.request.headers, REQUEST_HEADERS)
        headers["Authorization"] = f"token {token}"
        return headers

    async def _relay(self, response: aiohttp.ClientResponse) -> None:
        if 300 <= response.status < 400 and response.status != 304:
            raise web.HTTPError(502, "The platform sent us elsewhere; not following")
        self.set_status(response.status, response.reason)
        for name in RESPONSE_HEADERS:
            self.clear_header(name)
        for name, value in pick(response.headers, RESPONSE_HEADERS).items():
            self.set_header(name, value)
        self.set_header("X-Content-Type-Options", "nosniff")
        try:
            async for chunk in response.content.iter_any():
                self.write(chunk)
                await self.flush()
            await self.finish()
        except StreamClosedError:
            self.log.debug("The browser went away from %s", self.request.path)


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


def add_handlers(server: ServerApp) -> None:
    """Serve ``<base_url>backendai/api/…`` on *server*."""
    base = re.escape(server.base_url.rstrip("/"))
    application: web.Application = server.web_app
    application.add_handlers(".*$", [(f"{base}{PLACE}.*", PlatformHandler)])
