"""The few things the hub service asks of its nodes, over mutual TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

from backendai_hub.api.agents import LOG_MOMENT

_DOMAIN: Final = "agent.backendai.internal"
_MOST: Final = 2 << 20
_WAIT_SECONDS: Final = 25


class _Manner(NamedTuple):
    """How many requests of a kind there are at once (0: any number), and how long."""

    at_once: int
    timeout: aiohttp.ClientTimeout


_READING: Final = _Manner(100, aiohttp.ClientTimeout(total=20))
_WAITING: Final = _Manner(0, aiohttp.ClientTimeout(total=_WAIT_SECONDS + 20))


class AgentUnreachableError(Exception):
    """The node does not answer."""


class LogText(NamedTuple):
    """The end of what a container has printed, and when that was by the node's clock.

    No ``moment``: nobody there can wait for more.
    """

    content: bytes
    moment: int | None


class LogNews(Enum):
    """What has become of a log since one read it."""

    NOTHING = auto()
    MORE = auto()
    """There is more, or the container is not there; who reads the log sees which."""
    END = auto()
    """There is no more, and never will be."""


_NEWS: Final = {
    200: LogNews.MORE,
    204: LogNews.NOTHING,
    404: LogNews.MORE,
    410: LogNews.END,
}


class AgentClient:
    """Asks nodes, which know us by our certificate."""

    def __init__(self, *, authority: Path, certificate: Path, key: Path) -> None:
        self._authority = authority
        self._certificate = certificate
        self._key = key
        self._sessions: dict[_Manner, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close the connections."""
        while self._sessions:
            await self._sessions.popitem()[1].close()

    async def read_log(
        self, agent_id: str, url: str, *, container: str, tail: int
    ) -> LogText:
        """Return the last lines a container printed; nothing, if it is not there.

        Raises :class:`AgentUnreachableError` if nobody tells.
        """
        async with self._ask(
            agent_id, f"{url.rstrip('/')}/containers/{container}/logs", tail=tail
        ) as response:
            text = await response.content.read(_MOST)
            if response.status == 404:
                return LogText(b"", None)
            if response.status != 200:
                raise AgentUnreachableError(f"the node answers {response.status}")
            while len(text) < _MOST and (
                more := await response.content.read(_MOST - len(text))
            ):
                text += more
            moment = response.headers.get(LOG_MOMENT, "")
            return LogText(text, int(moment) if moment.isdigit() else None)

    async def await_log(
        self, agent_id: str, url: str, *, container: str, moment: int
    ) -> LogNews:
        """Wait for a while until there is more in a log than there was at *moment*.

        Raises :class:`AgentUnreachableError` if nobody tells.
        """
        async with self._ask(
            agent_id,
            f"{url.rstrip('/')}/containers/{container}/logs/news",
            manner=_WAITING,
            after=moment,
            wait=_WAIT_SECONDS,
        ) as response:
            news = _NEWS.get(response.status)
            if news is None:
                raise AgentUnreachableError(f"the node answers {response.status}")
            return news

    @asynccontextmanager
    async def _ask(
        self,
        agent_id: str,
        url: str,
        *,
        manner: _Manner = _READING,
        **params: int,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session(manner).get(
                url,
                params={name: str(value) for name, value in params.items()},
                server_hostname=f"{agent_id}.{_DOMAIN}",
                allow_redirects=False,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AgentUnreachableError(str(error) or "no answer") from error

    def _session(self, manner: _Manner) -> aiohttp.ClientSession:
        if manner not in self._sessions:
            # A connection to one node is never taken for another's at its address.
            connector = aiohttp.TCPConnector(
                ssl=self._context(), force_close=True, limit=manner.at_once
            )
            self._sessions[manner] = aiohttp.ClientSession(
                timeout=manner.timeout, connector=connector
            )
        return self._sessions[manner]

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self._certificate, self._key)
        return context
