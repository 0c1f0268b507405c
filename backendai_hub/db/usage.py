"""Counting what is used: amounts times seconds, by day, each second exactly once.

Every allocation says up to when it has been counted. What is counted moves that mark
and adds to the day's bucket in one transaction, so that whatever happens between two
passes, and however often one is tried, each second of it is in exactly one bucket. If
the mark lies beyond the end, because a clock was wrong, the difference is taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.fair_share import MOST_DAYS, decay, split_days
from backendai_hub.core.groups import FairShare
from backendai_hub.core.sessions import SessionType
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    AllocationRow,
    ContainerRow,
    SessionRow,
    UsageBucketRow,
)

AT_ONCE: Final = 1000
"""How many allocations are counted in one transaction."""
PERIOD: Final = timedelta(minutes=5)
"""What is running is counted so often; what has ended, at once."""

Bucket = tuple[str, str, str, str, str, date]

_UNCOUNTED = or_(
    AllocationRow.freed_at.is_(None),
    AllocationRow.counted_until.is_(None),
    AllocationRow.counted_until != AllocationRow.freed_at,
)


async def count_usage(tx: Transaction, which: Any = None) -> int:
    """Count allocations that are due, or *which* of them, as far as a batch goes.

    Return how many. Nobody waits for rows that somebody else is at: they are due next
    time, and the buckets are added to by one statement each.
    """
    due = or_(
        AllocationRow.freed_at.is_not(None),
        AllocationRow.counted_until.is_(None),
        AllocationRow.counted_until <= tx.now - PERIOD,
        AllocationRow.counted_until > tx.now,
    )
    query = (
        select(
            AllocationRow.id,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.freed_at,
            AllocationRow.counted_until,
            ContainerRow.created_at,
            SessionRow.resource_group_id,
            SessionRow.domain_id,
            SessionRow.project_id,
            SessionRow.owner_id,
            SessionRow.type,
        )
        .join(ContainerRow, ContainerRow.id == AllocationRow.container_id)
        .join(SessionRow, SessionRow.id == AllocationRow.session_id)
        .where(_UNCOUNTED, due)
        .order_by(AllocationRow.id)
        .limit(AT_ONCE)
        .with_for_update(of=AllocationRow, skip_locked=True)
    )
    if which is not None:
        query = query.where(which, AllocationRow.freed_at.is_not(None))
    rows = (await tx.connection.execute(query)).all()
    if not rows:
        return 0
    await _add(tx, _sum(rows, tx.now))
    # Nobody's sessions look different: no list shows what is counted.
    await tx.execute(
        update(AllocationRow)
        .where(AllocationRow.id.in_([row.id for row in rows]))
        .values(
            counted_until=case(
                (AllocationRow.freed_at.is_(None), bindparam("until", tx.now)),
                else_=AllocationRow.freed_at,
            )
        ),
        owner=(),
        ids=(),
    )
    return len(rows)


def _sum(rows: Iterable[Any], now: datetime) -> dict[Bucket, float]:
    """Add up what is new, bucket by bucket."""
    sums: dict[Bucket, float] = {}
    for row in rows:
        if row.resource_group_id is None or row.type == SessionType.SYSTEM:
            continue  # nobody's turn depends on it
        end = row.freed_at or now
        if row.counted_until is None:
            end = max(end, row.created_at)
        for day, seconds in split_days(row.counted_until or row.created_at, end):
            bucket = (
                row.resource_group_id,
                row.domain_id,
                row.project_id,
                row.owner_id,
                row.slot,
                day,
            )
            sums[bucket] = sums.get(bucket, 0.0) + row.amount * seconds
    return sums


async def _add(tx: Transaction, sums: Mapping[Bucket, float]) -> None:
    if not sums:
        return
    dialect = tx.connection.dialect.name
    build = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = build(UsageBucketRow)
    names = ("group_id", "domain_id", "project_id", "user_id", "slot", "day")
    await tx.execute(
        statement.on_conflict_do_update(
            index_elements=names,
            set_={"seconds": UsageBucketRow.seconds + statement.excluded.seconds},
        ),
        # In one order, so that two who add at once wait for each other, not both.
        [
            {**dict(zip(names, bucket, strict=True)), "seconds": seconds}
            for bucket, seconds in sorted(sums.items())
        ],
    )


async def forget_usage(tx: Transaction, today: date, keep_days: int) -> None:
    """Remove the days that no longer count for anybody."""
    first = today - timedelta(days=max(MOST_DAYS, keep_days))
    await tx.execute(delete(UsageBucketRow).where(UsageBucketRow.day < first))


async def load_history(
    connection: AsyncConnection, group_id: str, today: date, rules: FairShare
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return what each user has used of each slot, old days counting less.

    By domain, project and user. The database adds up, so that not every day of
    everybody has to be carried here.
    """
    counts = {
        today - timedelta(days=age): decay(age, rules)
        for age in range(min(rules.lookback_days, MOST_DAYS))
    }
    decayed = UsageBucketRow.seconds * case(counts, value=UsageBucketRow.day, else_=0.0)
    who = (
        UsageBucketRow.domain_id,
        UsageBucketRow.project_id,
        UsageBucketRow.user_id,
    )
    rows = await connection.execute(
        select(*who, UsageBucketRow.slot, func.sum(decayed))
        .where(
            UsageBucketRow.group_id == group_id,
            UsageBucketRow.day.between(min(counts), max(counts)),
        )
        .group_by(*who, UsageBucketRow.slot)
    )
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for domain, project, user, slot, seconds in rows:
        found.setdefault((domain, project, user), {})[slot] = float(seconds)
    return found


