"""Shares on the wire: what scopes weigh, hold, have used, are guaranteed, may have."""

from __future__ import annotations

from typing import Annotated

import msgspec

from backendai_hub.core.groups import FairShare

MOST_CHANGES = 1000


class ShareEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One domain, project or user of a resource group.

    ``live_share`` is the largest part of any resource that it holds now, of
    ``dominant_slot``; ``history_share`` is its past use, old days counting less. The
    larger of the two, divided by the weight, decides whose turn it is: the smallest
    comes first. ``factor`` is ``2 ** (-history_share / weight)``.
    """

    kind: str
    id: str
    name: str
    weight: float
    weight_is_default: bool
    held: dict[str, str]
    live_share: float
    dominant_slot: str | None
    history_share: float
    share: float
    factor: float
    waiting: int
    guaranteed: dict[str, str]
    maximum: dict[str, str] = {}


class ShareTable(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of one resource group at one level, whose turn comes first first."""

    resource_group: str
    scheduler: str
    fair_share_spec: FairShare
    capacity: dict[str, str]
    domain: str | None
    project: str | None
    entries: list[ShareEntry]
    warnings: list[str] = []
    """What is guaranteed to them, and the nodes do not have."""


class ShareChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A new weight, guarantee or maximum of a domain, of a project in it, or a user.

    Null takes it away; what is left out stays. A scope is guaranteed no more of a
    resource than it may have at most, and its parts together no more than it is.
    """

    domain: str
    project: str | None = None
    user: str | None = None
    weight: float | msgspec.UnsetType | None = msgspec.UNSET
    guaranteed: dict[str, str | int | float] | msgspec.UnsetType | None = msgspec.UNSET
    maximum: dict[str, str | int | float] | msgspec.UnsetType | None = msgspec.UNSET


class SharesRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Changes of weights, guarantees, maxima: all of them, or none if one is wrong."""

    changes: Annotated[list[ShareChange], msgspec.Meta(max_length=MOST_CHANGES)]


class ChangedShare(msgspec.Struct, frozen=True, kw_only=True):
    """What a scope weighs, is guaranteed and may have after a change."""

    domain: str
    project: str | None
    user: str | None
    weight: float
    weight_is_default: bool
    guaranteed: dict[str, str]
    maximum: dict[str, str] = {}
    warnings: list[str] = []
    """What is guaranteed to it and those beside it, and the nodes do not have."""


class UsedDay(msgspec.Struct, frozen=True, kw_only=True):
    """What was used on one day (UTC): amounts times hours, by resource.

    ``16g`` of memory for two hours are 32 GiB·h, given in GiB; a processor for half an
    hour is 0.5.
    """

    day: str
    hours: dict[str, float]


class UsageHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What a scope has used of a resource group, day by day."""

    resource_group: str
    domain: str | None
    project: str | None
    user: str | None
    days: list[UsedDay]
