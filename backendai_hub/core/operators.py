"""What operators keep from starting, and the words those who wait read about it.

A *hold* keeps one waiting session back, a *drain* lets nothing new start on a node, a
*freeze* nothing in a resource group. What runs goes on, and who waits keeps their
place. Each is one :class:`Stop`: who said so, when, and why.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import (
    Choice,
    Line,
    Moment,
    Reference,
    Slots,
    Slug,
    Words,
    field,
)

MOST_REASON = 512


class StopKind(StrEnum):
    """What is stopped."""

    SESSION = "session"
    NODE = "node"
    GROUP = "group"


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may not start anything for now: by whom, since when, and why.

    ``by_owner`` tells of a session that its own owner holds. ``due`` is by when a node
    ought to be empty; nothing happens then by itself.
    """

    kind: StopKind
    target_id: str
    actor: str
    by_owner: bool = False
    since: datetime
    reason: str
    due: datetime | None = None


class Freeze(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing starts in a resource group."""

    reason: str
    by: str
    since: str


def format_minute(moment: datetime) -> str:
    """Write a time as people read it."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def tell_hold(stop: Stop) -> str:
    """Say why a session is held."""
    who = "its owner" if stop.by_owner else "admin"
    return _with_reason(f"held by {who} since {format_minute(stop.since)}", stop)


def tell_drain(stop: Stop) -> str:
    """Say why a node takes nothing new."""
    return _with_reason(f"drained since {format_minute(stop.since)}", stop)


def tell_freeze(name: str, stop: Stop) -> str:
    """Say why nothing starts in a resource group."""
    since = format_minute(stop.since)
    return _with_reason(f"resource group {name} is frozen since {since}", stop)


def _with_reason(told: str, stop: Stop) -> str:
    return f"{told}: {stop.reason}" if stop.reason else told


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes or amounts of a resource group, kept for some or for nobody, for a while.

    Sessions that would reach into it do not start there before it, and only those it
    is for while it lasts. It displaces nobody: what runs when it begins goes on.
    """

    id: str
    name: Annotated[str, field(Slug(), "Its name.", once=True)]
    description: Annotated[str, field(Line(), "What it is for.")] = ""
    kind: Annotated[
        Literal["class", "maintenance"],
        field(
            Choice(of=("class", "maintenance")),
            "A class is for those it names; maintenance is for nobody.",
            once=True,
        ),
    ] = "class"
    resource_group: Annotated[
        str,
        field(Reference(noun="resource-group"), "The group it takes from.", once=True),
    ]
    begins_at: Annotated[str, field(Moment(), "When it begins.", once=True)]
    ends_at: Annotated[str, field(Moment(), "When it ends.")]
    nodes: Annotated[
        list[str],
        field(Words(), "Nodes, by name or id: all of what they have.", once=True),
    ] = []
    amounts: Annotated[
        dict[str, str],
        field(
            Slots(limits=False),
            "Instead of nodes, how much: so many whole devices, wherever they are.",
            once=True,
        ),
    ] = {}
    domains: Annotated[
        list[str], field(Words(), "Domains whose people may use it.", once=True)
    ] = []
    projects: Annotated[
        list[str],
        field(
            Words(),
            "Projects that may use it; DOMAIN:NAME outside of yours.",
            once=True,
        ),
    ] = []
    users: Annotated[list[str], field(Words(), "Users who may use it.", once=True)] = []
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a reservation comes to, by id. Without devices it is all of the nodes."""

    nodes: tuple[str, ...]
    devices: tuple[str, ...] = ()
    open_to: tuple[tuple[str, str], ...] = ()

    def touches(self, other: Held) -> bool:
        """Tell whether any device is in both."""
        if not self.devices or not other.devices:
            return not set(self.nodes).isdisjoint(other.nodes)
        return not set(self.devices).isdisjoint(other.devices)


def check_span(begins: datetime, ends: datetime, now: datetime) -> None:
    """Refuse a time that ends before it begins, or has gone by."""
    if ends <= begins:
        raise InvalidRequestError(
            f"ends_at: {format_minute(ends)} is not after the beginning,"
            f" {format_minute(begins)}"
        )
    if ends <= now:
        raise InvalidRequestError(f"ends_at: {format_minute(ends)} has gone by")


def check_reason(reason: str) -> str:
    """Return a reason as it is kept; there has to be one."""
    found = Line(most=MOST_REASON).read("reason", reason)
    if not found:
        raise InvalidRequestError("reason: say why; those who wait are told")
    return found
