"""Hashing passwords, and making those that work once."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""Without the ones that look alike."""

_hasher = PasswordHasher()
_once_hasher = PasswordHasher(time_cost=2, memory_cost=19 << 10, parallelism=1)
"""For passwords of 80 random bits, which nobody guesses: a list of accounts is made
in seconds, not minutes."""
_NOBODY: Final = (
    "$argon2id$v=19$m=65536,t=3,p=4"
    "$rTnNM6zPgIKm9kDOFjqLBQ$JjHr8wDROnnhO1XRRQhJz4x7C8QwiC+RY+okRmYLlkw"
)
"""Compared with when there is no such account, so that both answers take as long.

It is written down, because making one takes a tenth of a second of every start.
"""


def make_password() -> str:
    """Make a password of four groups that a person can type: 80 bits."""
    groups = ["".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4)]
    return "-".join(groups)


async def hash_password(password: str, *, once: bool = False) -> str:
    """Hash a password; with *once*, one of :func:`make_password`'s."""
    # argon2 takes long on purpose: not on the event loop.
    return await asyncio.to_thread((_once_hasher if once else _hasher).hash, password)


async def matches(hashed: str | None, password: str) -> bool:
    """Tell whether *password* has been hashed so; None takes as long, and is not."""
    return await asyncio.to_thread(_matches, hashed, password)


def _matches(hashed: str | None, password: str) -> bool:
    same = False
    if hashed is not None:
        same = _verify(hashed, password)
    if hashed is None or _hasher.check_needs_rehash(hashed):
        # Also beside a cheaper hash: how long it takes must not tell who has not
        # chosen a password yet.
        _verify(_NOBODY, password)
    return same


def _verify(hashed: str, password: str) -> bool:
    try:
        return _hasher.verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False
