"""Lists of nodes, as administrators ask for them."""

from __future__ import annotations

import msgspec

from backendai_hub.core.agents import Agent


class AgentPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list; ``next`` is the cursor of the following one."""

    items: list[Agent]
    next: str | None = None


class AgentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes to show; what is left out narrows nothing.

    ``search`` is a part of the name. ``resource_group``, ``status``, ``architecture``
    and ``runtime`` may be several, separated by commas, any of which will do.
    ``order`` is name, status, resource_group, architecture or last_seen_at, with ``-``
    before it for the other direction.
    """

    search: str | None = None
    resource_group: str | None = None
    status: str | None = None
    schedulable: bool | None = None
    architecture: str | None = None
    runtime: str | None = None
    limit: int = 50
    after: str | None = None
    order: str = "name"
