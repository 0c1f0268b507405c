"""What answers on the public port, and on the gateway's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

from aiohttp.web import BaseRequest, Response, StreamResponse

from backendai_hub.router.forward import Destination, Forwarder
from backendai_hub.router.gateway import Gateway
from backendai_hub.router.headers import host_name
from backendai_hub.router.metrics import Metrics
from backendai_hub.router.refusals import RefusalError, RefusalPages, loggable
from backendai_hub.router.requests import Address, Limits, read_address
from backendai_hub.router.routes import PublicRoute, RouteStore
from backendai_hub.router.targets import Target

Serve = Callable[[BaseRequest, Address], Awaitable[StreamResponse]]
_HEALTH_PATH: Final = "/_chp_healthz"
_CLIENT_LEFT: Final = 499


@dataclass(frozen=True, slots=True)
class PathRules:
    """How a request's path and its target's are put together."""

    prepend_path: bool = True
    include_prefix: bool = True


class Front:
    """A door of the router: reads requests strictly and words every refusal."""

    def __init__(
        self,
        serve: Serve,
        *,
        limits: Limits,
        pages: RefusalPages,
        metrics: Metrics,
        log: logging.Logger,
    ) -> None:
        self._serve = serve
        self._limits = limits
        self._pages = pages
        self._metrics = metrics
        self._log = log

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        status = 500
        raw = request.raw_path
        try:
            address = read_address(request, self._limits)
            raw = address.raw
            response = await self._serve(request, address)
            status = response.status
        except RefusalError as refusal:
            status = refusal.status
            self._log.info(
                "%d %s %s: %s", status, request.method, loggable(raw), refusal.code
            )
            return await self._pages.respond(request, refusal, raw_path=raw)
        except asyncio.CancelledError:
            status = _CLIENT_LEFT
            raise
        else:
            return response
        finally:
            self._metrics.count(status)


class PublicProxy:
    """Forwards by the public routing table."""

    def __init__(
        self,
        routes: RouteStore,
        forwarder: Forwarder,
        *,
        gateway: Gateway | None = None,
        gateway_addresses: Collection[tuple[str, int]] = (),
        rules: PathRules | None = None,
    ) -> None:
        self._routes = routes
        self._forwarder = forwarder
        self._gateway = gateway
        self._gateway_addresses = frozenset(gateway_addresses)
        self._rules = rules or PathRules()

    async def serve(self, request: BaseRequest, address: Address) -> StreamResponse:
        """Forward *request* by its route."""
        if address.raw == _HEALTH_PATH:
            return Response(text='{"status": "OK"}', content_type="application/json")
        route = self._routes.find(address.path, host=host_name(address.host))
        if route is None:
            raise RefusalError(404, "no-route", "There is nothing at this address.")
        destination = self._destination(route, address)
        if self._gateway is not None and self._is_gateway(route.target):
            return await self._gateway.serve(
                request,
                address,
                forwarder=self._forwarder,
                touch=destination.touch,
            )
        return await self._forwarder.forward(request, address, destination)

    def _destination(self, route: PublicRoute, address: Address) -> Destination:
        target = route.target
        raw = address.raw
        if not self._rules.include_prefix:
            raw = strip_prefix(raw, len(route.prefix.strip("/").split("/")))
        if not self._rules.prepend_path and target.base_path:
            target = Target(
                target.scheme, target.host, target.port, "", target.socket_path
            )
        return Destination(
            target, raw, _unreachable, touch=lambda: self._routes.touch(route)
        )

    def _is_gateway(self, target: Target) -> bool:
        return (
            target.scheme == "http"
            and target.socket_path is None
            and (target.host, target.port) in self._gateway_addresses
        )


def strip_prefix(raw: str, segments: int) -> str:
    """Return the raw path without its first *segments* segments."""
    path, mark, query = raw.partition("?")
    rest = path.lstrip("/").split("/", segments)[segments:]
    return "/" + "".join(rest) + mark + query


def _unreachable() -> RefusalError:
    return RefusalError(
        503,
        "no-answer",
        "The server behind this address does not answer. Please try again in a moment.",
        retry_after=5,
    )
