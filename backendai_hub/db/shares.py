"""Reading and writing what scopes weigh, are guaranteed and may have in a group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy import and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.fair_share import find_usage
from backendai_hub.core.groups import FairShare, SchedulerOptions, read_options
from backendai_hub.core.sessions import QUEUED
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    GroupShareRow,
    MembershipRow,
    ProjectRow,
    ResourceGroupAccessRow,
    ResourceGroupRow,
    SessionRow,
)
from backendai_hub.db.usage import load_live
from backendai_hub.scheduling.shares import Path, ShareState
from backendai_hub.scheduling.snapshot import ScopeQuota

Scope = tuple[str, str, str]
"""Domain, project and user by id; what a scope has none of is empty."""


class ShareRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody has set for a scope."""

    weight: float | None = None
    guaranteed: Mapping[str, int] = {}
    maximum: Mapping[str, int] = {}


class GroupRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a group's queue is ordered and worked off, and how past use counts in it."""

    id: str
    name: str
    scheduler: str
    spec: FairShare
    options: SchedulerOptions = SchedulerOptions()


def path_of_scope(scope: Scope) -> Path:
    """Name a scope as the scheduler does."""
    return tuple(part for part in scope if part)


async def list_rules(
    connection: AsyncConnection, group_ids: Collection[str]
) -> list[GroupRules]:
    """Read how these groups' queues are ordered."""
    rows = await connection.execute(
        select(
            ResourceGroupRow.id,
            ResourceGroupRow.name,
            ResourceGroupRow.scheduler,
            ResourceGroupRow.fair_share_spec,
            ResourceGroupRow.scheduler_opts,
        ).where(ResourceGroupRow.id.in_(group_ids))
    )
    return [
        GroupRules(
            id=row.id,
            name=row.name,
            scheduler=row.scheduler,
            spec=msgspec.convert(row.fair_share_spec or {}, FairShare),
            options=read_options(row.scheduler_opts),
        )
        for row in rows
    ]


async def list_shares(
    connection: AsyncConnection, group_id: str
) -> dict[Scope, ShareRecord]:
    """Read what is set in a group."""
    rows = await connection.execute(
        select(
            GroupShareRow.domain_id,
            GroupShareRow.project_id,
            GroupShareRow.user_id,
            GroupShareRow.weight,
            GroupShareRow.guaranteed,
            GroupShareRow.maximum,
        ).where(GroupShareRow.group_id == group_id)
    )
    return {
        (domain, project, user): ShareRecord(
            weight=weight, guaranteed=guaranteed, maximum=maximum
        )
        for domain, project, user, weight, guaranteed, maximum in rows
    }


async def put_share(
    tx: Transaction, group_id: str, scope: Scope, record: ShareRecord
) -> None:
    """Set what a scope weighs, is guaranteed and may have; nothing of it is no row."""
    domain, project, user = scope
    this = and_(
        GroupShareRow.group_id == group_id,
        GroupShareRow.domain_id == domain,
        GroupShareRow.project_id == project,
        GroupShareRow.user_id == user,
    )
    if record == ShareRecord():
        await tx.execute(delete(GroupShareRow).where(this))
        return
    values: dict[str, Any] = {
        "weight": record.weight,
        "guaranteed": dict(record.guaranteed),
        "maximum": dict(record.maximum),
        "modified_at": tx.now,
    }
    changed = await tx.execute(
        update(GroupShareRow)
        .where(this)
        .values(revision=GroupShareRow.revision + 1, **values)
    )
    if not changed.rowcount:
        await tx.execute(
            insert(GroupShareRow).values(
                group_id=group_id,
                domain_id=domain,
                project_id=project,
                user_id=user,
                **values,
            )
        )


async def load_share_state(
    connection: AsyncConnection,
    rules: GroupRules,
    capacity: Mapping[str, int],
    used: Mapping[Scope, Mapping[str, float]],
) -> ShareState:
    """Read everything that a group's shares are reckoned from, beside what was used."""
    settings = await list_shares(connection, rules.id)
    live = (await load_live(connection, [rules.id])).get(rules.id, {})
    return ShareState(
        capacity=capacity,
        live={tuple(user): held for user, held in live.items()},
        weights={
            path_of_scope(scope): record.weight
            for scope, record in settings.items()
            if record.weight is not None
        },
        default_weight=rules.spec.default_weight,
        history=find_histories(used, capacity, rules.spec),
        ignored=frozenset(s for s, w in rules.spec.resource_weights.items() if w <= 0),
    )


def find_histories(
    used: Mapping[Scope, Mapping[str, float]],
    capacity: Mapping[str, int],
    spec: FairShare,
) -> dict[Path, float]:
    """Return the usage of every scope, from what its users have used."""
    sums: dict[Path, dict[str, float]] = {}
    for user, slots in used.items():
        for depth in (1, 2, 3):
            held = sums.setdefault(user[:depth], {})
            for slot, seconds in slots.items():
                held[slot] = held.get(slot, 0.0) + seconds
    return {path: find_usage(slots, capacity, spec) for path, slots in sums.items()}


async def load_quotas(
    connection: AsyncConnection, group_id: str
) -> dict[Path, ScopeQuota]:
    """Read what is guaranteed in a group, and at most, for the scheduler."""
    return {
        path_of_scope(scope): ScopeQuota(
            guaranteed=record.guaranteed, maximum=record.maximum
        )
        for scope, record in (await list_shares(connection, group_id)).items()
        if record.guaranteed or record.maximum
    }


async def count_waiting(connection: AsyncConnection, group_id: str) -> dict[Scope, int]:
    """Count what waits in a group, by domain, project and user."""
    who = (SessionRow.domain_id, SessionRow.project_id, SessionRow.owner_id)
    rows = await connection.execute(
        select(*who, func.count())
        .where(
            SessionRow.resource_group_id == group_id,
            SessionRow.status.in_([str(s) for s in QUEUED]),
        )
        .group_by(*who)
    )
    return {(domain, project, user): count for domain, project, user, count in rows}


async def list_domains_of(connection: AsyncConnection, group_id: str) -> set[str]:
    """Return the domains that a group is open to as a whole."""
    return set(
        await connection.scalars(
            select(ResourceGroupAccessRow.target_id).where(
                ResourceGroupAccessRow.group_id == group_id,
                ResourceGroupAccessRow.kind == "domain",
            )
        )
    )


async def list_projects_of(connection: AsyncConnection, domain_id: str) -> set[str]:
    """Return the projects of a domain."""
    return set(
        await connection.scalars(
            select(ProjectRow.id).where(ProjectRow.domain_id == domain_id)
        )
    )


async def list_members_of(connection: AsyncConnection, project_id: str) -> set[str]:
    """Return the members of a project."""
    return set(
        await connection.scalars(
            select(MembershipRow.user_id).where(MembershipRow.project_id == project_id)
        )
    )


async def name_all(
    connection: AsyncConnection, row: Any, ids: Collection[str]
) -> dict[str, str]:
    """Return the names of what is still there."""
    rows = await connection.execute(select(row.id, row.name).where(row.id.in_(ids)))
    return {row.id: row.name for row in rows}


async def longest_lookback(connection: AsyncConnection) -> int:
    """Return for how many days some group looks back, at most."""
    specs = await connection.scalars(select(ResourceGroupRow.fair_share_spec))
    found = [msgspec.convert(spec or {}, FairShare).lookback_days for spec in specs]
    return max(found, default=0)
