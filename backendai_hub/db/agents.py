"""Reading and writing nodes, devices, enrolment tokens and versions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from sqlalchemy import (
    BindParameter,
    and_,
    asc,
    bindparam,
    desc,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    AgentRow,
    DeviceRow,
    EnrollTokenRow,
    LedgerRow,
    ResourceGroupRow,
    VersionRow,
)


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One node's row."""

    id: str
    name: str
    machine_id: str
    status: AgentStatus
    resource_group_id: str | None = None
    schedulable: bool
    epoch: int
    sequence: int
    generation: int
    url: str
    architecture: str
    version: str
    protocol: int = 1
    isolation: dict[str, Any]
    images: list[str]
    unknown: list[str]
    enrolled_at: datetime
    first_seen_at: datetime | None
    last_seen_at: datetime | None
    labels: dict[str, str] = {}
    set_labels: dict[str, str] = {}
    max_containers: int | None = None


class AgentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes a list shows; None narrows nothing.

    ``groups`` are ids, ``search`` is a part of the name, in any case. Where they are
    ``reported``, those that have enrolled and never said anything are left out.
    """

    groups: Collection[str] | None = None
    statuses: Collection[AgentStatus] | None = None
    architectures: Collection[str] | None = None
    runtimes: Collection[str] | None = None
    schedulable: bool | None = None
    reported: bool = False
    search: str | None = None


class DeviceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One device's row."""

    id: str
    agent_id: str
    name: str
    kind: str
    model: str
    numa: int | None
    whole: bool
    present: bool
    links: dict[str, int] = {}
    profiles: dict[str, list[int]] = {}
    slices: int = 0


class Balance(msgspec.Struct, frozen=True):
    """One ledger row: what is used, and the quota (None: unlimited)."""

    used: int
    quota: int | None


class EnrollToken(msgspec.Struct, frozen=True, kw_only=True):
    """One enrolment token's row."""

    hash: str
    expires_at: datetime
    agent_id: str | None
    machine_id: str | None


def _record(mapping: Any) -> AgentRecord:
    values = dict(mapping)
    values["status"] = AgentStatus(values["status"])
    return AgentRecord(**values)


_AGENTS = AgentRow.__table__

NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When a node was last seen that never was: it is listed before all others."""
_GROUP_NAME: Final = func.coalesce(
    select(ResourceGroupRow.name)
    .where(ResourceGroupRow.id == AgentRow.resource_group_id)
    .scalar_subquery(),
    "",
)
SORTS: Final[Mapping[str, Any]] = {
    "name": AgentRow.name,
    "status": AgentRow.status,
    "resource_group": _GROUP_NAME,
    "architecture": AgentRow.architecture,
    "last_seen_at": func.coalesce(
        AgentRow.last_seen_at, bindparam("never", NEVER, AgentRow.last_seen_at.type)
    ),
}
"""What lists of nodes can be ordered by."""


async def get_agent(
    connection: AsyncConnection, agent_id: str, *, lock: bool = False
) -> AgentRecord:
    """Read one node."""
    query = select(_AGENTS).where(AgentRow.id == agent_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).first()
    if row is None:
        raise NotFoundError(f"there is no node {agent_id}")
    return _record(row._mapping)


# Statements that are made once: making one takes longer than having it answered.
_NAMED: Final[BindParameter[Any]] = bindparam("ids", expanding=True)
_BY_NAME: Final = select(_AGENTS).order_by(AgentRow.name, AgentRow.id)
_THESE: Final = _BY_NAME.where(AgentRow.id.in_(_NAMED))
_LOCKED: Final = (
    select(_AGENTS)
    .where(AgentRow.id.in_(_NAMED))
    .order_by(AgentRow.id)
    .with_for_update()
)
_BUMPED: Final = (
    update(AgentRow)
    .where(AgentRow.id.in_(_NAMED))
    .values(generation=AgentRow.generation + 1)
)
_DEVICES: Final = select(DeviceRow.__table__).order_by(
    DeviceRow.agent_id, DeviceRow.name
)
_THEIR_DEVICES: Final = _DEVICES.where(DeviceRow.agent_id.in_(_NAMED))
_BALANCES: Final = select(
    LedgerRow.kind,
    LedgerRow.owner_id,
    LedgerRow.slot,
    LedgerRow.used,
    LedgerRow.quota,
).where(LedgerRow.kind.in_(bindparam("kinds", expanding=True)))
_THEIR_BALANCES: Final = _BALANCES.where(LedgerRow.owner_id.in_(_NAMED))


async def list_agents(
    connection: AsyncConnection, ids: Collection[str] | None = None
) -> list[AgentRecord]:
    """List nodes, by name: these, or all."""
    if ids is None:
        rows = await connection.execute(_BY_NAME)
    else:
        rows = await connection.execute(_THESE, {"ids": list(ids)})
    return [_record(r._mapping) for r in rows]


async def list_page(
    connection: AsyncConnection,
    chosen: AgentFilter,
    *,
    limit: int,
    after: tuple[Any, str] | None = None,
    order: str = "name",
) -> list[AgentRecord]:
    """List nodes in one of :data:`SORTS`, behind what *after* is and its id.

    A ``-`` before the order turns it round.
    """
    descending = order.startswith("-")
    column = SORTS[order.removeprefix("-")]
    turn = desc if descending else asc
    query = select(_AGENTS).where(*_conditions(chosen))
    if after is not None:
        value, agent_id = after
        beyond = column < value if descending else column > value
        tie = AgentRow.id < agent_id if descending else AgentRow.id > agent_id
        query = query.where(or_(beyond, and_(column == value, tie)))
    query = query.order_by(turn(column), turn(AgentRow.id)).limit(limit)
    rows = await connection.execute(query)
    return [_record(r._mapping) for r in rows]


def _conditions(chosen: AgentFilter) -> Iterator[Any]:
    among: Sequence[tuple[Any, Collection[str] | None]] = (
        (AgentRow.resource_group_id, chosen.groups),
        (AgentRow.status, chosen.statuses),
        (AgentRow.architecture, chosen.architectures),
        (AgentRow.isolation["runtime"].as_string(), chosen.runtimes),
    )
    for column, values in among:
        if values is not None:
            yield column.in_([str(value) for value in values])
    if chosen.schedulable is not None:
        yield AgentRow.schedulable == chosen.schedulable
    if chosen.reported:
        yield AgentRow.first_seen_at.is_not(None)
    if chosen.search:
        lowered = func.lower(AgentRow.name)
        yield lowered.contains(chosen.search.lower(), autoescape=True)


async def insert_agent(tx: Transaction, record: AgentRecord) -> None:
    """Store a new node."""
    row = msgspec.structs.asdict(record)
    await tx.execute(insert(AgentRow).values(row), ids=[record.id])


async def change_agent(
    tx: Transaction, record: AgentRecord, **values: Any
) -> AgentRecord:
    """Change fields of one node, whose row is locked."""
    changed = msgspec.structs.replace(record, **values)
    await tx.execute(
        update(AgentRow).where(AgentRow.id == record.id).values(**values),
        ids=() if _looks(changed) == _looks(record) else [record.id],
    )
    return changed


def _looks(record: AgentRecord) -> tuple[object, ...]:
    """Return what the scheduler looks at."""
    return (
        record.name,
        record.status,
        record.resource_group_id,
        record.schedulable,
        record.architecture,
        record.protocol,
        record.isolation,
        record.first_seen_at is None,
        record.labels,
        record.set_labels,
        record.max_containers,
    )


async def bump_generation(tx: Transaction, agent_id: str) -> int:
    """Give the node's assignments a new version, and wake who waits for it."""
    changed = await tx.execute(
        update(AgentRow)
        .where(AgentRow.id == agent_id)
        .values(generation=AgentRow.generation + 1)
        .returning(AgentRow.generation),
        ids=(),
    )
    tx.wake(f"assignments:{agent_id}")
    return int(changed.scalar_one())


