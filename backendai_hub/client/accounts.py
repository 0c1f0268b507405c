"""The accounts' part of the client, for the authenticator."""

from __future__ import annotations

import msgspec

from backendai_hub.client.transport import Again, Transport


class VerifiedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account whose password was right.

    While ``must_change`` is set nobody may be let in with it.
    """

    name: str
    admin: bool = False
    must_change: bool = False


class Accounts:
    """Check passwords against the service's own accounts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def verify(
        self, name: str, password: str, *, new_password: str | None = None
    ) -> VerifiedAccount:
        """Check *password*, and replace it by *new_password* if one is given.

        Raises ``UnauthenticatedError`` for a wrong name or password alike. It is sent
        only once: each attempt counts against the account's limit.
        """
        body = {"name": name, "password": password}
        if new_password is not None:
            body["new_password"] = new_password
        return await self._transport.post(
            "accounts/verify", body, VerifiedAccount, again=Again.NEVER
        )
