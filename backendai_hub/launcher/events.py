"""What the supervisor says while it works; pages of text are made from these."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec


class EventKind(StrEnum):
    """What happened to a process."""

    STARTED = "started"
    ADOPTED = "adopted"
    READY = "ready"
    CRASHED = "crashed"
    STOPPED = "stopped"
    NOTE = "note"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; ``text`` is for a person to read."""

    kind: EventKind
    process: str
    text: str
    detail: str = ""


Tell = Callable[[Event], None]
"""Who wants to hear of events."""
