"""Passing one HTTP exchange through, both ways at once and without buffering."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError, StreamResponse
from multidict import CIMultiDict

from backendai_hub.router.headers import (
    HeaderRules,
    is_upgrade,
    request_headers,
    response_headers,
    sendable,
    upgrade_headers,
)
from backendai_hub.router.refusals import RefusalError
from backendai_hub.router.requests import Address, Limits, too_large
from backendai_hub.router.responses import PassedResponse, has_body
from backendai_hub.router.rewrites import LocationRules
from backendai_hub.router.targets import Target
from backendai_hub.router.upstreams import Upstreams
from backendai_hub.router.websockets import Splices

_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_RETRY_SECONDS: Final = 0.05
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one request goes.

    ``raw_path`` is the path and query to ask for there. ``unreachable`` makes what
    to say if nobody answers.
    """

    target: Target
    raw_path: str
    unreachable: Callable[[], RefusalError]
    touch: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class ForwardRules:
    """How exchanges are passed through."""

    headers: HeaderRules
    limits: Limits
    locations: LocationRules = field(default_factory=LocationRules)
    body_timeout: float | None = 300.0


class Forwarder:
    """Forwards requests to upstream servers."""

    def __init__(
        self,
        upstreams: Upstreams,
        rules: ForwardRules,
        splices: Splices,
        *,
        log: logging.Logger,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._upstreams = upstreams
        self._rules = rules
        self._splices = splices
        self._log = log
        self._pause = pause

    async def forward(
        self, request: BaseRequest, address: Address, destination: Destination
    ) -> StreamResponse:
        """Pass *request* to *destination*, and the response back.

        Raises :class:`RefusalError` if no response could be had. Once a response
        has begun, a failure upstream cuts the client's connection, so that nobody
        takes half a document for a whole one.
        """
        target = destination.target
        headers = request_headers(
            request,
            self._rules.headers,
            host=address.host,
            upstream_host=target.authority,
        )
        if is_upgrade(request) and request.method == hdrs.METH_GET:
            upgrade_headers(headers)
            headers.popall(hdrs.CONTENT_LENGTH, None)
        upstream = await self._ask(request, destination, headers)
        try:
            if upstream.status == 101:
                return await self._upgrade(request, upstream, destination)
            return await self._answer(request, upstream, address, destination)
        finally:
            upstream.close()

    async def _ask(
        self,
        request: BaseRequest,
        destination: Destination,
        headers: CIMultiDict[str],
    ) -> aiohttp.ClientResponse:
        method = request.method
        retries = 1 if method in _IDEMPOTENT else 0
        while True:
            body = _Body(request, self._rules, destination.touch)
            try:
                return await self._send(request, destination, headers, body)
            except aiohttp.ClientConnectorError as error:
                # Nothing was sent: the server may be just starting again.
                if retries == 0 or body.started:
                    raise self._unreachable(destination, error) from None
                retries -= 1
                await self._pause(_RETRY_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, guards nothing
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if body.refusal is not None:
                    raise body.refusal from None
                raise self._unreachable(destination, error) from None
            except ValueError as error:
                raise RefusalError(400, "malformed", str(error)) from None

    async def _send(
        self,
        request: BaseRequest,
        destination: Destination,
        headers: CIMultiDict[str],
        body: _Body,
    ) -> aiohttp.ClientResponse:
        target = destination.target
        return await self._upstreams.session(target).request(
            request.method,
            target.url(destination.raw_path),
            headers=headers,
            data=aiter(body) if request.body_exists else None,
            allow_redirects=False,
            ssl=self._upstreams.tls(target),
            server_hostname=target.server_hostname,
        )

    async def _answer(
        self,
        request: BaseRequest,
        upstream: aiohttp.ClientResponse,
        address: Address,
        destination: Destination,
    ) -> StreamResponse:
        headers = response_headers(upstream.headers)
        self._rules.locations.rewrite(
            headers,
            status=upstream.status,
            target=destination.target,
            host=address.host,
        )
        response = PassedResponse(
            upstream.status, sendable(upstream.reason or ""), headers
        )
        await response.prepare(request)
        if has_body(request, upstream.status) and not await self._stream(
            response, upstream
        ):
            _cut(request)
            return response
        await response.write_eof()
        if upstream.status < 300:
            destination.touch()
        return response

    async def _stream(
        self, response: PassedResponse, upstream: aiohttp.ClientResponse
    ) -> bool:
        content = upstream.content
        try:
            chunk = b"" if content.at_eof() else content.read_nowait()
            if not chunk and not content.at_eof():
                response.flush_head()
            while chunk or not content.at_eof():
                if chunk:
                    await response.write(chunk)
                chunk = await content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            self._log.warning("Response from %s broke off: %s", upstream.host, error)
            return False
        except ConnectionError:
            return False
        return True

    async def _upgrade(
        self,
        request: BaseRequest,
        upstream: aiohttp.ClientResponse,
        destination: Destination,
    ) -> StreamResponse:
        if not is_upgrade(request):
            raise RefusalError(
                502, "unexpected-upgrade", "The server changed the protocol unasked."
            )
        headers = upgrade_headers(response_headers(upstream.headers))
        response = PassedResponse(101, upstream.reason or "", headers)
        await response.prepare(request)
        response.flush_head()
        await self._splices.run(request, upstream, touch=destination.touch)
        return response

    def _unreachable(
        self, destination: Destination, error: BaseException
    ) -> RefusalError:
        self._log.warning(
            "No answer from %s: %s",
            destination.target.authority,
            str(error) or repr(error),
        )
        return destination.unreachable()


class _Body:
    """The body of a request, on its way up."""

    def __init__(
        self, request: BaseRequest, rules: ForwardRules, touch: Callable[[], None]
    ) -> None:
        self._request = request
        self._rules = rules
        self._touch = touch
        self.started = False
        self.refusal: RefusalError | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.started = True
        request = self._request
        limits = self._rules.limits
        content = request.content
        transport = request.transport
        if transport is not None and _awaits_continue(request):
            transport.write(_CONTINUE)
        size = 0
        while True:
            chunk = await self._read(content)
            if not chunk:
                return
            size += len(chunk)
            if limits.body and size > limits.body:
                self.refusal = too_large(limits)
                raise self.refusal
            self._touch()
            yield chunk

    async def _read(self, content: aiohttp.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self._rules.body_timeout):
                return await content.readany()
        except TimeoutError:
            self.refusal = RefusalError(
                408, "stalled", "The request's body stopped arriving.", close=True
            )
        except RequestPayloadError:
            self.refusal = RefusalError(
                400, "framing", "The request's body is not framed right.", close=True
            )
        raise self.refusal


def _awaits_continue(request: BaseRequest) -> bool:
    return (
        request.version >= (1, 1)
        and request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
        and not request.content.total_bytes
    )


def _cut(request: BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
