"""Connections to the servers behind the router, kept open between requests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp import hdrs

from backendai_hub.router.targets import Target

# Shorter than any server we know keeps an idle connection, so that it is we who
# close first and a request never meets a server that is just hanging up.
_IDLE_SECONDS: Final = 15.0
_NOT_OURS: Final = (
    hdrs.USER_AGENT,
    hdrs.ACCEPT,
    hdrs.ACCEPT_ENCODING,
    hdrs.CONTENT_TYPE,
)


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """How to talk to upstream servers. A timeout of None waits for ever."""

    connect_timeout: float = 10.0
    read_timeout: float | None = None
    tls: ssl.SSLContext | bool = True


class Upstreams:
    """A client session per way of connecting: TCP, and each Unix socket."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self.settings = settings
        self._tcp = self._open(
            aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=30
            )
        )
        self._unix: dict[str, aiohttp.ClientSession] = {}

    def session(self, target: Target) -> aiohttp.ClientSession:
        """Return the session through which to ask *target*."""
        path = target.socket_path
        if path is None:
            return self._tcp
        session = self._unix.get(path)
        if session is None:
            session = self._unix[path] = self._open(
                aiohttp.UnixConnector(
                    path=path, limit=0, keepalive_timeout=_IDLE_SECONDS
                )
            )
        return session

    async def forget(self, target: Target) -> None:
        """Close what is idle towards a Unix socket that no route names any more."""
        session = self._unix.pop(target.socket_path or "", None)
        if session is not None:
            await session.close()

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._tcp, *self._unix.values()):
            await session.close()
        self._unix.clear()

    def tls(self, target: Target) -> ssl.SSLContext | bool:
        """Return whom to trust behind *target*."""
        return target.tls or self.settings.tls

    def _open(self, connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
        settings = self.settings
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_NOT_OURS,
            trust_env=False,
            requote_redirect_url=False,
            read_bufsize=2**16,
            max_line_size=32 * 1024,
            max_field_size=64 * 1024,
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=settings.connect_timeout,
                sock_read=settings.read_timeout,
            ),
        )
