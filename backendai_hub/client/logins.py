"""The client's part about logging in a command line."""

from __future__ import annotations

import msgspec

from backendai_hub.client.accounts import EndedLogins
from backendai_hub.client.transport import Again, Transport


class StartedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What to show the person who shall confirm, and what to ask with."""

    device_code: str
    user_code: str
    verification_url: str
    verification_url_complete: str
    interval: int = 5
    expires_in: int = 600


class LoginAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Still waiting, or the keypair."""

    status: str
    user: str | None = None
    access_key: str | None = None
    secret_key: str | None = None


class Logins:
    """Log in by a code that a person confirms in a browser."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def start(self, *, machine: str) -> StartedLogin:
        """Start to log in; *machine* is what the person is shown."""
        return await self._transport.post(
            "logins", {"machine": machine}, StartedLogin, again=Again.UNDONE
        )

    async def ask(self, device_code: str) -> LoginAnswer:
        """Ask whether it has been confirmed; the keypair is told once."""
        return await self._transport.post(
            "logins/token",
            {"device_code": device_code},
            LoginAnswer,
            again=Again.NEVER,
        )

    async def end_all(self) -> EndedLogins:
        """End all of one's own logins, this one too if it was made by logging in."""
        return await self._transport.post("logins/end", {}, EndedLogins)
