"""Requests and answers of operators: many sessions at once, and a group's queue."""

from __future__ import annotations

import msgspec

from backendai_hub.core.operators import Freeze


class PriorityRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Sessions that wait, by id, and the priority they get: 0 to 100."""

    sessions: list[str]
    priority: int


class EndRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sessions to end, by id; ``force`` does not wait for their nodes."""

    sessions: list[str]
    force: bool = False


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended for one of many; ``error`` and ``code`` say why, if not well.

    ``status`` is what the request would have been answered with on its own.
    """

    id: str
    status: int
    name: str | None = None
    error: str | None = None
    code: str | None = None


class SessionOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """How each of many ended; some may have failed while others went well."""

    succeeded: int
    failed: int
    results: list[SessionOutcome]


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a resource group is frozen."""

    id: str
    name: str
    freeze: Freeze | None = None


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One session that waits. ``position`` is 1 for who is tried first."""

    position: int
    id: str
    name: str
    owner: str
    project: str
    priority: int
    waited: int
    """For how many seconds."""
    reason: str


class QueuePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a resource group's queue, in the order of the scheduler.

    It shows the sessions the caller may see; who else waits shows in nothing but the
    positions. ``next`` is ``after`` for the following page. ``length`` is how many wait
    in all, for who may see them all. ``fault`` is what the group's sequencer or
    placement has done wrong the last time it was asked, and what is done instead.
    """

    resource_group: str
    items: list[QueueEntry]
    next: int | None = None
    length: int | None = None
    freeze: Freeze | None = None
    fault: str = ""
