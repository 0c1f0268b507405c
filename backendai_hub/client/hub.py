"""The client of the hub service's API."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from backendai_hub.api.sessions import Resources
from backendai_hub.client.accounts import Accounts
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.sessions import Sessions
from backendai_hub.client.transport import Token, Transport


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who the service takes the caller for."""

    name: str
    roles: list[str] = []
    domain: str | None = None
    project: str | None = None


class HubClient:
    """Talk to the hub service, asynchronously.

    ``url`` is the service's address, with or without ``api/`` at its end. The token
    comes as text or as the path of a file, which is read again when the service
    does not take the token any more. Errors are those of
    :mod:`backendai_hub.core.errors`; an unreachable service is an
    ``UnavailableError`` after a few tries.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = 30.0,
        backoff: Backoff | None = None,
    ) -> None:
        source = Token(token, file=Path(token_file) if token_file else None)
        self._speak(
            Transport(url, source, tls=tls, timeout=timeout, backoff=backoff), None
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Make the client that a session's own environment describes."""
        try:
            url = environ["BACKENDAI_API_URL"]
            token = environ["JUPYTERHUB_API_TOKEN"]
        except KeyError as missing:
            raise LookupError(
                f"{missing.args[0]} is not set: this is not inside a Backend.AI"
                " session; give the service's address and a token instead"
            ) from None
        return cls(url, token=token)

    def acting_for(self, user: str) -> Self:
        """Return a client that speaks for *user* over the same connections.

        Only tokens of services trusted with it (the spawner's) may.
        """
        other = type(self).__new__(type(self))
        other._speak(self._transport, user)  # noqa: SLF001 - one of our own kind
        return other

    def _speak(self, transport: Transport, act_for: str | None) -> None:
        self._transport = transport
        self._act_for = act_for
        self.sessions = Sessions(transport, act_for)
        self.accounts = Accounts(transport)

    async def me(self) -> Caller:
        """Return who the service takes the caller for."""
        return await self._transport.get("me", Caller, act_for=self._act_for)

    async def resources(self) -> Resources:
        """Return the environments to choose from, and the room there is now."""
        return await self._transport.get("resources", Resources, act_for=self._act_for)

    async def version(self) -> str:
        """Return the service's version; needs no token."""
        answer = await self._transport.get("", dict[str, Any])
        return str(answer["version"])

    async def close(self) -> None:
        """Close the connections, also those of clients made by ``acting_for``."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()
