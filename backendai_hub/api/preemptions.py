"""What is read of preemptions: those that were carried out, and those that would be."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from backendai_hub.core.preemptions import EnactedPreemption, PreemptedSession


class PreemptionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which preemptions, the newest first.

    ``session`` is the id of one on either side, ``open`` whether room is still kept.
    """

    limit: int = 20
    after: str | None = None
    session: str | None = None
    resource_group: str | None = None
    kind: Literal["priority", "reclaim"] | None = None
    open: bool | None = None


class PreemptionPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page; ``next`` is ``after`` for the following one."""

    items: list[EnactedPreemption]
    next: str | None = None


class PreemptionTrialRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The rules to try; what is left out is as the resource group has it."""

    order: (
        Literal["oldest", "newest", "fewest-sessions", "smallest-resources"] | None
    ) = None
    mode: Literal["terminate", "reschedule"] | None = None
    min_runtime: Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)] | None = None
    victim_scope: Literal["user", "project", "domain", "resource-group"] | None = None


class ProposedPreemption(msgspec.Struct, frozen=True, kw_only=True):
    """Who would have to leave now for one session, and where it would start."""

    session: str
    name: str
    owner: str
    kind: str
    mode: str
    nodes: list[str]
    victims: list[PreemptedSession]


class PreemptionTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass would do now; nothing has been done. ``waiting`` counts who waits."""

    resource_group: str
    enabled: bool
    waiting: int
    items: list[ProposedPreemption]
