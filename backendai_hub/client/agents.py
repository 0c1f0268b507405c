"""The few things the hub service asks of its nodes, over mutual TLS."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import aiohttp

_DOMAIN: Final = "agent.backendai.internal"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
_MOST: Final = 2 << 20


class AgentUnreachableError(Exception):
    """The node does not answer."""


class AgentClient:
    """Asks nodes, which know us by our certificate."""

    def __init__(self, *, authority: Path, certificate: Path, key: Path) -> None:
        self._authority = authority
        self._certificate = certificate
        self._key = key
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read_log(
        self, agent_id: str, url: str, *, container: str, tail: int
    ) -> bytes:
        """Return the last lines a container printed; nothing, if it is not there.

        Raises :class:`AgentUnreachableError` if nobody tells.
        """
        if self._session is None:
            # A connection to one node is never taken for another's at its address.
            connector = aiohttp.TCPConnector(ssl=self._context(), force_close=True)
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT, connector=connector)
        try:
            async with self._session.get(
                f"{url.rstrip('/')}/containers/{container}/logs",
                params={"tail": str(tail)},
                server_hostname=f"{agent_id}.{_DOMAIN}",
                allow_redirects=False,
            ) as response:
                text = await response.content.read(_MOST)
                if response.status == 404:
                    return b""
                if response.status != 200:
                    words = f"the node answers {response.status}"
                    raise AgentUnreachableError(words)
                while len(text) < _MOST and (
                    more := await response.content.read(_MOST - len(text))
                ):
                    text += more
                return text
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AgentUnreachableError(str(error) or "no answer") from error

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self._certificate, self._key)
        return context
