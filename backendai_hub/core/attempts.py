"""What has been tried for a session, told without repeating it."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

import msgspec

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Phase(StrEnum):
    """What was tried."""

    PLACEMENT = "placement"
    PREEMPTION = "preemption"


class Result(StrEnum):
    """How it ended."""

    WAITING = "waiting"
    PLACED = "placed"
    RESERVED = "reserved"
    EXPIRED = "expired"
    PREEMPTED = "preempted"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts in a row that ended alike; ``message`` is the last one's."""

    id: int
    phase: Phase
    result: Result
    message: str
    attempts: int
    first_at: str
    last_at: str


def shape_of(message: str) -> str:
    """Return what messages have in common that differ in nothing but numbers."""
    return hashlib.sha256(_NUMBER.sub("#", message).encode()).hexdigest()
