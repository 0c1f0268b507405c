"""One HTTP conversation with the hub service: addresses, tokens, retries, errors."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec

from backendai_hub.client.backoff import Backoff
from backendai_hub.client.problems import error_from_problem
from backendai_hub.core.errors import HubError, UnauthenticatedError, UnavailableError

T = TypeVar("T")

ACT_FOR: Final = "X-Backendai-Act-For"
"""Names the user a trusted service speaks for, in UTF-8."""

_GRACE: Final = 15.0  # what a long-poll's answer may take beyond its own wait
_SILENCE: Final = 45.0  # three missed keep-alives of an event stream


def is_transient(error: BaseException) -> bool:
    """Tell whether trying the same again later can help."""
    if isinstance(error, HubError):
        return error.status >= 500
    return isinstance(error, (aiohttp.ClientError, OSError, asyncio.TimeoutError))


class Token:
    """A bearer token, given as text or read from a file that may be renewed."""

    def __init__(self, text: str | None = None, *, file: Path | None = None) -> None:
        self._text = text
        self._file = file

    def text(self) -> str | None:
        """Return the token; a file is read the first time it is needed."""
        if self._text is None and self._file is not None:
            self._text = self._read()
        return self._text

    def renew(self) -> bool:
        """Read the file again; tell whether it holds another token than before."""
        if self._file is None:
            return False
        before, self._text = self._text, self._read()
        return self._text != before

    def _read(self) -> str:
        assert self._file is not None
        try:
            return self._file.read_text("utf-8").strip()
        except OSError as error:
            raise UnavailableError(
                f"the token file {self._file} cannot be read: {error.strerror}"
            ) from error


class _Request(msgspec.Struct, frozen=True):
    """What is sent, as often as it takes."""

    method: str
    path: str
    timeout: aiohttp.ClientTimeout
    content: bytes | None = None
    params: dict[str, str] = {}
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
        token: Token,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = 30.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._socket, self.api_url = _resolve(url)
        self._token = token
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
        again: bool = True,
    ) -> T:
        """Write *body* to *path*.

        Every write carries an idempotency key (*key*, or a fresh one), which is what
        makes sending it again after a lost answer harmless. With ``again=False`` it
        is sent once.
        """
        request = _Request(
            method="POST",
            path=path,
            content=msgspec.json.encode(body),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": key or str(uuid.uuid4()),
            },
            act_for=act_for,
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=10.0),
        )
        send = self._persist if again else self._send
        return _decode(await send(request), kind)

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
            except UnavailableError as error:
                pause = max(delay, float(error.fields.get("retry_after", 0)))
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
                    data=request.content,
                    params=request.params,
                    headers={**request.headers, **self._identity(request.act_for)},
                    timeout=request.timeout,
                    allow_redirects=False,
                )
                return await _accept(answer)
            except UnauthenticatedError:
                if not self._token.renew():
                    raise
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise _unreachable(error) from error

    def _identity(self, act_for: str | None) -> dict[str, str]:
        headers = {}
        if token := self._token.text():
            headers["Authorization"] = f"token {token}"
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
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


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
    return UnavailableError(f"the Backend.AI service does not answer: {told}")


def _present(params: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(v) for name, v in (params or {}).items() if v is not None}


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
