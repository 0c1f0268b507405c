"""Carrying out what a pass proposes: some leave, and their room is kept for one.

A proposal was made from a view. Here the session that waits, those who would leave and
the nodes are locked and looked at as they are now, in one transaction that changes
everything or nothing. From then on the database knows who leaves for whom, so that a
service that starts anew goes on where the last one was.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.attempts import Phase, Result
from backendai_hub.core.durations import describe_duration
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.groups import Preemption
from backendai_hub.core.preemptions import EXPIRY_SECONDS, Ending
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import (
    DEADLINES,
    DISPLACEABLE,
    SessionStatus,
)
from backendai_hub.db import agents, containers, ledger, preemptions, sessions
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.attempts import Tried, note_attempts
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import Entry
from backendai_hub.db.preemptions import PlanRecord
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.shares import list_rules
from backendai_hub.db.stops import list_stops
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.placement import find_reserved_since
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.preemption import can_go, may_displace
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    PreemptionPlan,
    ReservedWindow,
    RunningSession,
    Share,
)

log = logging.getLogger("backendai_hub.operations.preemption")

EXPIRED = "the room that was kept for it has not become free in time"
RETURNED = "the room that was kept for it is given back"
_DISPLACEABLE = frozenset(map(str, DISPLACEABLE))


async def carry_out(
    platform: Platform,
    plans: Sequence[PreemptionPlan],
    heeded: Collection[ReservedWindow] = (),
) -> int:
    """Carry out these proposals, each for itself; return how many still held.

    *heeded* are the reservations that have been thought of.
    """
    done = 0
    for plan in plans:
        try:
            async with platform.database.transaction() as tx:
                done += await _carry_out(platform, tx, plan, heeded)
        except (ConflictError, IntegrityError) as error:
            log.warning("nobody makes room for session %s: %s", plan.session, error)
    return done


class _Scene(NamedTuple):
    """Everybody a proposal is about, as they are now, locked."""

    waiting: SessionRecord
    victims: Sequence[SessionRecord]
    rules: Preemption


async def _carry_out(
    platform: Platform,
    tx: Transaction,
    plan: PreemptionPlan,
    heeded: Collection[ReservedWindow],
) -> bool:
    # Locked in the order in which placing does: sessions, ledger, nodes.
    scene = await _lock_scene(tx, plan)
    if scene is None or not await _has_room(tx, plan):
        return False
    reserved = await find_reserved_since(tx, heeded)
    if not reserved.isdisjoint(part.node for part in plan.parts):
        return False
    nodes = await _lock_nodes(tx, plan, scene)
    if nodes is None:
        return False
    grace = scene.rules.grace_seconds
    kept_until = tx.now + timedelta(seconds=grace + EXPIRY_SECONDS)
    reasons = {v.id: _tell_victim(v, scene.waiting, plan) for v in scene.victims}
    await preemptions.insert_plan(
        tx,
        PlanRecord(
            id=platform.new_id(),
            session_id=plan.session,
            resource_group_id=scene.waiting.resource_group_id,
            kind=plan.kind,
            mode=plan.mode,
            grace=grace,
            parts=plan.parts,
            created_at=tx.now,
            expires_at=kept_until,
        ),
        reasons,
    )
    tried = []
    for victim in scene.victims:
        following = _tell_rest(plan.mode, grace)
        await _send_away(tx, victim, plan.mode, grace, reasons[victim.id] + following)
        tried.append((victim.id, Result.PREEMPTED, reasons[victim.id] + following))
    words = _tell_waiting(nodes, len(scene.victims))
    await move(tx, scene.waiting, SessionStatus.RESERVED, words, deadline_at=kept_until)
    tried.append((plan.session, Result.RESERVED, words))
    await note_attempts(tx, [Tried(*one, phase=Phase.PREEMPTION) for one in tried])
    log.info("%d leave for session %s (%s)", len(reasons), plan.session, plan.kind)
    return True


async def _send_away(
    tx: Transaction, victim: SessionRecord, mode: str, grace: int, reason: str
) -> None:
    """Tell a session to go; it holds what it has until nothing of it is left."""
    usual = DEADLINES[SessionStatus.PREEMPTED] or 0.0
    again = mode == "reschedule"
    await move(
        tx,
        victim,
        SessionStatus.PREEMPTED,
        reason,
        deadline_at=tx.now + timedelta(seconds=grace + usual),
        ends_as=str(SessionStatus.PENDING if again else SessionStatus.TERMINATED),
    )


# --- whether it still holds ----------------------------------------------------------


async def _lock_scene(tx: Transaction, plan: PreemptionPlan) -> _Scene | None:
    """Lock everybody; None unless the group's rules still say what the plan says."""
    ids = {plan.session, *(victim.session for victim in plan.victims)}
    records = await sessions.lock_records(tx.connection, ids)
    waiting = records.pop(plan.session, None)
    if waiting is None or not waiting.ready or not records:
        return None
    if waiting.status is not SessionStatus.PENDING or len(records) != len(ids) - 1:
        return None
    group = waiting.resource_group_id or ""
    found = await list_rules(tx.connection, [group])
    if not found or await list_stops(tx.connection, {waiting.id, group}):
        return None
    rules, victims = found[0].options.preemption, list(records.values())
    may = all(_may_send_away(tx, waiting, v, plan, rules) for v in victims)
    return _Scene(waiting, victims, rules) if may else None


def _may_send_away(
    tx: Transaction,
    waiting: SessionRecord,
    victim: SessionRecord,
    plan: PreemptionPlan,
    rules: Preemption,
) -> bool:
    now = int(tx.now.timestamp())
    if victim.status not in DISPLACEABLE or rules.mode != plan.mode:
        return False
    other = _as_running(victim)
    if plan.kind == "reclaim":
        # What is guaranteed to whom is the pass's to judge; who it is, is not.
        same = victim.resource_group_id == waiting.resource_group_id
        return same and can_go(other, rules=rules, now=now)
    return rules.enabled and may_displace(_as_waiting(waiting), other, rules, now)


