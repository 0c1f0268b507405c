"""Where a request goes next, parsed once per route and used for every request."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from yarl import URL

_PORTS = {"http": 80, "https": 443}
_UNIX_SCHEMES = {"http+unix", "unix+http"}


class BadTargetError(ValueError):
    """A target is not a URL that requests could be sent to."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server to forward to.

    ``base_path`` has no trailing slash and goes before the path of the request.
    ``tls`` and ``server_hostname`` say whom to trust behind an ``https`` target;
    None means the proxy's general settings.
    """

    scheme: str
    host: str
    port: int
    base_path: str = ""
    socket_path: str | None = None
    tls: ssl.SSLContext | None = None
    server_hostname: str | None = None

    def url(self, path: str) -> URL:
        """Return the URL to ask for *path* (raw, with its query) here.

        The query stays inside the path on purpose: nothing is parsed, so nothing
        is normalised and the upstream server sees what the client wrote.
        """
        return URL.build(
            scheme=self.scheme,
            authority=self.authority,
            path=self.base_path + path,
            encoded=True,
        )

    @property
    def authority(self) -> str:
        """Return ``host[:port]`` as a Host header would say it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(text: str) -> Target:
    """Read a route's target; raise :class:`BadTargetError` if it is none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadTargetError(f"target {text!r} is not a URL: {error}") from None
    base_path = parts.path.rstrip("/")
    if parts.scheme in _UNIX_SCHEMES:
        socket_path = unquote(parts.netloc)
        if not socket_path:
            raise BadTargetError(f"target {text!r} names no socket")
        return Target("http", "localhost", 80, base_path, socket_path)
    if parts.scheme not in _PORTS:
        raise BadTargetError(
            f"target {text!r} must start with http://, https:// or http+unix://"
        )
    if not parts.hostname:
        raise BadTargetError(f"target {text!r} names no host")
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], base_path)
