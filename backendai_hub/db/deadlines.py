"""Which sessions a policy or a resource group gives only so much time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.groups import SchedulerOptions
from backendai_hub.core.sessions import SessionStatus, SessionType
from backendai_hub.db.tables import (
    KeypairPolicyRow,
    KeypairRow,
    ResourceGroupRow,
    SessionRow,
)


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """How long a session may stay in its state, since when, and who says so.

    ``seconds`` is 0 where nobody limits it any more. ``deadline_at`` is what the
    session's row says by now.
    """

    session_id: str
    since: datetime
    seconds: int
    giver: str
    deadline_at: datetime | None

    @property
    def due(self) -> datetime | None:
        """When the time is over; None is never."""
        if self.seconds <= 0:
            return None
        return self.since + timedelta(seconds=self.seconds)


async def list_lifetimes(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Allowance]:
    """List the running sessions whose keypair policy ends them some day.

    The policy is that of the keypair a session was started with, and of its owner's
    default one where that keypair is gone. Those whose row still tells a deadline that
    nobody gives any more are listed, too.
    """
    own, usual = aliased(KeypairRow), aliased(KeypairRow)
    policy = func.coalesce(own.resource_policy_id, usual.resource_policy_id)
    query = (
        select(
            SessionRow.id.label("session_id"),
            SessionRow.started_at.label("since"),
            KeypairPolicyRow.max_session_lifetime.label("seconds"),
            KeypairPolicyRow.name.label("giver"),
            SessionRow.deadline_at,
        )
        .outerjoin(own, own.id == SessionRow.keypair_id)
        .join(usual, (usual.user_id == SessionRow.owner_id) & usual.is_default)
        .join(KeypairPolicyRow, KeypairPolicyRow.id == policy)
        .where(
            SessionRow.status == str(SessionStatus.RUNNING),
            SessionRow.type != str(SessionType.INFERENCE),
            SessionRow.started_at.is_not(None),
            (KeypairPolicyRow.max_session_lifetime > 0)
            | SessionRow.deadline_at.is_not(None),
        )
    )
    if session_id is not None:
        query = query.where(SessionRow.id == session_id)
    rows = await connection.execute(query.order_by(SessionRow.id))
    return [Allowance(**row._mapping) for row in rows]


async def list_pending_times(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Allowance]:
    """List the waiting sessions whose resource group lets them wait only so long."""
    timeouts = await _list_pending_timeouts(connection)
    limited = [group for group, (_, seconds) in timeouts.items() if seconds > 0]
    query = select(
        SessionRow.id, SessionRow.created_at, SessionRow.deadline_at,
        SessionRow.resource_group_id,
    ).where(
        SessionRow.status == str(SessionStatus.PENDING),
        SessionRow.resource_group_id.in_(limited) | SessionRow.deadline_at.is_not(None),
    )  # fmt: skip
    if session_id is not None:
        query = query.where(SessionRow.id == session_id)
    rows = await connection.execute(query.order_by(SessionRow.id))
    found = []
    for row in rows:
        name, seconds = timeouts.get(row.resource_group_id, ("", 0))
        found.append(
            Allowance(
                session_id=row.id,
                since=row.created_at,
                seconds=seconds,
                giver=name,
                deadline_at=row.deadline_at,
            )
        )
    return found


async def _list_pending_timeouts(
    connection: AsyncConnection,
) -> Mapping[str, tuple[str, int]]:
    rows = await connection.execute(
        select(
            ResourceGroupRow.id, ResourceGroupRow.name, ResourceGroupRow.scheduler_opts
        )
    )
    return {
        group: (name, msgspec.convert(options or {}, SchedulerOptions).pending_timeout)
        for group, name, options in rows
    }
