"""Slowing down whoever guesses passwords, without locking anybody else out.

Attempts are counted where they come from: for each name from each address, and for
each address over all names. So a stranger who keeps guessing somebody's password
keeps only themselves from trying it. What remains is guessing from very many
addresses at once; that the account's own count is for.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from datetime import datetime, timedelta
from typing import Final

from backendai_hub.core.errors import TooManyRequestsError

MOST_FOR_NAME: Final = 10
NAME_WINDOW: Final = timedelta(minutes=15)
MOST_FROM_ADDRESS: Final = 50
"""More than for one name: a whole class may be behind one address."""
ADDRESS_WINDOW: Final = timedelta(minutes=5)
_MOST_KEYS: Final = 100_000

_Key = tuple[str, str]


class GuessLimiter:
    """Counts attempts that have not turned out right, in this process's memory."""

    def __init__(self, most_keys: int = _MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._attempts: dict[_Key, deque[datetime]] = {}

    def count(self, name: str, address: str, now: datetime) -> None:
        """Count an attempt before it is judged, so that none slips by beside it.

        Raises :class:`TooManyRequestsError`; what is refused so is not counted.
        """
        near = _network(address)
        for key, most, window in (
            ((name, near), MOST_FOR_NAME, NAME_WINDOW),
            (("", near), MOST_FROM_ADDRESS, ADDRESS_WINDOW),
        ):
            made = self._recent(key, now - window)
            if len(made) >= most:
                seconds = 1 + int((made[0] + window - now).total_seconds())
                raise TooManyRequestsError(
                    f"too many wrong passwords; try again in {_in_words(seconds)}",
                    retry_after=seconds,
                )
        if len(self._attempts) >= self._most_keys:
            self._forget_old(now)
        for key in ((name, near), ("", near)):
            self._attempts.setdefault(key, deque()).append(now)

    def forgive(self, name: str, address: str) -> None:
        """Take the last attempt back: the password was right."""
        near = _network(address)
        self._attempts.pop((name, near), None)
        made = self._attempts.get(("", near))
        if made:
            made.pop()

    def forget(self, name: str) -> None:
        """Let everybody try *name* again: its password is a new one."""
        for key in [key for key in self._attempts if key[0] == name]:
            del self._attempts[key]

    def _recent(self, key: _Key, since: datetime) -> deque[datetime]:
        made = self._attempts.get(key, deque())
        while made and made[0] <= since:
            made.popleft()
        if not made:
            self._attempts.pop(key, None)
        return made

    def _forget_old(self, now: datetime) -> None:
        """Forget attempts that are over; a full table of live ones starts anew."""
        for key in list(self._attempts):
            self._recent(key, now - NAME_WINDOW)
        if len(self._attempts) >= self._most_keys:
            self._attempts.clear()


def _network(address: str) -> str:
    """Return the part of an address that one customer has: of IPv6 the first half."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def _in_words(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{-(-seconds // 60)} minutes"
