"""Showing everybody the nodes their sessions can run on."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agent_summaries import (
    AgentSummary,
    AgentSummaryPage,
    AgentSummaryQuery,
)
from backendai_hub.core.cursors import read_cursor, write_cursor
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import agents
from backendai_hub.db.agents import AgentFilter, AgentRecord
from backendai_hub.db.groups import list_allowed
from backendai_hub.operations.node_lists import count_slots, read_status
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE = 200
_ORDERS = ("name", "-name")


async def list_summaries(
    platform: Platform, user: Actor, query: AgentSummaryQuery
) -> AgentSummaryPage:
    """Return one page of the nodes of the groups open to *user*.

    Raises :class:`ForbiddenError` where the operator hides them.
    """
    if platform.settings.hide_agents:
        raise ForbiddenError("the operator of this platform does not show its nodes")
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    if query.order not in _ORDERS:
        raise InvalidRequestError(
            f"order: {query.order[:32]!r} is none of {', '.join(_ORDERS)}"
        )
    status = None if query.status is None else read_status(query.status)
    after = None if query.after is None else read_cursor(query.after, tuple[str, str])
    async with platform.database.read() as connection:
        targets = [user.domain_id, *user.projects, user.keypair_id]
        groups = {
            group.id: group.name
            for group in await list_allowed(connection, targets)
            if group.is_active and group.is_public
        }
        chosen = AgentFilter(
            groups=[
                i for i, name in groups.items() if query.resource_group in {None, name}
            ],
            statuses=None if status is None else [status],
            architectures=None if query.architecture is None else [query.architecture],
            reported=True,
            search=query.search,
        )
        found = await agents.list_page(
            connection,
            chosen,
            limit=query.limit + 1,
            after=after,
            order=query.order,
        )
        page = found[: query.limit]
        items = await _describe(connection, page, groups)
    following = None
    if len(found) > query.limit:
        following = write_cursor(page[-1].name, page[-1].id)
    return AgentSummaryPage(items=items, next=following)


async def _describe(
    connection: AsyncConnection, page: Sequence[AgentRecord], groups: dict[str, str]
) -> list[AgentSummary]:
    capacity, used = await count_slots(connection, [record.id for record in page])
    return [
        AgentSummary(
            name=record.name,
            status=record.status,
            resource_group=groups.get(record.resource_group_id or "", ""),
            architecture=record.architecture,
            schedulable=record.schedulable,
            capacity=capacity[record.id].to_text(),
            used=used[record.id].to_text(),
        )
        for record in page
    ]
