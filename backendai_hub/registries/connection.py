"""One registry's HTTP side: what is sent where, what is let in, what goes wrong."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urljoin

import aiohttp
import msgspec
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from multidict import CIMultiDictProxy
from yarl import URL

from backendai_hub.core.errors import RegistryError, RegistryRefusedError
from backendai_hub.registries.address import Origin, find_origin, is_off_limits
from backendai_hub.registries.challenges import (
    Challenge,
    choose_challenge,
    is_safe_realm,
    read_challenges,
)
from backendai_hub.registries.identity import Identity

AT_ONCE: Final = 4
"""Requests to one registry under way at the same time."""
KIB: Final = 1 << 10
MIB: Final = 1 << 20

_HOPS: Final = 5
_LARGEST_TOKEN: Final = 64 * KIB
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. *scope* is what it is about; *largest* is the most to read."""

    path: str
    scope: str
    method: str = "GET"
    query: str = ""
    accept: str = "application/json"
    largest: int = 4 * MIB
    follows_redirects: bool = False
    sends_password: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What came back, whole."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    origin: Origin | None


class _Resolver(ThreadedResolver):
    """Finds the addresses of names, but for those at which no registry is."""

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        """Return the addresses of *host*."""
        found = await super().resolve(host, port, family)
        allowed = [entry for entry in found if not is_off_limits(entry["host"])]
        if not allowed:
            raise OSError(errno.EACCES, "its address is link-local")
        return allowed


class Connection:
    """Sends requests to one registry, and only where its secrets may go.

    Redirects are followed for blobs alone, and the ``Authorization`` header goes to
    no other origin than the registry's own.
    """

    def __init__(
        self,
        origin: Origin,
        identity: Identity,
        *,
        verify_tls: bool = True,
        timeout: float = 30.0,
    ) -> None:
        self.origin = origin
        self._identity = identity
        self._verify_tls = verify_tls
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=10.0)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(self, request: Ask) -> Answer:
        """Send *request* as often as the registry's challenges make necessary."""
        async with self._slots:
            if request.sends_password and self._identity.credentials is not None:
                return await self._send(request, self._identity.credentials.basic)
            authorization = self._identity.authorization(request.scope)
            answer = await self._send(request, authorization)
            # Whom the registry sends to for a blob has nothing to ask of us.
            if answer.status != 401 or answer.origin != self.origin:
                return answer
            challenge = choose_challenge(
                read_challenges(answer.headers.getall("WWW-Authenticate", []))
            )
            if challenge is None:
                return answer
            other = await self._identity.answer(
                challenge,
                request.scope,
                refused=authorization,
                fetch=self._fetch_token,
            )
            return answer if other is None else await self._send(request, other)

    def redact(self, text: str) -> str:
        """Return *text*, which the registry wrote, without our own secrets."""
        return self._identity.redact(text)

    async def _send(self, request: Ask, authorization: str | None) -> Answer:
        query = f"?{request.query}" if request.query else ""
        url = f"{self.origin}{request.path}{query}"
        for _ in range(_HOPS):
            answer = await self._exchange(request, url, authorization)
            if answer.status not in _REDIRECTS:
                return answer
            url = self._redirect(request, url, answer)
            if find_origin(url) != self.origin:
                authorization = None
        raise self.error(f"sends from one address to the next, {_HOPS} times")

    def _redirect(self, request: Ask, url: str, answer: Answer) -> str:
        target = urljoin(url, answer.headers.get("Location", ""))
        origin = find_origin(target)
        if origin is None:
            raise self.error("sends to an address that is not http or https")
        if not request.follows_redirects:
            raise self.error(
                f"answered with a redirect to {origin}; if that is the registry, give"
                " it as the address"
            )
        if self.origin.scheme == "https" and origin.scheme != "https":
            raise self.error(f"sends from https to {origin}, where anybody may listen")
        return target

    async def _exchange(
        self, request: Ask, url: str, authorization: str | None
    ) -> Answer:
        # Compression is declined: digests and limits are about the bytes themselves.
        headers = {"Accept": request.accept, "Accept-Encoding": "identity"}
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self._bounded(
            request.method, url, headers=headers, largest=request.largest
        )

    async def _fetch_token(self, challenge: Challenge) -> bytes:
        if not is_safe_realm(challenge.realm, self.origin):
            raise RegistryRefusedError(
                f"the registry {self.origin} sends to a token server that does not use"
                " https; no password was sent there",
                registry=str(self.origin),
            )
        wanted = [("service", challenge.service)] if challenge.service else []
        url = URL(challenge.realm, encoded=False).extend_query(
            [*wanted, *(("scope", scope) for scope in challenge.scopes)]
        )
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._identity.credentials is not None:
            headers["Authorization"] = self._identity.credentials.basic
        answer = await self._bounded(
            "GET", str(url), headers=headers, largest=_LARGEST_TOKEN
        )
        if answer.status in {401, 403}:
            raise RegistryRefusedError(
                f"the token server of {self.origin} does not accept the user name and"
                " password; look whether they are right and have not expired",
                registry=str(self.origin),
                answered=answer.status,
            )
        if answer.status != 200:
            raise self.error(f"has a token server that answered {answer.status}")
        return answer.body

    async def _bounded(
        self, method: str, url: str, *, headers: Mapping[str, str], largest: int
    ) -> Answer:
        origin = find_origin(url)
        if origin is not None and is_off_limits(origin.host):
            raise self.error(f"sends to {origin.host}, where no registry is")
        try:
            async with self._open().request(
                method,
                URL(url, encoded=True),
                headers=headers,
                allow_redirects=False,
                ssl=self._tls(url),
            ) as response:
                body = await self._read(response, largest)
                return Answer(response.status, response.headers, body, find_origin(url))
        except RegistryError:
            raise
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # Not chained: aiohttp's errors carry the request with its headers.
            raise self.error(f"does not answer: {_tell(error)}") from None

    async def _read(self, response: aiohttp.ClientResponse, largest: int) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(64 * KIB):
            body += chunk
            if len(body) > largest:
                raise self.error(
                    f"answered with more than the {largest // KIB} KiB that are read"
                )
        return bytes(body)

    def _tls(self, url: str) -> ssl.SSLContext | bool:
        # Not to check certificates was decided for the registry, not for whomever it
        # sends to.
        return self._verify_tls or find_origin(url) != self.origin

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=_Resolver()),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
            )
        return self._session

    def error(
        self,
        what: str,
        kind: Callable[..., RegistryError] = RegistryError,
        **fields: object,
    ) -> RegistryError:
        """Make an error whose sentence begins with the registry."""
        where = str(self.origin)
        message = self.redact(f"the registry {where} {what}")
        return kind(message, registry=where, **fields)


def _tell(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            "its certificate is not trusted here; install the authority that signed"
            " it, or do not check this registry's certificate"
        )
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, aiohttp.ClientConnectorError):
        number, told = error.os_error.errno, error.os_error.strerror
        # What asyncio says of a refused connection is the address, which is known.
        return (os.strerror(number) if number and number > 0 else told) or "no way"
    return type(error).__name__
