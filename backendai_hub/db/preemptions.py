"""Reading and writing plans that make room, and who leaves by them.

A plan's row is changed only by who has locked the session that it is for, and a
victim's only by who has locked that session; the rows themselves need no lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import and_, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.preemptions import Ending, Fate
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    AllocationRow,
    PreemptionRow,
    ResourceGroupRow,
    SessionRow,
    UserRow,
    VictimRow,
)
from backendai_hub.scheduling.snapshot import Reservation, ReservedPart, Share

_OPEN = PreemptionRow.closed_at.is_(None)
_LEAVING = VictimRow.left_at.is_(None)


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that is being carried out."""

    id: str
    session_id: str
    resource_group_id: str | None
    kind: str
    mode: str
    grace: int
    parts: tuple[ReservedPart, ...]
    created_at: datetime
    expires_at: datetime


async def insert_plan(
    tx: Transaction, plan: PlanRecord, victims: Mapping[str, str]
) -> None:
    """Store a plan and why each of its victims leaves, by id."""
    await tx.execute(
        insert(PreemptionRow).values(
            {
                **msgspec.structs.asdict(plan),
                "parts": msgspec.to_builtins(plan.parts),
            }
        )
    )
    await tx.execute(
        insert(VictimRow),
        [
            {"preemption_id": plan.id, "session_id": session_id, "reason": reason}
            for session_id, reason in victims.items()
        ],
    )


async def close_plans(tx: Transaction, ids: Collection[str], ending: Ending) -> None:
    """Close what is open for these sessions, which are locked."""
    await tx.execute(
        update(PreemptionRow)
        .where(PreemptionRow.session_id.in_(sorted(ids)), _OPEN)
        .values(closed_at=tx.now, outcome=str(ending))
    )


async def note_left(tx: Transaction, session_id: str, fate: Fate) -> None:
    """Note what became of a session that may have had to make room; it is locked."""
    await tx.execute(
        update(VictimRow)
        .where(VictimRow.session_id == session_id, _LEAVING)
        .values(left_at=tx.now, outcome=str(fate))
    )


async def load_reserved(
    connection: AsyncConnection, ids: Collection[str] | None = None
) -> dict[str, Reservation]:
    """Return what is kept, of these sessions or of all, by the session it is for."""
    query = select(
        PreemptionRow.id,
        PreemptionRow.session_id,
        PreemptionRow.resource_group_id,
        PreemptionRow.parts,
    ).where(_OPEN)
    if ids is not None:
        query = query.where(PreemptionRow.session_id.in_(ids))
    rows = list(await connection.execute(query.order_by(PreemptionRow.id)))
    victims = await _load_victims(connection, [row.id for row in rows])
    return {
        row.session_id: Reservation(
            session=row.session_id,
            group=row.resource_group_id or "",
            parts=msgspec.convert(row.parts, tuple[ReservedPart, ...]),
            starts=None,
            displacing=True,
            victims=tuple(victims.get(row.id, ())),
        )
        for row in rows
    }


async def _load_victims(
    connection: AsyncConnection, plans: Collection[str]
) -> dict[str, list[str]]:
    """Return who still leaves by these plans."""
    if not plans:
        return {}
    rows = await connection.execute(
        select(VictimRow.preemption_id, VictimRow.session_id)
        .where(VictimRow.preemption_id.in_(plans), _LEAVING)
        .order_by(VictimRow.session_id)
    )
    found: dict[str, list[str]] = {}
    for plan, session in rows:
        found.setdefault(plan, []).append(session)
    return found


async def count_leaving(
    connection: AsyncConnection, session_id: str
) -> tuple[int, int]:
    """Count who has left for a waiting session, and who leaves in all."""
    row = (
        await connection.execute(
            select(func.count(VictimRow.left_at), func.count())
            .join(PreemptionRow, PreemptionRow.id == VictimRow.preemption_id)
            .where(PreemptionRow.session_id == session_id, _OPEN)
        )
    ).one()
    return int(row[0]), int(row[1])


async def load_graces(
    connection: AsyncConnection, sessions: Collection[str]
) -> dict[str, int]:
    """Return how many seconds those of these have who leave to make room."""
    if not sessions:
        return {}
    rows = await connection.execute(
        select(VictimRow.session_id, PreemptionRow.grace)
        .join(PreemptionRow, PreemptionRow.id == VictimRow.preemption_id)
        .where(VictimRow.session_id.in_(sorted(sessions)), _LEAVING)
    )
    return {row.session_id: row.grace for row in rows}


async def list_held(
    connection: AsyncConnection, devices: Collection[str]
) -> list[tuple[str, str, Share]]:
    """List (session, its status, share) of what is held of these devices."""
    rows = await connection.execute(
        select(
            AllocationRow.session_id,
            SessionRow.status,
            AllocationRow.device_id,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.slices,
        )
        .join(SessionRow, SessionRow.id == AllocationRow.session_id)
        .where(
            AllocationRow.device_id.in_(sorted(devices)),
            AllocationRow.freed_at.is_(None),
        )
    )
    return [
        (row.session_id, row.status, Share(row[2], row[3], row[4], row[5]))
        for row in rows
    ]


