"""A container's way to the platform: one unix socket, two kinds of address.

Sessions need no network to reach JupyterHub and the hub service. The relay passes
on requests for ``<base>hub/api/…`` and ``<base>services/backendai/api/…`` and
refuses everything else; what a session may do there is its token's matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from backendai_agent.door import Door
from backendai_agent.folders import ContainerFolder
from backendai_agent.forwarding import (
    end_to_end,
    make_server,
    open_client,
    pass_body,
    pass_on,
)
from backendai_agent.logs import Log

CONNECTIONS: Final = 64
"""How many connections a container may have open to its relay."""

PATIENCE_SECONDS: Final = 30.0
"""How long a relay waits for a request, or for more of one. An answer may take
any time: event streams are quiet for long."""

COMPLAINT_SECONDS: Final = 60.0

_DROPPED = frozenset(
    {
        "host",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
        "x-backendai-act-for",
    }
)
"""Headers by which a session could pretend to be somebody in between."""


def is_allowed(raw_path: str, base: str) -> bool:
    """Tell whether sessions may ask for *raw_path* of a platform under *base*.

    Paths are judged as sent, and refused if they would mean something else to a
    server that decodes or tidies them: dot segments, encoded slashes, backslashes,
    control characters, doubled slashes.
    """
    path = raw_path.partition("?")[0]
    if not path.startswith((f"{base}hub/api/", f"{base}services/backendai/api/")):
        return False
    for segment in path.split("/")[1:-1]:
        if not segment:
            return False
    for segment in path.split("/"):
        plain = unquote(unquote(segment))
        if plain in {".", ".."} or not plain.isprintable():
            return False
        if "/" in plain or "\\" in plain:
            return False
    return True


class Relays:
    """The relay sockets of this node's containers."""

    def __init__(
        self,
        platform_url: str,
        service_url: str = "",
        *,
        log: Log,
        connections: int = CONNECTIONS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        url = URL(platform_url)
        self._origin = str(url.origin())
        service = URL(service_url) if service_url else url
        self._service_origin = str(service.origin())
        self._base = url.path if url.path.endswith("/") else f"{url.path}/"
        self._log = log
        self._connections = connections
        self._patience = patience
        self._complained = float("-inf")
        self._doors: dict[str, Door] = {}
        self._opening = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def open(self, container_id: str, folder: ContainerFolder) -> None:
        """Serve the relay of *container_id*; open already is success."""
        async with self._opening:
            if container_id not in self._doors:
                self._doors[container_id] = Door(
                    _bind(folder.hub_socket),
                    make_server(self._relay, keepalive_timeout=self._patience),
                    limit=self._connections,
                    complain=self._complain,
                )

    def _complain(self, error: OSError) -> None:
        """Log that connections cannot be taken: once for all that waits."""
        now = asyncio.get_running_loop().time()
        if now - self._complained >= COMPLAINT_SECONDS:
            self._complained = now
            self._log.error("sessions have to wait for the platform: %s", error)

    async def drop(self, container_id: str) -> None:
        """Stop serving the relay of *container_id*."""
        door = self._doors.pop(container_id, None)
        if door is not None:
            await door.close()

    async def close(self) -> None:
        """Stop serving every relay."""
        for container_id in list(self._doors):
            await self.drop(container_id)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_client(aiohttp.TCPConnector(limit=0))
        return self._session

    def _origin_of(self, raw_path: str) -> str:
        services = raw_path.startswith(f"{self._base}services/")
        return self._service_origin if services else self._origin

    def _pass_body(self, request: web.BaseRequest) -> AsyncIterator[bytes] | None:
        body = pass_body(request)
        return None if body is None else _hurry(body, self._patience)

    async def _relay(self, request: web.BaseRequest) -> web.StreamResponse:
        raw_path = request.raw_path
        if not is_allowed(raw_path, self._base) or request.headers.get("Upgrade"):
            return web.json_response(
                {"detail": "sessions reach only the APIs of the platform"}, status=403
            )
        try:
            answer = await self._client().request(
                request.method,
                URL(self._origin_of(raw_path) + raw_path, encoded=True),
                headers=end_to_end(request.headers, drop=_DROPPED),
                data=self._pass_body(request),
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._log.info("the platform does not answer a session: %s", error)
            return web.json_response(
                {"detail": "the platform does not answer at the moment"}, status=502
            )
        return await pass_on(request, answer)


async def _hurry(body: AsyncIterator[bytes], patience: float) -> AsyncIterator[bytes]:
    """Yield *body*; raises TimeoutError if nothing of it comes for *patience*."""
    while True:
        try:
            async with asyncio.timeout(patience):
                chunk = await anext(body)
        except StopAsyncIteration:
            return
        yield chunk


def _bind(path: Path) -> socket.socket:
    """Listen on a fresh socket at *path*, open to whoever gets into the folder.

    The folder is reachable only from inside the container. Neither the length of
    the path nor a link the session's user left there matters: the folder is held
    by descriptor, and binding and unlinking follow no links.
    """
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
        listener.settimeout(0)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        _open_to_all(folder, path.name)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def _open_to_all(folder: int, name: str) -> None:
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{held}").chmod(0o666)
    finally:
        os.close(held)
