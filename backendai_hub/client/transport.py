"""One HTTP conversation with the hub service: addresses, tokens, retries, errors."""

from __future__ import annotations

import asyncio
import io
import ssl
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

import aiohttp
import msgspec

from backendai_hub import __version__
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.credentials import Credential
from backendai_hub.client.problems import error_from_problem
from backendai_hub.core.errors import (
    HubError,
    NotFoundError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)

T = TypeVar("T")

ACT_FOR: Final = "X-Backendai-Act-For"
"""Names the user a trusted service speaks for, in UTF-8."""

_GRACE: Final = 15.0  # what a long-poll's answer may take beyond its own wait
_SILENCE: Final = 45.0  # three missed keep-alives of an event stream
_SHORT: Final = 5.0  # how long a client waits by itself when it is told to slow down
_NEXT_PART: Final = 1 << 16
_HEADERS: Final = {"User-Agent": f"backendai/{__version__}"}


def is_transient(error: BaseException) -> bool:
    """Tell whether trying the same again later can help."""
    if isinstance(error, HubError):
        return error.status >= 500
    return isinstance(error, (aiohttp.ClientError, OSError, asyncio.TimeoutError))


def segment(reference: str) -> str:
    """Write a name as one part of a path; raises what the service would answer."""
    if reference in {"", ".", ".."}:  # which would name another path
        raise NotFoundError(f"there is nothing called {reference!r}")
    return quote(reference, safe="")


class UnreachableError(UnavailableError):
    """No connection could be made: nothing was sent."""


class Again(Enum):
    """When a request may be sent again.

    ``UNDONE`` is: if it certainly was not carried out.
    """

    ALWAYS = "always"
    UNDONE = "undone"
    NEVER = "never"


class _Request(msgspec.Struct, frozen=True):
    """What is sent, as often as it takes."""

    method: str
    path: str
    timeout: aiohttp.ClientTimeout
    again: Again = Again.ALWAYS
    content: bytes | None = None
    params: dict[str, str] | list[tuple[str, str]] = {}
    headers: dict[str, str] = {}
    act_for: str | None = None


