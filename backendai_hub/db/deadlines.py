"""Which sessions a policy or a resource group gives only so much time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Select, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.events import EventKind
from backendai_hub.core.groups import read_options
from backendai_hub.core.sessions import SessionStatus, SessionType
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.tables import (
    EventRow,
    KeypairPolicyRow,
    KeypairRow,
    ResourceGroupRow,
    SessionRow,
    UserRow,
)

_AT_ONCE = 500
"""Of so many sessions histories are read in one query."""


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


class IdleLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How long a running session may go unused, as its keypair policy says.

    ``seconds`` is -1 where the policy leaves it to the site.
    """

    session_id: str
    user: str
    server: str
    started_at: datetime
    seconds: int
    giver: str


def _with_policy(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Join running sessions with the keypair policies that count for them."""
    own, usual = aliased(KeypairRow), aliased(KeypairRow)
    policy = func.coalesce(own.resource_policy_id, usual.resource_policy_id)
    return (
        query.select_from(SessionRow)
        .outerjoin(own, own.id == SessionRow.keypair_id)
        .join(usual, (usual.user_id == SessionRow.owner_id) & usual.is_default)
        .join(KeypairPolicyRow, KeypairPolicyRow.id == policy)
        .where(
            SessionRow.status == str(SessionStatus.RUNNING),
            SessionRow.started_at.is_not(None),
        )
    )


# Asked every two seconds: making them takes three times as long as asking.
_LIFETIMES: Final = (
    _with_policy(
        select(
            SessionRow.id.label("session_id"),
            SessionRow.started_at.label("since"),
            KeypairPolicyRow.max_session_lifetime.label("seconds"),
            KeypairPolicyRow.name.label("giver"),
            SessionRow.deadline_at,
        )
    )
    .where(
        SessionRow.type != str(SessionType.INFERENCE),
        (KeypairPolicyRow.max_session_lifetime > 0)
        | SessionRow.deadline_at.is_not(None),
    )
    .order_by(SessionRow.id)
)
_IDLE_LIMITS: Final = (
    _with_policy(
        select(
            SessionRow.id.label("session_id"),
            UserRow.name.label("user"),
            SessionRow.server,
            SessionRow.started_at,
            KeypairPolicyRow.idle_timeout.label("seconds"),
            KeypairPolicyRow.name.label("giver"),
        )
    )
    .join(UserRow, UserRow.id == SessionRow.owner_id)
    .where(
        SessionRow.type == str(SessionType.INTERACTIVE),
        SessionRow.server.is_not(None),
        KeypairPolicyRow.idle_timeout != 0,
    )
    .order_by(SessionRow.id)
)


async def list_lifetimes(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Allowance]:
    """List the running sessions whose keypair policy ends them some day.

    The policy is that of the keypair a session was started with, and of its owner's
    default one where that keypair is gone. Those whose row still tells a deadline that
    nobody gives any more are listed, too.
    """
    query = _LIFETIMES
    if session_id is not None:
        query = query.where(SessionRow.id == session_id)
    return [Allowance(**row._mapping) for row in await connection.execute(query)]


_KEYPAIR_LIFETIMES: Final = (
    select(
        KeypairRow.id,
        KeypairRow.user_id,
        KeypairRow.is_default,
        KeypairPolicyRow.max_session_lifetime,
    )
    .join(KeypairPolicyRow, KeypairPolicyRow.id == KeypairRow.resource_policy_id)
    .where(
        KeypairRow.id.in_(bindparam("keys", expanding=True))
        | (
            KeypairRow.user_id.in_(bindparam("owners", expanding=True))
            & KeypairRow.is_default
        )
    )
)


async def load_lifetimes(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> dict[str, int]:
    """Return how many seconds these sessions will run at most, where that is limited.

    By the policies that count for running ones: see :func:`list_lifetimes`.
    """
    keys = {r.keypair_id for r in records if r.keypair_id is not None}
    owners = {r.owner_id for r in records}
    rows = await connection.execute(
        _KEYPAIR_LIFETIMES, {"keys": list(keys), "owners": list(owners)}
    )
    seconds: dict[str, int] = {}
    for key, owner, is_default, lifetime in rows:
        seconds[key] = lifetime
        if is_default:
            seconds[owner] = lifetime
    found = {
        r.id: seconds.get(r.keypair_id or r.owner_id, seconds.get(r.owner_id, 0))
        for r in records
        if r.type != str(SessionType.INFERENCE)
    }
    return {session_id: most for session_id, most in found.items() if most > 0}


async def list_idle_limits(
    connection: AsyncConnection, session_id: str | None = None
) -> list[IdleLimit]:
    """List the running interactive sessions that may end for want of use.

    The policy is the same as for lifetimes.
    """
    query = _IDLE_LIMITS
    if session_id is not None:
        query = query.where(SessionRow.id == session_id)
    return [IdleLimit(**row._mapping) for row in await connection.execute(query)]


async def list_pending_times(
    connection: AsyncConnection, session_id: str | None = None
) -> list[Allowance]:
    """List the waiting sessions whose resource group lets them wait only so long.

    While one is held its time does not run, and afterwards it goes on. One that is back
    in the queue, since it made room or was lost with its node, waits from then on.
    """
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
    rows = (await connection.execute(query.order_by(SessionRow.id))).all()
    of = SessionRow.status == str(SessionStatus.PENDING)
    if session_id is not None:
        of &= SessionRow.id == session_id
    waits = await _load_waits(connection, of) if rows else {}
    found = []
    for row in rows:
        name, seconds = timeouts.get(row.resource_group_id, ("", 0))
        wait = waits.get(row.id, _Wait())
        found.append(
            Allowance(
                session_id=row.id,
                since=(wait.since or row.created_at) + wait.held,
                seconds=0 if wait.held_since is not None else seconds,
                giver=name,
                deadline_at=row.deadline_at,
            )
        )
    return found


class _Wait(msgspec.Struct):
    """Since when a session is in the queue, unless from its beginning, and held."""

    since: datetime | None = None
    held: timedelta = timedelta(0)
    held_since: datetime | None = None
    placed: bool = False


_TELLING = (
    EventKind.SESSION_SCHEDULED,
    EventKind.SESSION_REQUEUED,
    EventKind.SESSION_HELD,
    EventKind.SESSION_RELEASED,
)


async def load_returns(
    connection: AsyncConnection, records: Iterable[SessionRecord]
) -> dict[str, datetime]:
    """Tell since when those of these wait that are back in the queue.

    That is who made room for others, or was lost with its node.
    """
    back = sorted(r.id for r in records if r.requeues + r.preemptions > 0)
    found: dict[str, datetime] = {}
    for start in range(0, len(back), _AT_ONCE):
        some = SessionRow.id.in_(back[start : start + _AT_ONCE])
        waits = await _load_waits(connection, some)
        found |= {i: wait.since for i, wait in waits.items() if wait.since is not None}
    return found


async def _load_waits(
    connection: AsyncConnection, of: ColumnElement[bool]
) -> dict[str, _Wait]:
    """Tell from their histories how long waiting sessions have been in the queue."""
    query = (
        select(EventRow.session_id, EventRow.kind, EventRow.at)
        .join(SessionRow, SessionRow.id == EventRow.session_id)
        .where(of, EventRow.kind.in_([str(kind) for kind in _TELLING]))
        .order_by(EventRow.seq)
    )
    found: dict[str, _Wait] = {}
    for session, kind, at in await connection.execute(query):
        wait = found.get(str(session), _Wait())
        found[str(session)] = _follow(wait, EventKind(kind), at)
    return found


def _follow(wait: _Wait, kind: EventKind, at: datetime) -> _Wait:
    """Return what one more event makes of a wait."""
    if kind is EventKind.SESSION_SCHEDULED:
        wait.placed = True
    elif kind is EventKind.SESSION_REQUEUED and wait.placed:
        return _Wait(since=at)  # not one for which room was kept: it never left
    elif kind is EventKind.SESSION_HELD:
        wait.held_since = wait.held_since or at  # again only changes the reason
    elif kind is EventKind.SESSION_RELEASED and wait.held_since is not None:
        wait.held += at - wait.held_since
        wait.held_since = None
    return wait


async def _list_pending_timeouts(
    connection: AsyncConnection,
) -> Mapping[str, tuple[str, int]]:
    rows = await connection.execute(
        select(
            ResourceGroupRow.id, ResourceGroupRow.name, ResourceGroupRow.scheduler_opts
        )
    )
    return {
        group: (name, read_options(options).pending_timeout)
        for group, name, options in rows
    }
