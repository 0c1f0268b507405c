"""Error pages made by somebody else, usually JupyterHub."""

from __future__ import annotations

import logging
from typing import Final

import aiohttp
from aiohttp.web import Response

from backendai_hub.router.refusals import error_path
from backendai_hub.router.targets import Target
from backendai_hub.router.upstreams import Upstreams

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, sock_connect=3)
_LARGEST_PAGE: Final = 2**20
_KEPT: Final = ("Content-Type", "Content-Encoding")


class ErrorTarget:
    """Asks ``<target>/<status>?url=<path>`` for the page to show."""

    def __init__(
        self, target: Target, upstreams: Upstreams, *, log: logging.Logger
    ) -> None:
        self._target = target
        self._upstreams = upstreams
        self._log = log

    async def fetch(self, status: int, raw_path: str) -> Response | None:
        """Return the page for *status*, or None if none could be had."""
        target = self._target
        try:
            async with self._upstreams.session(target).get(
                target.url(error_path(status, raw_path)),
                headers={"Accept": "text/html"},
                allow_redirects=False,
                ssl=self._upstreams.tls(target),
                timeout=_TIMEOUT,
            ) as page:
                body = await page.content.read(_LARGEST_PAGE)
                while len(body) < _LARGEST_PAGE and not page.content.at_eof():
                    body += await page.content.read(_LARGEST_PAGE - len(body))
                headers = {
                    name: page.headers[name] for name in _KEPT if name in page.headers
                }
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._log.warning("Could not get the page for error %d: %s", status, error)
            return None
        return Response(status=status, body=body, headers=headers)