async def load_days(
    connection: AsyncConnection,
    group_id: str,
    first: date,
    scope: tuple[str | None, str | None, str | None],
) -> dict[date, dict[str, float]]:
    """Return what a scope has used since *first*, by day and slot."""
    columns = (
        UsageBucketRow.domain_id,
        UsageBucketRow.project_id,
        UsageBucketRow.user_id,
    )
    wanted = [
        column == value
        for column, value in zip(columns, scope, strict=True)
        if value is not None
    ]
    rows = await connection.execute(
        select(
            UsageBucketRow.day, UsageBucketRow.slot, func.sum(UsageBucketRow.seconds)
        )
        .where(
            and_(
                UsageBucketRow.group_id == group_id,
                UsageBucketRow.day >= first,
                *wanted,
            )
        )
        .group_by(UsageBucketRow.day, UsageBucketRow.slot)
        .order_by(UsageBucketRow.day)
    )
    found: dict[date, dict[str, float]] = {}
    for day, slot, seconds in rows:
        found.setdefault(day, {})[slot] = float(seconds)
    return found


async def load_live(
    connection: AsyncConnection, group_ids: Collection[str]
) -> dict[str, dict[tuple[str, str, str], dict[str, int]]]:
    """Return what users hold now, by group, and by domain, project and user."""
    who = (
        SessionRow.resource_group_id,
        SessionRow.domain_id,
        SessionRow.project_id,
        SessionRow.owner_id,
    )
    rows = await connection.execute(
        select(*who, AllocationRow.slot, func.sum(AllocationRow.amount))
        .join(SessionRow, SessionRow.id == AllocationRow.session_id)
        .where(
            AllocationRow.freed_at.is_(None),
            SessionRow.resource_group_id.in_(group_ids),
            SessionRow.type != str(SessionType.SYSTEM),
        )
        .group_by(*who, AllocationRow.slot)
    )
    found: dict[str, dict[tuple[str, str, str], dict[str, int]]] = {}
    for group, domain, project, user, slot, amount in rows:
        people = found.setdefault(str(group), {})
        people.setdefault((domain, project, user), {})[slot] = int(amount)
    return found