class Transport:
    """Sends requests to one service address, and makes errors of its refusals.

    ``http``, ``https`` and ``http+unix`` addresses are understood; the latter name
    a socket in the host part (``http+unix://%2Frun%2Fhub.sock/services/…``).
    Connections are opened on first use and shared until :meth:`close`.
    """

    def __init__(
        self,
        url: str,
        credential: Credential,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = 30.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._socket, self.api_url = _resolve(url)
        self._credential = credential
        self._tls = tls
        self._timeout = timeout
        self._backoff = backoff or Backoff(attempts=3)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def get(
        self,
        path: str,
        kind: type[T],
        *,
        params: Mapping[str, Any] | None = None,
        act_for: str | None = None,
        wait: float = 0.0,
    ) -> T:
        """Read the document at *path*; *wait* is how long the service may hold it."""
        request = _Request(
            method="GET",
            path=path,
            params=_present(params),
            act_for=act_for,
            timeout=aiohttp.ClientTimeout(
                total=wait + _GRACE if wait else self._timeout, sock_connect=10.0
            ),
        )
        return _decode(await self._persist(request), kind)

    async def post(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        key: str | None = None,
        act_for: str | None = None,
        again: Again = Again.ALWAYS,
    ) -> T:
        """Write *body* to *path*.

        Every write carries an idempotency key (*key*, or a fresh one), which makes
        sending it again after a lost answer harmless where the service keeps it;
        *again* is for where it does not.
        """
        key = key or str(uuid.uuid4())
        request = self._write("POST", path, body, act_for=act_for, again=again)
        request = _with_header(request, "Idempotency-Key", key)
        return _decode(await self._persist(request), kind)

    async def ask(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        act_for: str | None = None,
        wait: float = 0.0,
    ) -> T:
        """Ask a question with a *body*; the answer may take *wait* seconds."""
        request = self._write("POST", path, body, act_for=act_for)
        patient = aiohttp.ClientTimeout(total=wait + _GRACE, sock_connect=10.0)
        return _decode(
            await self._persist(msgspec.structs.replace(request, timeout=patient)), kind
        )

    async def put(
        self, path: str, body: Any, kind: type[T], *, act_for: str | None = None
    ) -> T:
        """Replace what is at *path* by *body*."""
        request = self._write("PUT", path, body, act_for=act_for)
        return _decode(await self._persist(request), kind)

    async def patch(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        if_match: int | None = None,
        act_for: str | None = None,
    ) -> T:
        """Change what is at *path*, if it is still at revision *if_match*."""
        # After a lost answer the revision would be another one by our own change.
        again = Again.ALWAYS if if_match is None else Again.UNDONE
        request = self._write("PATCH", path, body, act_for=act_for, again=again)
        return _decode(await self._persist(_if_match(request, if_match)), kind)

    async def delete(
        self,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        act_for: str | None = None,
    ) -> None:
        """Remove what is at *path*, if it is still at revision *if_match*."""
        request = self._write("DELETE", path, None, act_for=act_for, again=Again.UNDONE)
        request = msgspec.structs.replace(request, params=_present(params))
        await self._persist(_if_match(request, if_match))

    async def download(
        self, path: str, *, params: Mapping[str, Any], act_for: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the parts of a long answer as they arrive."""
        request = _Request(
            method="GET",
            path=path,
            params=_present(params),
            act_for=act_for,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=10.0, sock_read=self._timeout
            ),
        )
        answer = await self._open(request)
        async with answer:
            try:
                async for part in answer.content.iter_chunked(_NEXT_PART):
                    yield part
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise _unreachable(error) from error

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        act_for: str | None = None,
    ) -> aiohttp.ClientResponse:
        """Send a request once, and return its answer, which the caller closes.

        For what is more than documents: content, with headers that tell of it.
        """
        request = _Request(
            method=method,
            path=path,
            content=content,
            params=_present(params) if isinstance(params, Mapping) else [*params],
            headers=dict(headers or {}),
            act_for=act_for,
            again=Again.NEVER,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=10.0, sock_read=max(self._timeout, 120.0)
            ),
        )
        return await self._open(request)

    def _write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        act_for: str | None,
        again: Again = Again.ALWAYS,
    ) -> _Request:
        return _Request(
            method=method,
            path=path,
            content=None if body is None else msgspec.json.encode(body),
            headers={} if body is None else {"Content-Type": "application/json"},
            act_for=act_for,
            again=again,
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=10.0),
        )

    async def stream(
        self, path: str, *, params: Mapping[str, Any], act_for: str | None = None
    ) -> aiohttp.ClientResponse:
        """Open an event stream; the caller closes the answer."""
        request = _Request(
            method="GET",
            path=path,
            params=_present(params),
            headers={"Accept": "text/event-stream"},
            act_for=act_for,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=10.0, sock_read=_SILENCE
            ),
        )
        return await self._open(request)

    async def _persist(self, request: _Request) -> bytes:
        for delay in self._backoff.delays():
            try:
                return await self._send(request)
            except (UnavailableError, TooManyRequestsError) as error:
                pause = max(delay, _asked_pause(error))
                if not _may_repeat(request, error, pause):
                    raise
            await asyncio.sleep(min(pause, 30.0))
        return await self._send(request)

    async def _send(self, request: _Request) -> bytes:
        answer = await self._open(request)
        try:
            async with answer:
                return await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(error) from error

    async def _open(self, request: _Request) -> aiohttp.ClientResponse:
        while True:
            try:
                answer = await self._connected().request(
                    request.method,
                    self.api_url + request.path,
                    data=_as_body(request.content),
                    params=request.params,
                    headers={**request.headers, **self._identity(request.act_for)},
                    timeout=request.timeout,
                    allow_redirects=False,
                )
                return await _accept(answer)
            except UnauthenticatedError:
                if not self._credential.renew():
                    raise
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise _unreachable(error) from error

    def _identity(self, act_for: str | None) -> dict[str, str]:
        headers = {}
        if shown := self._credential.header():
            headers["Authorization"] = shown
        if act_for is not None:
            headers[ACT_FOR] = act_for
        return headers

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector: aiohttp.BaseConnector
            # No limit: each waiting spawn holds a long-poll, and none of them may
            # keep another user's request from being sent.
            if self._socket is not None:
                connector = aiohttp.UnixConnector(self._socket, limit=0)
            elif self._tls is not None:
                connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
            else:
                connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
            )
        return self._session


def _as_body(content: bytes | None) -> bytes | io.BytesIO | None:
    """Have what is long sent in parts, so that the loop goes on meanwhile."""
    if content is None or len(content) < _NEXT_PART:
        return content
    return io.BytesIO(content)


async def _accept(answer: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    if 200 <= answer.status < 300:
        return answer
    async with answer:
        body = await answer.content.read(1 << 16)
        raise error_from_problem(
            answer.status, body, retry_after=answer.headers.get("Retry-After")
        )


def _unreachable(error: Exception) -> UnavailableError:
    told = str(error) or type(error).__name__
    unsent = isinstance(error, aiohttp.ClientConnectorError)
    kind = UnreachableError if unsent else UnavailableError
    return kind(f"the Backend.AI service does not answer: {told}")


def _may_repeat(request: _Request, error: HubError, pause: float) -> bool:
    if request.again is Again.NEVER:
        return False
    if isinstance(error, TooManyRequestsError):
        return pause <= _SHORT
    return request.again is Again.ALWAYS or isinstance(error, UnreachableError)


def _asked_pause(error: HubError) -> float:
    try:
        return float(error.fields.get("retry_after", 0))
    except (TypeError, ValueError):
        return 0.0


def _if_match(request: _Request, revision: int | None) -> _Request:
    if revision is None:
        return request
    return _with_header(request, "If-Match", f'"{revision}"')


def _with_header(request: _Request, name: str, value: str) -> _Request:
    return msgspec.structs.replace(request, headers={**request.headers, name: value})


def _present(params: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: _spell(v) for name, v in (params or {}).items() if v is not None}


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(_spell, value))
    return str(value)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body or b"null", type=kind)
    except msgspec.MsgspecError as error:
        # A login page or a proxy's apology with status 200: not our service.
        raise UnavailableError(
            f"what answered does not speak this version's language: {error}"
        ) from error


def _resolve(url: str) -> tuple[str | None, str]:
    """Split *url* into a socket's path, if it names one, and the API's address."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if not path.endswith("/api"):
        path += "/api"
    if parts.scheme == "http+unix":
        return unquote(parts.netloc), f"http://localhost{path}/"
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError(f"{url!r} is not an http, https or http+unix address")
    return None, f"{parts.scheme}://{parts.netloc}{path}/"
