"""What the node serves, over mutual TLS, to the router and the hub service.

``/containers/<id>/apps/<app>/…`` is the data plane: requests and WebSockets go to
the app inside the container with their original path, as streams, in both
directions no faster than the slower side takes them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from backendai_agent.actions import FAILURES, read_failure
from backendai_agent.apps import Apps, NoSuchAppError
from backendai_agent.certs import HUB_NAME, ROUTER_NAME
from backendai_agent.forwarding import end_to_end, pass_body, pass_on
from backendai_agent.logs import Log
from backendai_agent.outbox import Outbox
from backendai_agent.runtimes.base import LogNews, Runtime
from backendai_hub.api.agents import LOG_MOMENT

LOG_BYTES: Final = 1 << 20
LOG_SECONDS: Final = 15.0
LARGEST_TAIL: Final = 10_000
LONGEST_WAIT: Final = 30
ABSENT_SECONDS: Final = 1.0
"""So long after it was not there one looks again whether a container prints."""

_APP = re.compile(
    r"/containers/(?P<container>[0-9a-f-]{36})/apps/(?P<app>[a-z][a-z0-9-]{0,31})"
    r"(?P<rest>/.*)",
    re.DOTALL,
)
_LOGS = re.compile(r"/containers/(?P<container>[0-9a-f-]{36})/logs(?P<news>/news)?")
_WEBSOCKET_HEADERS: Final = frozenset(
    {
        "sec-websocket-accept",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-protocol",
        "sec-websocket-version",
    }
)


class DataPlane:
    """Answers requests that came in over mutual TLS."""

    def __init__(
        self,
        runtime: Runtime,
        apps: Apps,
        outbox: Outbox,
        *,
        log: Log,
        peers: Collection[str] = (ROUTER_NAME, HUB_NAME),
    ) -> None:
        self._runtime = runtime
        self._apps = apps
        self._outbox = outbox
        self._log = log
        self._peers = frozenset(peers)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if not self._peers & _names_of_peer(request):
            return _say(403, "only the router and the hub service may ask")
        path = request.raw_path.partition("?")[0]
        if path == "/healthz":
            return _say(200, "ok")
        if match := _LOGS.fullmatch(path):
            answer = self._news if match["news"] else self._logs
            return await answer(request, match["container"])
        if match := _APP.fullmatch(request.raw_path):
            return await self._app(request, match)
        return _say(404, "there is no such thing here")

    async def _logs(
        self, request: web.BaseRequest, container: str
    ) -> web.StreamResponse:
        if request.method != "GET":
            return _say(405, "logs can only be read")
        tail = _read_number(request, "tail", 200)
        if tail is None:
            return _say(400, "tail: write a number of lines")
        tail = min(tail, LARGEST_TAIL)
        moment = time.monotonic_ns()  # what is printed while it is read is news
        try:
            async with asyncio.timeout(LOG_SECONDS):
                text = await self._read(container, tail)
        except FAILURES as error:
            return _say(404, f"no logs: {read_failure(error)}")
        clipped = text.encode("utf-8", "replace")[-LOG_BYTES:]
        return web.Response(
            body=clipped,
            content_type="text/plain",
            charset="utf-8",
            headers={LOG_MOMENT: str(moment)},
        )

    async def _news(
        self, request: web.BaseRequest, container: str
    ) -> web.StreamResponse:
        """Wait until there is more in a log than at the moment of its last reading.

        200: there is; 204: not yet; 404: nothing prints there; 410: or ever will.
        """
        moment = _read_number(request, "after", None)
        seconds = _read_number(request, "wait", LONGEST_WAIT)
        if request.method != "GET" or moment is None or seconds is None:
            return _say(400, "after, wait: write numbers, and ask with GET")
        news = None
        try:
            async with asyncio.timeout(min(seconds, LONGEST_WAIT)):
                while True:
                    # By a clock that nobody sets: theirs may be put right meanwhile.
                    age = max(0.0, (time.monotonic_ns() - moment) / 1e9)
                    news = None
                    news = await self._runtime.hear_log(container, age)
                    if news is not LogNews.ABSENT:
                        break
                    await asyncio.sleep(ABSENT_SECONDS)
        except TimeoutError:
            pass
        except FAILURES as error:
            return _say(503, f"no logs: {read_failure(error)}")
        return _say(*_NEWS[news])

    async def _read(self, container: str, tail: int) -> str:
        """Read a log; of one that was removed, what still waits to be sent of it.

        That is looked for last: it is kept before its container is removed.
        """
        try:
            text = await self._runtime.logs(container, tail)
        except FAILURES:
            if kept := await self._read_kept(container, tail):
                return kept
            raise
        return text or await self._read_kept(container, tail)

    async def _read_kept(self, container: str, tail: int) -> str:
        kept = await asyncio.to_thread(self._outbox.get, container)
        if kept is None:
            return ""
        lines = kept.content.decode("utf-8", "replace").splitlines(keepends=True)
        return "".join(lines[-tail:])

    async def _app(
        self, request: web.BaseRequest, match: re.Match[str]
    ) -> web.StreamResponse:
        container = match["container"]
        try:
            session, origin = await self._apps.line(container, match["app"])
            url = URL(origin + match["rest"], encoded=True)
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await _join_websockets(request, session, url)
            answer = await session.request(
                request.method,
                url,
                headers=end_to_end(request.headers),
                data=pass_body(request),
                allow_redirects=False,
            )
        except NoSuchAppError as error:
            return _say(404, str(error))
        except aiohttp.WSServerHandshakeError as error:
            return _say(error.status, "the app refuses the WebSocket")
        except (aiohttp.ClientConnectorError, FileNotFoundError) as error:
            await self._apps.drop(container)
            self._log.info("container %s does not answer: %s", container, error)
            return _say(502, "the app does not answer")
        except (aiohttp.ClientError, *FAILURES) as error:
            self._log.info("container %s does not answer: %s", container, error)
            return _say(502, "the app does not answer")
        return await pass_on(request, answer)


_NEWS: Final = {
    None: (204, ""),
    LogNews.PRINTED: (200, "printed"),
    LogNews.ABSENT: (404, "nothing prints there"),
    LogNews.ENDED: (410, "it has ended"),
}


def _read_number(
    request: web.BaseRequest, name: str, otherwise: int | None
) -> int | None:
    """Return the parameter *name*; None where it is no number."""
    given = request.rel_url.query.get(name)
    if given is None:
        return otherwise
    return int(given[:18]) if given.isascii() and given.isdigit() else None


def _say(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")


def _names_of_peer(request: web.BaseRequest) -> set[str]:
    transport = request.transport
    certificate = transport.get_extra_info("peercert") if transport else None
    names = (certificate or {}).get("subjectAltName", ())
    return {name for kind, name in names if kind == "DNS"}


async def _join_websockets(
    request: web.BaseRequest, session: aiohttp.ClientSession, url: URL
) -> web.StreamResponse:
    """Open the app's WebSocket first, so that its refusal is our answer too."""
    offered = [
        name.strip()
        for value in request.headers.getall("Sec-WebSocket-Protocol", ())
        for name in value.split(",")
        if name.strip()
    ]
    async with session.ws_connect(
        url,
        headers=end_to_end(request.headers, drop=_WEBSOCKET_HEADERS),
        protocols=offered,
        max_msg_size=0,
        autoping=False,
        autoclose=False,
        compress=0,
    ) as inner:
        outer = web.WebSocketResponse(
            protocols=[inner.protocol] if inner.protocol else [],
            max_msg_size=0,
            autoping=False,
            autoclose=False,
            compress=False,
        )
        await outer.prepare(request)
        copies = [
            asyncio.create_task(_copy(outer, inner)),
            asyncio.create_task(_copy(inner, outer)),
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            code, reason = next(c.result() for c in copies if c.done())
        finally:
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        await inner.close(code=code, message=reason)
        await outer.close(code=code, message=reason)
        return outer


WebSocket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse
BROKEN: Final = (1011, b"the other side is gone")


async def _copy(source: WebSocket, target: WebSocket) -> tuple[int, bytes]:
    """Pass messages on until *source* closes; returns how it did.

    Sending waits while the other side does not read, and so does its sender.
    """
    try:
        while True:
            message = await source.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    await target.send_str(message.data)
                case aiohttp.WSMsgType.BINARY:
                    await target.send_bytes(message.data)
                case aiohttp.WSMsgType.PING:
                    await target.ping(message.data)
                case aiohttp.WSMsgType.PONG:
                    await target.pong(message.data)
                case aiohttp.WSMsgType.CLOSE:
                    return message.data or 1000, (message.extra or "").encode()
                case _:
                    return BROKEN
    except (OSError, aiohttp.ClientError):
        return BROKEN