# --- as people see them --------------------------------------------------------------


class PlanFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which plans a list shows: of whom, and about what.

    ``owner_id`` and ``domain_id`` are those of a session on either side.
    """

    owner_id: str | None = None
    domain_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    kind: str | None = None
    is_open: bool | None = None


class ShownPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as it is stored, with the name of its resource group."""

    id: str
    session_id: str
    group: str | None
    kind: str
    mode: str
    parts: tuple[ReservedPart, ...]
    created_at: datetime
    expires_at: datetime
    closed_at: datetime | None
    outcome: str | None


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a plan: the one it is for, or a victim."""

    plan: str
    id: str
    name: str
    owner: str
    owner_id: str
    domain_id: str
    reason: str = ""
    outcome: str | None = None
    left_at: datetime | None = None


async def list_plans(
    connection: AsyncConnection,
    wanted: PlanFilter,
    *,
    limit: int,
    before: str | None = None,
) -> list[ShownPlan]:
    """List plans, the newest first, from behind the one with id *before*."""
    query = select(
        PreemptionRow.id,
        PreemptionRow.session_id,
        ResourceGroupRow.name.label("group"),
        PreemptionRow.kind,
        PreemptionRow.mode,
        PreemptionRow.parts,
        PreemptionRow.created_at,
        PreemptionRow.expires_at,
        PreemptionRow.closed_at,
        PreemptionRow.outcome,
    ).outerjoin(
        ResourceGroupRow, ResourceGroupRow.id == PreemptionRow.resource_group_id
    )
    for condition in _conditions(wanted):
        query = query.where(condition)
    if before is not None:
        query = query.where(PreemptionRow.id < before)
    rows = await connection.execute(
        query.order_by(PreemptionRow.id.desc()).limit(limit)
    )
    return [
        ShownPlan(
            **{
                **row._mapping,
                "parts": msgspec.convert(row.parts, tuple[ReservedPart, ...]),
            }
        )
        for row in rows
    ]


def _conditions(wanted: PlanFilter) -> list[Any]:
    # One and the same session has to be all of that: nobody finds out by an id that
    # they know whether it is the one of others that is not shown to them.
    named = {
        "owner_id": wanted.owner_id,
        "domain_id": wanted.domain_id,
        "id": wanted.session_id,
    }
    asked = {name: value for name, value in named.items() if value is not None}
    found: list[Any] = []
    if asked:
        found.append(
            _concerns(
                lambda row: and_(*(getattr(row, n) == v for n, v in asked.items()))
            )
        )
    if wanted.group_id is not None:
        found.append(PreemptionRow.resource_group_id == wanted.group_id)
    if wanted.kind is not None:
        found.append(PreemptionRow.kind == wanted.kind)
    if wanted.is_open is not None:
        found.append(_OPEN if wanted.is_open else ~_OPEN)
    return found


def _concerns(condition: Any) -> Any:
    """Build the condition that a session of a plan, on either side, is like that."""
    waiting, victim = aliased(SessionRow), aliased(SessionRow)
    return or_(
        select(waiting.id)
        .where(waiting.id == PreemptionRow.session_id, condition(waiting))
        .exists(),
        select(VictimRow.session_id)
        .join(victim, victim.id == VictimRow.session_id)
        .where(VictimRow.preemption_id == PreemptionRow.id, condition(victim))
        .exists(),
    )


_WHO = (
    SessionRow.id,
    SessionRow.name,
    UserRow.name.label("owner"),
    SessionRow.owner_id,
    SessionRow.domain_id,
)


async def list_waiting_sides(
    connection: AsyncConnection, plans: Sequence[str]
) -> dict[str, Side]:
    """Return whom these plans are for, by plan."""
    rows = await connection.execute(
        select(PreemptionRow.id.label("plan"), *_WHO)
        .join(SessionRow, SessionRow.id == PreemptionRow.session_id)
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(PreemptionRow.id.in_(plans))
    )
    return {row.plan: Side(**row._mapping) for row in rows}


async def list_victims(
    connection: AsyncConnection, plans: Sequence[str]
) -> dict[str, list[Side]]:
    """Return who leaves by these plans, or has left, by plan."""
    rows = await connection.execute(
        select(
            VictimRow.preemption_id.label("plan"),
            *_WHO,
            VictimRow.reason,
            VictimRow.outcome,
            VictimRow.left_at,
        )
        .join(SessionRow, SessionRow.id == VictimRow.session_id)
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(VictimRow.preemption_id.in_(plans))
        .order_by(VictimRow.session_id)
    )
    found: dict[str, list[Side]] = {}
    for row in rows:
        found.setdefault(row.plan, []).append(Side(**row._mapping))
    return found