def _as_running(record: SessionRecord) -> RunningSession:
    since = record.started_at or record.scheduled_at
    return RunningSession(
        id=record.id,
        owner_id=record.owner_id,
        scopes=record.scopes,
        holdings=(),
        group=record.resource_group_id or "",
        started=0 if since is None else int(since.timestamp()),
        job_priority=record.job_priority,
        preemptible=record.is_preemptible,
        system=record.is_system,
    )


def _as_waiting(record: SessionRecord) -> PendingSession:
    return PendingSession(
        id=record.id,
        owner_id=record.owner_id,
        request=record.request,
        references={},
        architecture="",
        scopes=record.scopes,
        group=record.resource_group_id or "",
        job_priority=record.job_priority,
    )


async def _has_room(tx: Transaction, plan: PreemptionPlan) -> bool:
    """Tell whether its room is all there once those have left who leave."""
    wanted = [share for part in plan.parts for share in part.shares]
    devices = {share.device for share in wanted}
    rows = await ledger.lock_rows(
        tx, [Entry(ScopeKind.DEVICE, s.device, s.slot, s.amount) for s in wanted]
    )
    going = {victim.session for victim in plan.victims}
    taken = [
        share
        for session, status, share in await preemptions.list_held(
            tx.connection, devices
        )
        if status in _DISPLACEABLE and session not in going
    ]
    taken += [
        share
        for kept in (await preemptions.load_reserved(tx.connection)).values()
        for part in kept.parts
        for share in part.shares
        if share.device in devices
    ]
    for share in wanted:
        row = rows.get((ScopeKind.DEVICE, share.device, share.slot))
        if row is None or not _fits(share, taken, row.quota or 0):
            return False
        taken.append(share)
    return True


def _fits(share: Share, taken: Sequence[Share], quota: int) -> bool:
    same = [t for t in taken if t.device == share.device]
    if share.slices:
        return all(t.slices and not t.slices & share.slices for t in same)
    used = sum(t.amount for t in same if t.slot == share.slot)
    # What is cut into instances gives nothing else.
    return not any(t.slices for t in same) and used + share.amount <= quota


async def _lock_nodes(
    tx: Transaction, plan: PreemptionPlan, scene: _Scene
) -> list[AgentRecord] | None:
    """Lock every node that is told something; None if one of its own is not right."""
    own = {part.node for part in plan.parts}
    others = [
        node
        for victim in scene.victims
        for node in await containers.list_wanted_on(tx.connection, victim.id)
    ]
    locked = await agents.lock_agents(tx, own | set(others))
    nodes = [locked[node] for node in sorted(own) if node in locked]
    right = [
        node
        for node in nodes
        if node.status is AgentStatus.ALIVE
        and node.schedulable
        and node.resource_group_id == scene.waiting.resource_group_id
    ]
    return nodes if len(right) == len(own) else None


# --- what people are told ------------------------------------------------------------


def _tell_victim(
    victim: SessionRecord, waiting: SessionRecord, plan: PreemptionPlan
) -> str:
    """Say for whom it leaves; nobody learns of others' sessions by it."""
    whom = "another session"
    if victim.owner_id == waiting.owner_id:
        whom = f"your session {waiting.name}"
    if plan.kind == "reclaim":
        return f"preempted to make room for {whom}, which is guaranteed what it borrows"
    return f"preempted to make room for {whom}, which has a higher job priority"


def _tell_rest(mode: str, grace: int) -> str:
    return f"; it has {describe_duration(grace)} to save, then it" + (
        " waits in the queue again" if mode == "reschedule" else " ends"
    )


def _tell_waiting(nodes: Sequence[AgentRecord], count: int) -> str:
    names = ", ".join(sorted(node.name for node in nodes))
    if count == 1:
        return f"room is kept for it on {names} until 1 session has left"
    return f"room is kept for it on {names} until {count} sessions have left"


async def give_back(platform: Platform, returned: Mapping[str, str]) -> int:
    """Put those back into the queue who may not start in their room; return how many.

    Everybody has left who was to leave for them. What keeps them from starting may
    last, and the room is others' meanwhile.
    """
    done = 0
    for session_id, why in returned.items():
        async with platform.database.transaction() as tx:
            done += await _give_back(tx, session_id, why)
    return done


async def _give_back(tx: Transaction, session_id: str, why: str) -> bool:
    found = await sessions.lock_records(tx.connection, {session_id})
    record = found.get(session_id)
    if record is None or record.status is not SessionStatus.RESERVED:
        return False
    kept = await preemptions.load_reserved(tx.connection, [session_id])
    if any(reservation.victims for reservation in kept.values()):
        return False
    words = f"{why}; {RETURNED}"
    await preemptions.close_plans(tx, [session_id], Ending.WITHDRAWN)
    await move(tx, record, SessionStatus.PENDING, words)
    tried = Tried(session_id, Result.WAITING, words, phase=Phase.PREEMPTION)
    await note_attempts(tx, [tried])
    log.info("session %s gives its room back: %s", session_id, why)
    tx.wake("scheduler")
    return True


async def expire(tx: Transaction, record: SessionRecord) -> None:
    """Put a session back into the queue for which room was kept in vain."""
    words = f"waiting in the queue again: {EXPIRED}"
    await move(tx, record, SessionStatus.PENDING, words)
    tried = Tried(record.id, Result.EXPIRED, words, phase=Phase.PREEMPTION)
    await note_attempts(tx, [tried])
    tx.wake("scheduler")
