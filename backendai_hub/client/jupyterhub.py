"""The few things we ask of JupyterHub's own API, with a service token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

_PAGE = 200
_TIMEOUT = aiohttp.ClientTimeout(total=20)


class JupyterHubError(Exception):
    """JupyterHub refused; ``status`` is HTTP's, the message JupyterHub's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class JupyterHubUnreachableError(Exception):
    """JupyterHub does not answer."""


@dataclass(frozen=True)
class HubServer:
    """One active named server as JupyterHub sees it."""

    user: str
    name: str
    ready: bool
    pending: str | None
    started: str | None = None
    last_activity: str | None = None


class JupyterHubClient:
    """Talks to JupyterHub's API as our service."""

    def __init__(self, api_url: str, token: str) -> None:
        self._api_url = api_url.rstrip("/")
        self._headers = {"Authorization": f"token {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _request(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        headers = {**self._headers, **options.pop("headers", {})}
        try:
            async with self._session.request(
                method, f"{self._api_url}{path}", headers=headers, **options
            ) as response:
                is_json = "json" in response.headers.get("Content-Type", "")
                body = await response.json(content_type=None) if is_json else None
                if response.status >= 400:
                    words = (body or {}).get("message") or response.reason or ""
                    if response.status >= 500:
                        raise JupyterHubUnreachableError(words)
                    raise JupyterHubError(response.status, words)
                return response.status, body
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise JupyterHubUnreachableError(str(error)) from error

    async def list_active(self) -> AsyncIterator[HubServer]:
        """List every server that runs or is about to, a page at a time."""
        offset: int | None = 0
        while offset is not None:
            _, body = await self._request(
                "GET",
                f"/users?state=active&limit={_PAGE}&offset={offset}",
                headers={"Accept": "application/jupyterhub-pagination+json"},
            )
            for user in body["items"]:
                for name, server in (user.get("servers") or {}).items():
                    yield HubServer(
                        user=user["name"],
                        name=name,
                        ready=bool(server.get("ready")),
                        pending=server.get("pending"),
                        started=server.get("started"),
                        last_activity=server.get("last_activity"),
                    )
            following = body["_pagination"]["next"]
            offset = None if following is None else int(following["offset"])

    async def start_server(
        self, user: str, server: str, options: dict[str, Any] | None = None
    ) -> None:
        """Ask JupyterHub to start (or attach) a named server."""
        body = {} if options is None else {"json": {"user_options": options}}
        path = f"/users/{quote(user, safe='')}/servers/{quote(server, safe='')}"
        try:
            await self._request("POST", path, **body)
        except JupyterHubError as error:
            # 400 "already running" is what we wanted.
            if error.status != 400 or "already" not in str(error):
                raise

    async def stop_server(self, user: str, server: str) -> None:
        """Tell JupyterHub that a named server is no more."""
        path = f"/users/{quote(user, safe='')}/servers/{quote(server, safe='')}"
        try:
            await self._request("DELETE", path)
        except JupyterHubError as error:
            if error.status not in {400, 404}:
                raise