async def lock_agents(tx: Transaction, ids: Collection[str]) -> dict[str, AgentRecord]:
    """Read several nodes and keep others from changing them, in the order of ids."""
    rows = await tx.connection.execute(_LOCKED, {"ids": list(ids)})
    return {row.id: _record(row._mapping) for row in rows}


async def bump_generations(tx: Transaction, ids: Collection[str]) -> None:
    """Give the assignments of locked nodes a new version, and wake who waits for it."""
    tx.changes.note(_BUMPED, ids=())
    await tx.connection.execute(_BUMPED, {"ids": list(ids)})
    tx.wake(*(f"assignments:{agent_id}" for agent_id in ids))


async def list_devices(
    connection: AsyncConnection, agent_ids: Collection[str] | None = None
) -> list[DeviceRecord]:
    """List devices, of some nodes or of all."""
    if agent_ids is None:
        rows = await connection.execute(_DEVICES)
    else:
        rows = await connection.execute(_THEIR_DEVICES, {"ids": list(agent_ids)})
    return [DeviceRecord(**r._mapping) for r in rows]


async def insert_device(tx: Transaction, record: DeviceRecord) -> None:
    """Store a new device."""
    row = msgspec.structs.asdict(record)
    await tx.execute(insert(DeviceRow).values(row), ids=[record.id])


async def change_device(tx: Transaction, device_id: str, **values: Any) -> None:
    """Change fields of one device."""
    await tx.execute(
        update(DeviceRow).where(DeviceRow.id == device_id).values(**values),
        ids=[device_id],
    )


async def list_balances(
    connection: AsyncConnection,
    kinds: Sequence[ScopeKind],
    owners: Collection[str] | None = None,
) -> dict[tuple[ScopeKind, str], dict[str, Balance]]:
    """Read the ledger rows of these kinds (and owners), by scope and slot."""
    asked: dict[str, Any] = {"kinds": [str(kind) for kind in kinds]}
    if owners is None:
        rows = await connection.execute(_BALANCES, asked)
    else:
        rows = await connection.execute(_THEIR_BALANCES, {**asked, "ids": list(owners)})
    found: dict[tuple[ScopeKind, str], dict[str, Balance]] = {}
    for kind, owner, slot, used, quota in rows:
        found.setdefault((ScopeKind(kind), owner), {})[slot] = Balance(used, quota)
    return found


# --- enrolment -------------------------------------------------------------------


async def add_enroll_token(tx: Transaction, digest: str, expires_at: datetime) -> None:
    """Accept the token with this hash once, until *expires_at*."""
    await tx.execute(
        insert_ignore(tx, EnrollTokenRow).values(hash=digest, expires_at=expires_at)
    )


async def get_enroll_token(
    connection: AsyncConnection, digest: str
) -> EnrollToken | None:
    """Find an enrolment token by its hash, and keep others from using it."""
    query = select(EnrollTokenRow.__table__).where(EnrollTokenRow.hash == digest)
    row = (await connection.execute(query.with_for_update())).first()
    return None if row is None else EnrollToken(**row._mapping)


async def use_enroll_token(
    tx: Transaction, digest: str, agent_id: str, machine_id: str
) -> None:
    """Note who has used a token."""
    await tx.execute(
        update(EnrollTokenRow)
        .where(EnrollTokenRow.hash == digest)
        .values(agent_id=agent_id, machine_id=machine_id)
    )


# --- versions ---------------------------------------------------------------------


async def bump_version(tx: Transaction, name: str) -> None:
    """Give a versioned document a new version, and wake who waits for it."""
    await tx.execute(insert_ignore(tx, VersionRow).values(name=name, value=1))
    await tx.execute(
        update(VersionRow)
        .where(VersionRow.name == name)
        .values(value=VersionRow.value + 1)
    )
    tx.wake(name)


async def get_version(connection: AsyncConnection, name: str) -> int:
    """Read the version of a document; 1 before its first change."""
    value = await connection.scalar(
        select(VersionRow.value).where(VersionRow.name == name)
    )
    return 1 if value is None else int(value)
