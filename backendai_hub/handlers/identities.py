"""Whose a credential is, as it was found out a few seconds ago.

Only what a token or keypair in the header ``Authorization`` proves by itself is kept:
never what a cookie shows (that the page meant it is checked with each request), never
a refusal, and nobody who acts for somebody else. It is forgotten with every change of
users, their rights, or where they may come from, and after ten seconds in any case:
what JupyterHub has said before is trusted for thirty more, so that a token which is
revoked there works for less than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, NamedTuple

from backendai_hub.handlers.kept import Shelf
from backendai_hub.operations.platform import Platform

SECONDS: Final = 10.0
_MOST: Final = 10_000
_LONGEST: Final = 4096


class Shown(NamedTuple):
    """A credential, which is not kept as it is, and the address it came from."""

    digest: bytes
    address: str

    @classmethod
    def of(cls, headers: Any, address: Any, act_for: str) -> Shown | None:
        """Read what a request shows; None if that is not to be kept."""
        sent = headers.get("Authorization")
        if not sent or len(sent) > _LONGEST or act_for in headers:
            return None
        return cls(sha256(sent.encode("utf-8", "replace")).digest(), str(address))


class _Known(NamedTuple):
    identity: Any
    tenancy: Any


class Identities:
    """What is known of credentials, each with the state of tenancy it was found in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._shelf: Shelf[Shown, _Known] = Shelf(
            seconds=SECONDS, most=_MOST, clock=clock
        )

    def find(self, shown: Shown, platform: Platform) -> Any | None:
        """Return whose credential it is, if that is known and nothing has changed."""
        known = self._shelf.find(shown)
        if known is None or known.tenancy != tenancy_of(platform):
            return None
        return known.identity

    def begin(self, platform: Platform) -> tuple[Any, float]:
        """Note, before asking, what tenancy is now."""
        return tenancy_of(platform), self._shelf.clock()

    def keep(self, shown: Shown, began: tuple[Any, float], identity: Any) -> None:
        """Keep what has been found out since *began*."""
        tenancy, since = began
        self._shelf.put(shown, _Known(identity, tenancy), since=since)


def tenancy_of(platform: Platform) -> tuple[int, object]:
    """Return something that is another after every change of tenancy.

    That is: whenever a transaction changes it, and whenever what is known of people
    is forgotten (``platform.actors``).
    """
    mark = platform.actors.setdefault("", object())
    return platform.database.versions.tenancy, mark
