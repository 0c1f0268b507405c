"""Redirects that name the server behind us, made to name us (off unless asked for)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from aiohttp import hdrs
from multidict import CIMultiDict

from backendai_hub.router.targets import Target

_REDIRECTS: Final = frozenset({201, 301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class LocationRules:
    """What is changed in the Location of a redirect to the upstream server itself."""

    auto_rewrite: bool = False
    protocol: str = ""

    def rewrite(
        self, headers: CIMultiDict[str], *, status: int, target: Target, host: str
    ) -> None:
        """Change the Location in *headers*, if it points at *target*."""
        if not (self.auto_rewrite or self.protocol) or status not in _REDIRECTS:
            return
        location = headers.get(hdrs.LOCATION)
        if location is None:
            return
        try:
            parts = urlsplit(location)
        except ValueError:
            return
        if parts.netloc != target.authority:
            return
        if self.auto_rewrite and host:
            parts = parts._replace(netloc=host)
        if self.protocol:
            parts = parts._replace(scheme=self.protocol)
        headers[hdrs.LOCATION] = urlunsplit(parts)
