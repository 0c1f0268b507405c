"""What everybody may see of the nodes their sessions can run on."""

from __future__ import annotations

import msgspec

from backendai_hub.core.agents import AgentStatus


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node: how much of it there is and is taken, and whether more may start.

    ``capacity`` and ``used`` are amounts by slot, as text. Who uses it, and how it
    keeps people apart, is for administrators.
    """

    name: str
    status: AgentStatus
    resource_group: str
    architecture: str
    schedulable: bool
    capacity: dict[str, str]
    used: dict[str, str]


class AgentSummaryPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list; ``next`` is the cursor of the following one."""

    items: list[AgentSummary]
    next: str | None = None


class AgentSummaryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes to show; what is left out narrows nothing.

    ``search`` is a part of the name; ``order`` is ``name`` or ``-name``.
    """

    search: str | None = None
    resource_group: str | None = None
    status: str | None = None
    architecture: str | None = None
    limit: int = 50
    after: str | None = None
    order: str = "name"
