"""What people and operators do to sessions that wait: priority, hold, release.

None of it changes when a session was asked for, and so its place among its equals.
"""

from __future__ import annotations

from typing import Any

import msgspec

from backendai_hub.core.access import Action, Principal, Reach, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ConflictError, ForbiddenError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.operators import Stop, StopKind, check_reason, tell_hold
from backendai_hub.core.policies import check_priority
from backendai_hub.core.preemptions import Ending
from backendai_hub.core.sessions import (
    QUEUED,
    WAITING_WORDS,
    Session,
    SessionStatus,
)
from backendai_hub.db import session_views, sessions, stops
from backendai_hub.db.engine import Transaction
from backendai_hub.db.keypairs import find_default
from backendai_hub.db.limits import load_caps
from backendai_hub.db.preemptions import close_plans
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import get_allowed

_QUEUED = WAITING_WORDS[SessionStatus.PENDING]


class HoldRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Why a session is held."""

    reason: str


async def set_priority(
    platform: Platform, principal: Principal, session_id: str, priority: int
) -> Session:
    """Give a waiting session another priority.

    Its owner stays within the policies of the keypair it was asked for with;
    administrators need not.
    """
    async with platform.database.transaction() as tx:
        record = await _get_waiting(
            tx, principal, session_id, Action.PRIORITIZE_SESSION
        )
        await _check_priority(tx, principal, record, priority)
        if priority != record.priority:
            await sessions.change_session(tx, record, priority=priority)
            tx.audit(
                _act(
                    Action.PRIORITIZE_SESSION,
                    record,
                    before={"priority": record.priority},
                    after={"priority": priority},
                )
            )
            _tell(
                tx,
                record,
                EventKind.SESSION_PRIORITY,
                f"priority {priority} instead of {record.priority}",
                principal,
            )
            tx.wake("scheduler")
    return await _read(platform, session_id)


async def _check_priority(
    tx: Transaction, principal: Principal, record: SessionRecord, priority: int
) -> None:
    check_priority(priority)
    if reach(principal, Action.PRIORITIZE_SESSION) is not Reach.OWN:
        return
    usual = await find_default(tx.connection, record.owner_id)
    # Neither the key it was asked for with nor the one that is shown now is got round.
    for keypair_id in {record.keypair_id or usual, principal.keypair_id or usual}:
        check_priority(priority, await load_caps(tx.connection, keypair_id))


async def hold_session(
    platform: Platform, principal: Principal, session_id: str, body: HoldRequest
) -> Session:
    """Keep a waiting session from starting until it is released.

    Holding it again changes the reason. An owner does not take over what an
    administrator holds.
    """
    reason = check_reason(body.reason)
    async with platform.database.transaction() as tx:
        record = await _get_waiting(tx, principal, session_id, Action.HOLD_SESSION)
        before = await stops.find_stop(tx.connection, StopKind.SESSION, record.id)
        by_owner = record.owner_id == principal.id
        if by_owner and before is not None:
            _refuse_admins(principal, before, Action.HOLD_SESSION)
        stop = Stop(
            kind=StopKind.SESSION,
            target_id=record.id,
            actor=principal.name,
            by_owner=by_owner,
            since=tx.now if before is None else before.since,
            reason=reason,
        )
        await stops.put_stop(tx, stop)
        if record.status is SessionStatus.RESERVED:
            # Nothing is kept for who may not start; those who leave for it go on.
            await close_plans(tx, [record.id], Ending.WITHDRAWN)
            record = await move(tx, record, SessionStatus.PENDING, tell_hold(stop))
        else:
            await sessions.change_session(tx, record, reason=tell_hold(stop))
        tx.audit(
            _act(
                Action.HOLD_SESSION,
                record,
                before=None if before is None else {"reason": before.reason},
                after={"reason": reason},
            )
        )
        _tell(tx, record, EventKind.SESSION_HELD, tell_hold(stop), principal)
        tx.wake("scheduler")
    return await _read(platform, session_id)


async def release_session(
    platform: Platform, principal: Principal, session_id: str
) -> Session:
    """Let a held session start when it is its turn; releasing it twice is no error."""
    async with platform.database.transaction() as tx:
        record = await _get_waiting(tx, principal, session_id, Action.RELEASE_SESSION)
        before = await stops.find_stop(tx.connection, StopKind.SESSION, record.id)
        if before is not None:
            if record.owner_id == principal.id:
                _refuse_admins(principal, before, Action.RELEASE_SESSION)
            await stops.drop_stop(tx, StopKind.SESSION, record.id)
            await sessions.change_session(tx, record, reason=_QUEUED)
            tx.audit(
                _act(Action.RELEASE_SESSION, record, before={"reason": before.reason})
            )
            _tell(tx, record, EventKind.SESSION_RELEASED, "released", principal)
            tx.wake("scheduler")
    return await _read(platform, session_id)


def _refuse_admins(principal: Principal, stop: Stop, action: str) -> None:
    """Refuse an owner what an administrator has said, but for who may do anything."""
    if stop.by_owner or reach(principal, action) is Reach.ALL:
        return
    raise ForbiddenError(
        f"this session is {tell_hold(stop)}; only an administrator can release it"
    )


async def _get_waiting(
    tx: Transaction, principal: Principal, session_id: str, action: Action
) -> SessionRecord:
    record = await get_allowed(tx.connection, principal, session_id, action, lock=True)
    if record.status not in QUEUED:
        raise ConflictError(
            f"session {record.name} is {record.status}; only what waits in the queue"
            " has a priority or can be held",
            status_now=str(record.status),
        )
    return record


async def _read(platform: Platform, session_id: str) -> Session:
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, session_id)


def _tell(
    tx: Transaction,
    record: SessionRecord,
    kind: EventKind,
    text: str,
    principal: Principal,
) -> None:
    tx.record(
        Event(
            kind=kind,
            text=text,
            actor=principal.name,
            session_id=record.id,
            owner_id=record.owner_id,
            status=record.status,
        )
    )


def _act(action: Action, record: SessionRecord, **changes: Any) -> Act:
    return Act(
        action=action,
        object_kind="session",
        object_id=record.id,
        object_name=record.name,
        domain_id=record.domain_id,
        owner_id=record.owner_id,
        **changes,
    )
