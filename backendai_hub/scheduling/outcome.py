"""What came of a simulation: who waited, who was displaced, and what was in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.shares import Path


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """How long one session has waited; None is to the end, and longer."""

    session: str
    owner: Path
    request: ResourceSlots
    since: int
    seconds: int | None
    wide: bool
    added: bool
    reason: str = ""


class Displaced(msgspec.Struct, frozen=True, kw_only=True):
    """A session that had to go, for whom, and why that one."""

    at: int
    session: str
    owner: Path
    by: str
    by_owner: Path
    kind: Literal["priority", "reclaim"]
    mode: Literal["terminate", "reschedule"]
    ran: int
    """For how many seconds it had run."""


class Moment(msgspec.Struct, frozen=True):
    """How things are from some time on."""

    at: int
    waiting: int
    running: int
    used: Mapping[str, int]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened."""

    begins: int
    ends: int
    waits: tuple[Wait, ...]
    moments: tuple[Moment, ...]
    capacity: Mapping[str, int]
    shares: Mapping[Path, float]
    """What each project has had, of the slot it has had most of, over its weight."""
    passes: int
    displaced: tuple[Displaced, ...] = ()
    """Who had to go for another, in the order of time."""
