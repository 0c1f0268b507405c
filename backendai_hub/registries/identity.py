"""Who we are to a registry: a password, and the tokens that it was exchanged for."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.registries.challenges import Challenge

_DEFAULT_LIFE: Final = 60.0
"""Seconds that a token lives when its server does not say."""
_LONGEST_LIFE: Final = 3600.0
_TOKEN: Final = re.compile(r"[!-~]{1,16384}", re.ASCII)


class Credentials:
    """A user name and a password that show up in no error, log or traceback."""

    def __init__(self, username: str, password: str) -> None:
        if ":" in username or not username.isprintable():
            raise InvalidRequestError(
                "a registry's user name has no colon and no control characters"
            )
        pair = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        self.basic: Final = f"Basic {pair}"
        self._secrets = (password, pair)

    def __repr__(self) -> str:
        return "Credentials(…)"

    def redact(self, text: str) -> str:
        """Return *text*, which somebody else wrote, without the password."""
        for secret in self._secrets:
            if secret:
                text = text.replace(secret, "…")
        return text


class Token(msgspec.Struct, frozen=True):
    """What a token server gave out, and when it stops being good."""

    text: str
    expires: float

    def __repr__(self) -> str:
        return "Token(…)"


class _TokenAnswer(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""
    expires_in: float | None = None


FetchToken = Callable[[Challenge], Awaitable[bytes]]


class Identity:
    """Answers a registry's challenges, and remembers the answers per scope.

    A *scope* here is what we are about to do (``repository:lab:pull``): it is known
    before the registry has said what it wants, so that the second request of a kind
    needs no challenge.
    """

    def __init__(
        self, credentials: Credentials | None, *, clock: Callable[[], float]
    ) -> None:
        self.credentials = credentials
        self._clock = clock
        self._wants_password = False
        self._tokens: dict[str, Token] = {}
        self._one_at_a_time = asyncio.Lock()

    def authorization(self, scope: str) -> str | None:
        """Return the header to send for *scope*, as far as it is known already."""
        if self._wants_password and self.credentials is not None:
            return self.credentials.basic
        token = self._tokens.get(scope)
        if token is None or token.expires <= self._clock():
            return None
        return f"Bearer {token.text}"

    async def answer(
        self,
        challenge: Challenge,
        scope: str,
        *,
        refused: str | None,
        fetch: FetchToken,
    ) -> str | None:
        """Return another header for *scope* than the *refused* one; None if none is.

        Many requests may be refused at once: one of them fetches the token.
        """
        if challenge.scheme == "basic":
            if self.credentials is None or refused == self.credentials.basic:
                return None
            self._wants_password = True
            return self.credentials.basic
        async with self._one_at_a_time:
            known = self.authorization(scope)
            if known is not None and known != refused:
                return known
            token = read_token(await fetch(challenge), now=self._clock())
            if token is None:
                return None
            self._tokens[scope] = token
            return f"Bearer {token.text}"

    def redact(self, text: str) -> str:
        """Return *text* without any secret of ours that it repeats."""
        if self.credentials is not None:
            text = self.credentials.redact(text)
        for token in self._tokens.values():
            text = text.replace(token.text, "…")
        return text


def read_token(body: bytes, *, now: float) -> Token | None:
    """Read a token server's answer; None if there is no usable token in it."""
    try:
        given = msgspec.json.decode(body, type=_TokenAnswer)
    except msgspec.MsgspecError:
        return None
    text = given.token or given.access_token
    if _TOKEN.fullmatch(text) is None:
        return None
    life = _DEFAULT_LIFE if given.expires_in is None else given.expires_in
    # A tenth is kept back for the time that a request takes on its way.
    return Token(text, now + 0.9 * min(max(life, 0.0), _LONGEST_LIFE))
