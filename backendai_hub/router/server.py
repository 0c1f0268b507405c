"""The router at work: its parts put together, started and stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import time
from pathlib import Path

from aiohttp.web import BaseRequest, StreamResponse

from backendai_hub.router import wiring
from backendai_hub.router.errortarget import ErrorTarget
from backendai_hub.router.forward import Forwarder, ForwardRules
from backendai_hub.router.gateway import Gateway
from backendai_hub.router.headers import HeaderRules, TrustedProxies
from backendai_hub.router.listeners import (
    Endpoint,
    Handler,
    Listeners,
    redirect_to_https,
)
from backendai_hub.router.metrics import Metrics
from backendai_hub.router.public import Front, PathRules, PublicProxy, Serve
from backendai_hub.router.refusals import RefusalPages
from backendai_hub.router.requests import Address
from backendai_hub.router.restapi import RestApi
from backendai_hub.router.rewrites import LocationRules
from backendai_hub.router.routes import PublicRoute, RouteStore
from backendai_hub.router.settings import RouterSettings
from backendai_hub.router.state import StateFile
from backendai_hub.router.table import SessionTable, TableFollower
from backendai_hub.router.targets import parse_target
from backendai_hub.router.upstreams import Upstreams
from backendai_hub.router.websockets import Splices

_LOOPBACK = ("127.0.0.0/8", "::1/128")


class RouterServer:
    """One running router. Made inside the event loop in which it serves."""

    def __init__(
        self, settings: RouterSettings, *, token: str, log: logging.Logger
    ) -> None:
        self._settings = settings
        self._token = token
        self._log = log
        self._limits = wiring.limits(settings)
        self._metrics = Metrics()
        self._table = SessionTable()
        self._routes = RouteStore(clock=time.time, host_routing=settings.host_routing)
        self._splices = Splices()
        self._upstreams = Upstreams(wiring.upstream_settings(settings))
        self._listeners = Listeners(log=log)
        self._gateway: Gateway | None = None
        self._state: StateFile | None = None
        if settings.state_file:
            self._state = StateFile(
                Path(settings.state_file), collect=self._collect, log=log
            )

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await self.serve(stopped)

    async def serve(self, stopped: asyncio.Event) -> None:
        """Serve until *stopped* is set; then let open exchanges end."""
        self._metrics.gauge("websockets", "Open WebSockets.", self._splices.__len__)
        self._restore()
        follower: asyncio.Task[None] | None = None
        try:
            if self._settings.gateway:
                self._gateway = await self._open_gateway()
            if self._settings.public:
                await self._open_public()
            await self._open_metrics()
            if self._settings.routes_url:
                follower = asyncio.create_task(self._follower().follow())
                # It never ends but by a mistake in it, which must not go unnoticed.
                follower.add_done_callback(lambda _: stopped.set())
            await stopped.wait()
            self._log.info("Stopping")
        finally:
            self._splices.close_all()
            await self._listeners.close(patience=self._settings.drain_timeout)
            await self._upstreams.close()
            if self._state is not None:
                await self._state.save()
        if follower is not None:
            await _end(follower)

    async def _open_gateway(self) -> Gateway:
        gateway = Gateway(
            self._table,
            credentials=wiring.credentials(self._settings),
            log=self._log,
        )
        # Whoever reaches this port is a proxy on this machine: ourselves, or the one
        # that stands in our public port's place.
        forwarder = self._forwarder(TrustedProxies(_LOOPBACK))

        async def serve(request: BaseRequest, address: Address) -> StreamResponse:
            return await gateway.serve(request, address, forwarder=forwarder)

        endpoint = wiring.parse_address(self._settings.gateway)
        await self._open(endpoint, self._front(serve, RefusalPages()))
        self._log.info("Gateway to sessions at http://%s", endpoint)
        return gateway

    async def _open_public(self) -> None:
        settings = self._settings
        if settings.default_target:
            self._routes.add("/", {"target": settings.default_target})
        endpoint = wiring.public_endpoint(settings)
        api_endpoint = wiring.api_endpoint(settings)
        tls = wiring.public_tls(settings)
        await self._open(api_endpoint, self._api().serve, tls=wiring.api_tls(settings))
        front = self._front(self._public().serve, self._pages())
        await self._open(endpoint, front, tls=tls)
        if settings.redirect_port:
            await self._open(
                Endpoint(endpoint.ip, settings.redirect_port),
                redirect_to_https(settings.redirect_to or settings.port),
            )
        self._log.info(
            "Proxying %s://%s to %s",
            "https" if tls else "http",
            endpoint,
            settings.default_target or "(no default)",
        )
        self._log.info("Proxy API at %s/api/routes", api_endpoint)

    async def _open_metrics(self) -> None:
        settings = self._settings
        if not (settings.metrics_port or settings.metrics_socket):
            return
        endpoint = Endpoint(
            settings.metrics_ip, settings.metrics_port, settings.metrics_socket
        )
        await self._open(endpoint, self._metrics.serve)
        self._log.info("Metrics at http://%s/metrics", endpoint)

    async def _open(
        self, endpoint: Endpoint, handler: Handler, *, tls: ssl.SSLContext | None = None
    ) -> None:
        await self._listeners.open(
            endpoint,
            handler,
            limits=self._limits,
            keep_alive=self._settings.keep_alive_timeout / 1000,
            tls=tls,
        )

    def _public(self) -> PublicProxy:
        settings = self._settings
        addresses = (
            wiring.gateway_addresses(wiring.parse_address(settings.gateway))
            if settings.gateway
            else frozenset()
        )
        return PublicProxy(
            self._routes,
            self._forwarder(TrustedProxies(settings.trusted_proxies)),
            gateway=self._gateway,
            gateway_addresses=addresses,
            rules=PathRules(settings.prepend_path, settings.include_prefix),
        )

    def _front(self, serve: Serve, pages: RefusalPages) -> Front:
        return Front(
            serve,
            limits=self._limits,
            pages=pages,
            metrics=self._metrics,
            log=self._log,
        )

    def _forwarder(self, trusted: TrustedProxies) -> Forwarder:
        settings = self._settings
        rules = ForwardRules(
            HeaderRules(
                trusted,
                x_forward=settings.x_forward,
                change_origin=settings.change_origin,
                custom=wiring.custom_headers(settings),
            ),
            self._limits,
            LocationRules(settings.auto_rewrite, settings.protocol_rewrite),
            wiring.body_timeout(settings),
        )
        return Forwarder(self._upstreams, rules, self._splices, log=self._log)

    def _pages(self) -> RefusalPages:
        settings = self._settings
        source = None
        if settings.error_target:
            source = ErrorTarget(
                parse_target(settings.error_target), self._upstreams, log=self._log
            )
        folder = Path(settings.error_path) if settings.error_path else None
        return RefusalPages(source=source, folder=folder)

    def _api(self) -> RestApi:
        return RestApi(
            self._routes,
            token=self._token,
            save=self._save,
            on_removed=self._on_removed,
            log=self._log,
        )

    def _follower(self) -> TableFollower:
        settings = self._settings
        return TableFollower(
            self._table,
            url=settings.routes_url,
            token_file=Path(settings.routes_token_file),
            log=self._log,
            on_change=self._on_table,
        )

    # What is remembered

    def _collect(self) -> dict[str, object]:
        return {
            "routes": self._routes.document() if self._settings.public else {},
            "table": self._table.document(),
        }

    def _restore(self) -> None:
        if self._state is None:
            return
        saved = self._state.load()
        routes = self._routes.restore(saved.get("routes") or {})
        sessions = self._table.restore(saved.get("table"))
        if routes or sessions:
            self._log.info("Restored %d routes and %d session routes", routes, sessions)

    async def _save(self) -> None:
        if self._state is not None:
            await self._state.save()

    async def _on_table(self) -> None:
        if self._gateway is not None:
            self._gateway.forget_agents()
        await self._save()

    async def _on_removed(self, route: PublicRoute) -> None:
        target = route.target
        if target.socket_path is not None and not any(
            other.target.socket_path == target.socket_path for other in self._routes
        ):
            await self._upstreams.forget(target)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
