"""Connections to the apps inside containers."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from backendai_agent.forwarding import open_client
from backendai_agent.runtimes.base import Endpoint, Runtime


class NoSuchAppError(LookupError):
    """The container, or the app in it, is not known here."""


@dataclass
class _Line:
    endpoint: Endpoint
    session: aiohttp.ClientSession
    origin: str
    descriptor: int | None = None

    async def close(self) -> None:
        await self.session.close()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class Apps:
    """Kept-alive connections, one pool for each app of each container."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lines: dict[tuple[str, str], _Line] = {}

    async def line(
        self, container_id: str, app: str = "lab"
    ) -> tuple[aiohttp.ClientSession, str]:
        """Return the pool for *app* and the origin its addresses begin with.

        Raises :class:`NoSuchAppError`, or OSError while it is not listening yet.
        """
        endpoint = await self._runtime.endpoint(container_id, app)
        key = (container_id, app)
        known = self._lines.get(key)
        if endpoint is None:
            await self.drop(container_id)
            raise NoSuchAppError(f"{app} of container {container_id} is not here")
        if known is not None and known.endpoint == endpoint:
            return known.session, known.origin
        fresh = self._lines[key] = _open(endpoint)
        if known is not None:
            await known.close()
        return fresh.session, fresh.origin

    async def drop(self, container_id: str) -> None:
        """Close what leads to *container_id*: it ended, or listens anew."""
        for key in [key for key in self._lines if key[0] == container_id]:
            await self._lines.pop(key).close()

    async def answers(self, container_id: str, path: str) -> bool:
        """Tell whether JupyterLab of the container answers at *path*."""
        try:
            session, origin = await self.line(container_id)
            async with session.get(
                origin + path,
                timeout=aiohttp.ClientTimeout(total=2.0),
                allow_redirects=False,
            ) as answer:
                return answer.status < 500
        except (OSError, TimeoutError, aiohttp.ClientError, NoSuchAppError):
            await self.drop(container_id)  # its socket may be made anew
            return False

    async def close(self) -> None:
        """Close every connection."""
        for line in list(self._lines.values()):
            await line.close()
        self._lines.clear()


def _open(endpoint: Endpoint) -> _Line:
    descriptor = None
    connector: aiohttp.BaseConnector
    if endpoint.socket is not None:
        descriptor = _hold_socket(endpoint.socket)
        connector = aiohttp.UnixConnector(f"/proc/self/fd/{descriptor}", limit=0)
        origin = "http://localhost"
    else:
        connector = aiohttp.TCPConnector(limit=0)
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        origin = f"http://{host}:{endpoint.port}"
    session = open_client(connector)
    return _Line(endpoint, session, origin, descriptor)


def _hold_socket(path: Path) -> int:
    """Open the socket at *path* itself, so that nothing can be put in its place.

    The folder is the session user's to write: following a link there would lead
    the agent to any other socket of the node. Connecting through the descriptor
    also has no limit on the length of the path, which plain addresses have.
    """
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise FileNotFoundError(f"{path} is not a socket")
