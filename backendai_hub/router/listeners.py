"""The router's open doors: sockets, TLS, and closing time."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web import RequestHandler

from backendai_hub.router.headers import host_name
from backendai_hub.router.requests import Limits

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_READ_BUFFER: Final = 2**16
_BACKLOG: Final = 1024
_LAST_SECONDS: Final = 1.0
_NAME: Final = "backendai-router"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to listen: a TCP port, or a Unix socket. Port zero means any free one."""

    ip: str = ""
    port: int = 0
    socket: str = ""

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.ip}]" if ":" in self.ip else self.ip or "*"
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What a TLS server or client is made from. Empty means not given."""

    key: str = ""
    certificate: str = ""
    authority: str = ""
    request_certificate: bool = False
    reject_unauthorized: bool = False
    passphrase: str | None = None
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""
    dh_parameters: str = ""

    def server_context(self) -> ssl.SSLContext | None:
        """Return a server's context; None if there is no key and no certificate."""
        if not (self.key or self.certificate):
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load(context)
        if self.dh_parameters:
            context.load_dh_params(self.dh_parameters)
        if self.authority:
            context.load_verify_locations(self.authority)
        if self.request_certificate:
            # Python cannot accept a certificate that fails the check, so one that is
            # shown is always checked.
            context.verify_mode = (
                ssl.CERT_REQUIRED if self.reject_unauthorized else ssl.CERT_OPTIONAL
            )
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self) -> ssl.SSLContext | None:
        """Return a client's context; None if nothing is set."""
        if not (self.key or self.certificate or self.authority):
            return None
        context = ssl.create_default_context(cafile=self.authority or None)
        if self.certificate:
            self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        context.minimum_version = self.minimum
        if self.ciphers:
            context.set_ciphers(self.ciphers)
        passphrase = self.passphrase
        context.load_cert_chain(
            self.certificate,
            self.key or None,
            # Without this, OpenSSL would ask on the terminal.
            password=lambda: passphrase or "",
        )


class _Connection(RequestHandler):
    """A client's connection.

    What is not HTTP is refused without ceremony: strangers cannot fill the log with
    tracebacks, and nothing they sent is sent back to them.
    """

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status != 400 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        self.logger.debug("Bad request from %s: %s", request.remote, type(exc).__name__)
        if isinstance(exc, LineTooLong):
            status, text = 431, "The request line or a header is too large."
        else:
            text = "This is not a valid HTTP request."
        response = web.Response(status=status, text=text, headers={hdrs.SERVER: _NAME})
        response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class Listeners:
    """Servers that are open, and how they are closed without cutting anybody off."""

    def __init__(self, *, log: logging.Logger) -> None:
        self._log = log
        self._open: list[tuple[asyncio.Server, web.Server]] = []
        self._busy: set[asyncio.Task[Any]] = set()
        self._closing = False

    async def open(
        self,
        endpoint: Endpoint,
        handler: Handler,
        *,
        limits: Limits,
        keep_alive: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Start to answer at *endpoint*. Raises OSError if it is taken."""
        server = _Server(
            self._tracked(handler),
            handler_cancellation=True,
            access_log=None,
            logger=self._log,
            auto_decompress=False,
            keepalive_timeout=keep_alive,
            max_line_size=limits.line,
            max_field_size=limits.field,
            max_headers=limits.fields,
            read_bufsize=_READ_BUFFER,
            lingering_time=2,
        )
        loop = asyncio.get_running_loop()
        if endpoint.socket:
            listening = await loop.create_unix_server(
                server, endpoint.socket, ssl=tls, backlog=_BACKLOG
            )
        else:
            listening = await loop.create_server(
                server, endpoint.ip or None, endpoint.port, ssl=tls, backlog=_BACKLOG
            )
        self._open.append((listening, server))

    async def close(self, *, patience: float) -> None:
        """Stop listening, let open exchanges end for *patience* seconds, and close."""
        self._closing = True
        loop = asyncio.get_running_loop()
        for listening, _ in self._open:
            for socket in listening.sockets:
                loop.remove_reader(socket)
        # Connections accepted just now are still being set up, which asyncio cannot
        # do for a server that is closed.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for listening, _ in self._open:
            listening.close()
        if self._busy:
            _, left = await asyncio.wait(self._busy, timeout=patience)
            if left:
                self._log.info("%d exchanges are cut off", len(left))
        for _, server in self._open:
            server.pre_shutdown()
            await server.shutdown(_LAST_SECONDS)
        self._open.clear()

    def _tracked(self, handler: Handler) -> Handler:
        async def track(request: web.BaseRequest) -> web.StreamResponse:
            task = asyncio.current_task()
            assert task is not None
            self._busy.add(task)
            try:
                response = await handler(request)
                if not response.prepared:
                    response.headers.setdefault(hdrs.SERVER, _NAME)
                    if self._closing:
                        response.force_close()
                return response
            finally:
                self._busy.discard(task)

        return track


def redirect_to_https(port: int) -> Handler:
    """Return a handler that sends everybody to the same place over TLS."""

    async def redirect(request: web.BaseRequest) -> web.StreamResponse:
        host = host_name(request.headers.get(hdrs.HOST, ""))
        if not host or not request.raw_path.startswith("/"):
            return web.Response(
                status=400,
                text="This server speaks HTTPS only, and the request does not say"
                " which host it is for.",
            )
        host = f"[{host}]" if ":" in host else host
        where = host if port == 443 else f"{host}:{port}"
        return web.Response(
            status=301, headers={"Location": f"https://{where}{request.raw_path}"}
        )

    return redirect
