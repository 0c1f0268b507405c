"""What lies on storage hosts and belongs to nobody, as the API tells of it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Remain(msgspec.Struct, frozen=True, kw_only=True):
    """Something on a storage host that the platform does not know."""

    host: str
    scope: str
    kind: str
    name: str
    reason: str
    found_at: str
    removable: Literal["alone", "repair", "no"]
    """Whether it goes by itself, when an administrator says so, or by hand only."""
    is_due: bool
    """Whether its time of grace is over."""


class RemainsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what was found."""

    items: list[Remain]
    next: str | None = None
    running: bool = False
    """Whether somebody is looking at this moment."""


class StorageCheckRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Which host to look through; all, if none is named."""

    host: str | None = None
    repair: bool = False
    """Remove what has belonged to nobody for longer than the time of grace."""


class StorageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at storage hosts has found."""

    hosts: list[str]
    silent: list[str]
    """Hosts that do not answer, and were not looked through."""
    running: bool
    """It takes longer, and goes on; what it finds is in the list of remains."""
    removed: int
    items: list[Remain]
    next: str | None
    grace_hours: float
