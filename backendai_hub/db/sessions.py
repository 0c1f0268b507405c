"""Reading and writing sessions, their containers and their secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import msgspec
from sqlalchemy import (
    Integer,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.clusters import MAIN_HOST, ClusterMode, ClusterStrategy
from backendai_hub.core.errors import NotFoundError, StaleRevisionError
from backendai_hub.core.quotas import ScopeKind, charge
from backendai_hub.core.sessions import (
    DEADLINES,
    OCCUPYING,
    QUEUED,
    STARTING,
    TERMINAL,
    Attachment,
    Session,
    SessionContainer,
    SessionResult,
    SessionStatus,
    SessionType,
    check_can_become,
)
from backendai_hub.core.slots import ResourceSlots, format_amount
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    AgentRow,
    AllocationRow,
    ContainerRow,
    DependencyRow,
    DeviceRow,
    DomainRow,
    ImageRow,
    ProjectRow,
    ResourceGroupRow,
    SecretRow,
    SessionRow,
    UserRow,
)
from backendai_hub.db.tables.base import UtcTime


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One session as the operations see it: ids instead of names."""

    id: str
    name: str
    type: str
    owner_id: str
    domain_id: str
    project_id: str
    keypair_id: str | None = None
    resource_group_id: str | None = None
    image_id: str | None = None
    priority: int = 10
    image: str
    slots: dict[str, int]
    shmem: int
    status: SessionStatus
    reason: str
    agent_id: str | None
    server: str | None
    prefix: str | None
    ready: bool
    exit_code: int | None
    idempotency_key: str
    request_hash: str
    revision: int
    created_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    deadline_at: datetime | None
    result: str = "undefined"
    batch_timeout: int | None = None
    starts_at: datetime | None = None
    max_attempts: int = 1
    requeues: int = 0
    tag: str | None = None
    job_priority: int = 0
    is_preemptible: bool = True
    preemptions: int = 0
    agents: list[str] = []
    preferred_agents: list[str] = []
    labels: dict[str, str] = {}
    cluster_size: int = 1
    cluster_mode: str = "single-node"
    cluster_strategy: str | None = None
    ends_as: str | None = None

    @property
    def scopes(self) -> tuple[tuple[ScopeKind, str], ...]:
        """The scopes whose use this session counts in."""
        tenants = (
            (ScopeKind.DOMAIN, self.domain_id),
            (ScopeKind.PROJECT, self.project_id),
            (ScopeKind.USER, self.owner_id),
        )
        if self.keypair_id is None:
            return tenants
        return (*tenants, (ScopeKind.KEYPAIR, self.keypair_id))

    @property
    def each(self) -> ResourceSlots:
        """What each of its containers asks for."""
        return ResourceSlots(self.slots)

    @property
    def request(self) -> ResourceSlots:
        """What it asks for in all."""
        size = self.cluster_size
        return ResourceSlots({slot: n * size for slot, n in self.slots.items()})

    @property
    def is_cluster(self) -> bool:
        """Whether it has several containers."""
        return self.cluster_size > 1

    @property
    def is_system(self) -> bool:
        """Whether it is the platform's own, and counts only as such."""
        return self.type == str(SessionType.SYSTEM)

    @property
    def is_batch(self) -> bool:
        """Whether it runs one command, and has a result then."""
        return self.type == str(SessionType.BATCH)

    @property
    def is_leased(self) -> bool:
        """Whether it stops by itself when its node has lost us."""
        return self.is_batch and self.max_attempts > 1

    @property
    def may_start_again(self) -> bool:
        """Whether another attempt follows if this one is lost."""
        begun = STARTING | {SessionStatus.RUNNING}
        return (
            self.is_batch
            and self.status in begun
            and self.requeues + 1 < self.max_attempts
        )

    @property
    def charge(self) -> ResourceSlots:
        """What it counts in each of its scopes while it is placed."""
        return charge(self.request, system=self.is_system)


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One container row."""

    id: str
    session_id: str
    agent_id: str
    desired: str
    image: str
    generation: int
    created_at: datetime
    gone_at: datetime | None
    former: bool = False
    role: str = "main"
    idx: int = 1
    host: str = MAIN_HOST
    state: str = "scheduled"
    reason: str = ""
    exit_code: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more, as far as anybody knows."""
        return self.gone_at is not None or self.state in {"exited", "gone", "stranded"}

    @property
    def has_left(self) -> bool:
        """Whether it can never be seen running again."""
        return self.gone_at is not None or self.state in {"gone", "stranded"}


_QUEUED = [str(status) for status in QUEUED]
_AT_A_TIME = 500
"""How many rows are read before others have their turn in this process."""
_TABLE = SessionRow.__table__
_CONTAINERS = ContainerRow.__table__


def _record(mapping: Any) -> SessionRecord:
    values = dict(mapping)
    values["status"] = SessionStatus(values["status"])
    return SessionRecord(**values)


async def insert_session(tx: Transaction, record: SessionRecord) -> None:
    """Store a new session."""
    values = msgspec.structs.asdict(record)
    await tx.execute(
        insert(SessionRow).values(values), owner=record.owner_id, ids=[record.id]
    )


async def get_record(
    connection: AsyncConnection, session_id: str, *, lock: bool = False
) -> SessionRecord:
    """Read one session; with ``lock``, keep others from changing it meanwhile."""
    query = select(_TABLE).where(SessionRow.id == session_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).first()
    if row is None:
        raise NotFoundError(f"there is no session {session_id}")
    return _record(row._mapping)


async def lock_records(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, SessionRecord]:
    """Read several sessions and keep others from changing them, in the order of ids."""
    query = select(_TABLE).where(SessionRow.id.in_(ids)).order_by(SessionRow.id)
    rows = await connection.execute(query.with_for_update())
    return {row.id: _record(row._mapping) for row in rows}


async def get_records(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, tuple[SessionRecord, str]]:
    """Read several sessions, each with its owner's name, by id."""
    query = (
        select(_TABLE, UserRow.name.label("owner_name"))
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(SessionRow.id.in_(ids))
    )
    found = {}
    for row in (await connection.execute(query)).mappings():
        values = dict(row)
        owner = values.pop("owner_name")
        found[values["id"]] = (_record(values), owner)
    return found


async def find_made(
    connection: AsyncConnection, owner_id: str, *, key: str, server: str | None
) -> list[SessionRecord]:
    """Find what an idempotency key has made, and who lives on a Hub server."""
    made = SessionRow.idempotency_key == key
    if server is not None:
        made |= (SessionRow.server == server) & is_live()
    query = select(_TABLE).where(SessionRow.owner_id == owner_id, made)
    return [_record(row._mapping) for row in await connection.execute(query)]


async def find_by_key(
    connection: AsyncConnection, owner_id: str, key: str
) -> SessionRecord | None:
    """Find the session that an idempotency key has made."""
    query = select(_TABLE).where(
        SessionRow.owner_id == owner_id, SessionRow.idempotency_key == key
    )
    row = (await connection.execute(query)).first()
    return None if row is None else _record(row._mapping)


def is_live() -> Any:
    """Build the condition that a session has not ended."""
    return SessionRow.status.not_in([str(s) for s in TERMINAL])


async def find_live(
    connection: AsyncConnection,
    owner_id: str,
    *,
    server: str | None = None,
    name: str | None = None,
) -> SessionRecord | None:
    """Find a user's live session by its Hub server or by its name."""
    query = select(_TABLE).where(SessionRow.owner_id == owner_id, is_live())
    if server is not None:
        query = query.where(SessionRow.server == server)
    if name is not None:
        query = query.where(SessionRow.name == name)
    row = (await connection.execute(query)).first()
    return None if row is None else _record(row._mapping)


async def list_ended_servers(
    connection: AsyncConnection, servers: Sequence[str]
) -> dict[tuple[str, str], datetime]:
    """For each (user, server) without a live session, tell when its last one ended."""
    live = func.max(case((is_live(), 1), else_=0))
    query = (
        select(UserRow.name, SessionRow.server, func.max(SessionRow.ended_at))
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(SessionRow.server.in_(servers))
        .group_by(UserRow.name, SessionRow.server)
        .having(live == 0)
    )
    rows = await connection.execute(query)
    return {
        (user, server): ended
        for user, server, ended in rows
        if server is not None and ended is not None
    }


async def count_live(connection: AsyncConnection, owner_id: str) -> int:
    """Count a user's sessions that have not ended."""
    query = select(func.count()).where(SessionRow.owner_id == owner_id, is_live())
    return int(await connection.scalar(query) or 0)


async def count_on_agent(connection: AsyncConnection, agent_id: str) -> int:
    """Count the live sessions that have a container on a node."""
    query = (
        select(func.count(SessionRow.id.distinct()))
        .join(ContainerRow, ContainerRow.session_id == SessionRow.id)
        .where(ContainerRow.agent_id == agent_id, ~ContainerRow.former, is_live())
    )
    return int(await connection.scalar(query) or 0)


async def sum_waiting(
    connection: AsyncConnection, owner_id: str, keypair_id: str | None = None
) -> tuple[int, dict[str, int]]:
    """Count a user's waiting sessions (of one keypair), and sum what they ask for."""
    query = select(SessionRow.slots, SessionRow.cluster_size).where(
        SessionRow.owner_id == owner_id,
        SessionRow.status.in_(_QUEUED),
    )
    if keypair_id is not None:
        query = query.where(SessionRow.keypair_id == keypair_id)
    rows = await connection.execute(query)
    asked: dict[str, int] = {}
    count = 0
    for slots, size in rows:
        count += 1
        for slot, amount in slots.items():
            asked[slot] = asked.get(slot, 0) + amount * size
    return count, asked


async def list_records(
    connection: AsyncConnection, statuses: Iterable[SessionStatus]
) -> list[SessionRecord]:
    """List the sessions in these states: by priority, the oldest first."""
    query = (
        select(_TABLE)
        .where(SessionRow.status.in_([str(s) for s in statuses]))
        .order_by(SessionRow.priority.desc(), SessionRow.created_at, SessionRow.id)
    )
    return [_record(r._mapping) for r in await connection.execute(query)]


async def list_waiting(
    connection: AsyncConnection, ids: Collection[str] | None = None
) -> list[SessionRecord]:
    """List the sessions that wait to be placed, of these or of all, in any order."""
    query = select(_TABLE).where(SessionRow.status.in_(_QUEUED), SessionRow.ready)
    if ids is not None:
        query = query.where(SessionRow.id.in_(ids))
    found: list[SessionRecord] = []
    for rows in (await connection.execute(query)).partitions(_AT_A_TIME):
        found += [_record(row._mapping) for row in rows]
        await asyncio.sleep(0)  # others have their turn
    return found


async def list_since(
    connection: AsyncConnection, since: datetime, most: int
) -> list[SessionRecord]:
    """List who has had room since then, or waits still: at most so many, newest first.

    The platform's own sessions are not among them.
    """
    placed = SessionRow.scheduled_at.is_not(None) & (
        SessionRow.ended_at.is_(None) | (SessionRow.ended_at > since)
    )
    query = (
        select(_TABLE)
        .where(
            placed | SessionRow.status.in_(_QUEUED),
            SessionRow.type != str(SessionType.SYSTEM),
            SessionRow.ready,
        )
        .order_by(SessionRow.created_at.desc(), SessionRow.id.desc())
        .limit(most)
    )
    return [_record(row._mapping) for row in await connection.execute(query)]


async def list_reasons(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, str]:
    """Return why those of these sessions wait that are in the queue, by id."""
    query = select(SessionRow.id, SessionRow.reason).where(SessionRow.id.in_(ids))
    rows = await connection.execute(
        query.where(SessionRow.status == str(SessionStatus.PENDING))
    )
    return {row.id: row.reason for row in rows}


async def list_on_servers(
    connection: AsyncConnection, statuses: Iterable[SessionStatus]
) -> list[Any]:
    """List what is told to JupyterHub of the sessions in these states."""
    query = (
        select(
            SessionRow.id,
            UserRow.name.label("owner"),
            SessionRow.server,
            SessionRow.image,
            SessionRow.name,
            SessionRow.slots,
            SessionRow.shmem,
            SessionRow.idempotency_key,
            SessionRow.ready,
            SessionRow.agent_id,
            SessionRow.created_at,
            SessionRow.cluster_size,
            SessionRow.cluster_mode,
            SessionRow.cluster_strategy,
        )
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(
            SessionRow.status.in_([str(s) for s in statuses]),
            SessionRow.server.is_not(None),
        )
        .order_by(SessionRow.priority.desc(), SessionRow.created_at, SessionRow.id)
    )
    return list(await connection.execute(query))


async def find_images(tx: Transaction) -> None:
    """Give waiting sessions that know their environment by name only its row."""
    named = (
        select(ImageRow.id)
        .where(ImageRow.status == "ALIVE", ImageRow.name == SessionRow.image)
        .order_by(ImageRow.architecture.desc())
        .limit(1)
        .scalar_subquery()
    )
    await tx.execute(
        update(SessionRow)
        .where(
            SessionRow.image_id.is_(None),
            SessionRow.status == str(SessionStatus.PENDING),
        )
        .values(image_id=named)
    )


async def list_overdue(
    connection: AsyncConnection, now: datetime
) -> list[SessionRecord]:
    """List the sessions on their way whose state has outlived its deadline.

    What runs or waits in the queue has other rules (:mod:`.deadlines`).
    """
    bounded = [str(s) for s, seconds in DEADLINES.items() if seconds is not None]
    query = select(_TABLE).where(
        SessionRow.status.in_(bounded), SessionRow.deadline_at < now
    )
    return [_record(r._mapping) for r in await connection.execute(query)]


async def move_session(
    tx: Transaction, record: SessionRecord, status: SessionStatus, **changes: Any
) -> SessionRecord:
    """Move *record* to *status*, if nobody has changed it since it was read."""
    check_can_become(record.id, record.status, status)
    seconds = DEADLINES.get(status)
    values: dict[str, Any] = {
        "status": status,
        "deadline_at": None if seconds is None else tx.now + timedelta(seconds=seconds),
        **changes,
    }
    if status is SessionStatus.SCHEDULED:
        values["scheduled_at"] = tx.now
    if status is SessionStatus.RUNNING:
        values["started_at"] = tx.now
    if status in TERMINAL:
        values["ended_at"] = tx.now
    return await change_session(tx, record, **values)


async def schedule_sessions(
    tx: Transaction, placed: Sequence[tuple[SessionRecord, str, str]]
) -> None:
    """Give locked sessions that wait their nodes: (session, node's id, reason) each."""
    for record, _, _ in placed:
        check_can_become(record.id, record.status, SessionStatus.SCHEDULED)
    seconds = DEADLINES[SessionStatus.SCHEDULED] or 0.0
    changed = await tx.execute(
        update(SessionRow)
        .where(
            SessionRow.id == bindparam("of_id"),
            SessionRow.revision == bindparam("of_revision"),
        )
        .values(
            status=str(SessionStatus.SCHEDULED),
            reason=bindparam("words"),
            agent_id=bindparam("on_agent"),
            scheduled_at=tx.now,
            deadline_at=tx.now + timedelta(seconds=seconds),
            revision=SessionRow.revision + 1,
        ),
        [
            {
                "of_id": record.id,
                "of_revision": record.revision,
                "words": reason,
                "on_agent": agent_id,
            }
            for record, agent_id, reason in placed
        ],
        owner={record.owner_id for record, _, _ in placed},
        ids={record.id for record, _, _ in placed},
    )
    if changed.rowcount != len(placed):
        raise StaleRevisionError("some of these sessions were changed meanwhile")


async def explain_sessions(
    tx: Transaction, news: Sequence[tuple[SessionRecord, str]]
) -> None:
    """Give waiting sessions new reasons; one that has moved on meanwhile keeps its."""
    await tx.execute(
        update(SessionRow)
        .where(
            SessionRow.id == bindparam("of_id"),
            SessionRow.revision == bindparam("of_revision"),
        )
        .values(reason=bindparam("words"), revision=SessionRow.revision + 1),
        [
            {"of_id": record.id, "of_revision": record.revision, "words": reason}
            for record, reason in news
        ],
        owner={record.owner_id for record, _ in news},
        ids={record.id for record, _ in news},
    )


async def change_session(
    tx: Transaction, record: SessionRecord, **values: Any
) -> SessionRecord:
    """Change fields of *record*, if nobody has changed it since it was read."""
    values["revision"] = record.revision + 1
    changed = await tx.execute(
        update(SessionRow)
        .where(SessionRow.id == record.id, SessionRow.revision == record.revision)
        .values(**values),
        owner=record.owner_id,
        ids=[record.id],
    )
    if changed.rowcount == 0:
        raise StaleRevisionError(f"session {record.id} was changed meanwhile")
    return msgspec.structs.replace(record, **values)


# --- as the API shows them -------------------------------------------------------

_BETWEEN, _WITHIN = "\x1e", "\x1f"

_HELD = (
    select(func.aggregate_strings(DeviceRow.name + _WITHIN + DeviceRow.model, _BETWEEN))
    .select_from(AllocationRow)
    .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
    .where(
        AllocationRow.session_id == SessionRow.id,
        AllocationRow.freed_at.is_(None),
        DeviceRow.kind != "host",
    )
    .correlate(SessionRow)
    .scalar_subquery()
)

_DEPENDENCIES = (
    select(func.aggregate_strings(DependencyRow.depends_on, _BETWEEN))
    .where(DependencyRow.session_id == SessionRow.id)
    .correlate(SessionRow)
    .scalar_subquery()
)

# `_view` takes these apart in this order.
_VIEW: Select[*tuple[Any, ...]] = (
    select(
        SessionRow.id,
        SessionRow.name,
        SessionRow.type,
        UserRow.name.label("owner"),
        DomainRow.name.label("domain"),
        ProjectRow.name.label("project"),
        SessionRow.image,
        SessionRow.slots,
        SessionRow.shmem,
        SessionRow.status,
        SessionRow.reason,
        AgentRow.name.label("agent"),
        ResourceGroupRow.name.label("resource_group"),
        SessionRow.priority,
        SessionRow.created_at,
        SessionRow.scheduled_at,
        SessionRow.started_at,
        SessionRow.ended_at,
        SessionRow.deadline_at,
        SessionRow.exit_code,
        SessionRow.server,
        SessionRow.prefix,
        SessionRow.revision,
        case((SessionRow.status.in_([str(s) for s in OCCUPYING]), _HELD)).label("held"),
        SessionRow.result,
        SessionRow.requeues,
        SessionRow.max_attempts,
        SessionRow.batch_timeout,
        SessionRow.starts_at,
        SessionRow.tag,
        SessionRow.job_priority,
        SessionRow.is_preemptible,
        SessionRow.preemptions,
        SessionRow.labels,
        case((SessionRow.type == str(SessionType.BATCH), _DEPENDENCIES)).label("after"),
        SessionRow.cluster_size,
        SessionRow.cluster_mode,
        SessionRow.cluster_strategy,
    )
    .join(UserRow, UserRow.id == SessionRow.owner_id)
    .join(DomainRow, DomainRow.id == SessionRow.domain_id)
    .join(ProjectRow, ProjectRow.id == SessionRow.project_id)
    .outerjoin(AgentRow, AgentRow.id == SessionRow.agent_id)
    .outerjoin(ResourceGroupRow, ResourceGroupRow.id == SessionRow.resource_group_id)
)


def format_time(moment: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC, to the millisecond."""
    if moment is None:
        return None
    # Times are in UTC everywhere, so the offset is always these six characters.
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=1024)
def _format_amounts(amounts: tuple[tuple[str, int], ...]) -> dict[str, str]:
    """Write what a session asks for; many ask for the same, and nobody changes it."""
    return ResourceSlots(dict(amounts)).to_text()


def _list_devices(held: str | None) -> list[str]:
    if not held:
        return []
    # One may have several instances of a device.
    pairs = [pair.split(_WITHIN) for pair in sorted(set(held.split(_BETWEEN)))]
    return [f"{model} {name}".strip() for name, model in pairs]


def _view(row: Any) -> Session:
    # A page is many fields: taking them apart at once is twice as fast as by name.
    # fmt: off
    (
        session_id, name, kind, owner, domain, project, image, slots, shmem, status,
        reason, agent, resource_group, priority, created_at, scheduled_at, started_at,
        ended_at, deadline_at, exit_code, server, prefix, revision, held, result,
        requeues, max_attempts, batch_timeout, starts_at, tag, job_priority,
        is_preemptible, preemptions, labels, after, cluster_size, cluster_mode,
        cluster_strategy,
    ) = row
    # fmt: on
    return Session(
        id=session_id,
        name=name,
        type=SessionType(kind),
        owner=owner,
        domain=domain,
        project=project,
        image=image,
        slots=_format_amounts(tuple(slots.items())),
        shmem=format_amount("mem", shmem),
        status=SessionStatus(status),
        reason=reason,
        created_at=format_time(created_at) or "",
        agent=agent,
        scheduled_at=format_time(scheduled_at),
        started_at=format_time(started_at),
        ended_at=format_time(ended_at),
        deadline_at=format_time(deadline_at),
        exit_code=exit_code,
        devices=_list_devices(held),
        attachment=None if server is None else Attachment(owner, server, prefix),
        url=prefix if status == SessionStatus.RUNNING else None,
        resource_group=resource_group,
        priority=priority,
        revision=revision,
        result=SessionResult(result),
        attempts=requeues + (scheduled_at is not None),
        max_attempts=max_attempts,
        batch_timeout=batch_timeout,
        starts_at=format_time(starts_at),
        dependencies=sorted(after.split(_BETWEEN)) if after else [],
        tag=tag,
        job_priority=job_priority,
        is_preemptible=is_preemptible,
        preemptions=preemptions,
        labels=labels,
        cluster_size=cluster_size,
        cluster_mode=ClusterMode(cluster_mode),
        cluster_strategy=cluster_strategy and ClusterStrategy(cluster_strategy),
    )


async def list_cluster(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, list[SessionContainer]]:
    """List the containers of sessions as the API shows them, the main one first."""
    query = (
        select(
            ContainerRow.session_id,
            ContainerRow.id,
            ContainerRow.host,
            ContainerRow.role,
            AgentRow.name,
            ContainerRow.state,
            ContainerRow.reason,
            ContainerRow.exit_code,
        )
        .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
        .where(ContainerRow.session_id.in_(ids), ~ContainerRow.former)
        .order_by(ContainerRow.role, ContainerRow.idx)
    )
    found: dict[str, list[SessionContainer]] = {}
    for row in await connection.execute(query):
        shown = SessionContainer(
            id=row.id,
            host=row.host,
            role=row.role,
            node=row.name,
            state=row.state,
            reason=row.reason,
            exit_code=row.exit_code,
        )
        found.setdefault(row.session_id, []).append(shown)
    return found


async def _show_clusters(
    connection: AsyncConnection, found: list[Session]
) -> list[Session]:
    """Add to those that have several containers which those are."""
    several = [session.id for session in found if session.cluster_size > 1]
    if not several:
        return found
    containers = await list_cluster(connection, several)
    return [
        msgspec.structs.replace(session, containers=containers[session.id])
        if session.id in containers
        else session
        for session in found
    ]


async def get_session(connection: AsyncConnection, session_id: str) -> Session:
    """Read one session as the API shows it."""
    return (await get_sessions(connection, [session_id]))[0]


async def get_sessions(
    connection: AsyncConnection, ids: Sequence[str]
) -> list[Session]:
    """Read several sessions as the API shows them; raises if none exists."""
    rows = await connection.execute(_VIEW.where(SessionRow.id.in_(ids)))
    found = [_view(row) for row in rows]
    if not found:
        raise NotFoundError("there is no such session")
    return await _show_clusters(connection, found)


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a list shows, and in which direction of their creation."""

    owner_id: str | None = None
    owner_name: str | None = None
    domain_id: str | None = None
    statuses: Sequence[SessionStatus] | None = None
    newest_first: bool = True


_CONDITIONS = {
    "owner_id": SessionRow.owner_id == bindparam("owner_id"),
    "domain_id": SessionRow.domain_id == bindparam("domain_id"),
    "owner_name": UserRow.name == bindparam("owner_name"),
    "statuses": SessionRow.status.in_(bindparam("statuses", expanding=True)),
}


@cache
def _page(
    named: frozenset[str], *, newest_first: bool, further: bool
) -> Select[*tuple[Any, ...]]:
    """Build the statement of a list once for each kind of list."""
    columns = tuple_(SessionRow.created_at, SessionRow.id)
    query = _VIEW.where(*(_CONDITIONS[name] for name in sorted(named)))
    if further:
        last = tuple_(bindparam("last_at", type_=UtcTime()), bindparam("last_id"))
        query = query.where(columns < last if newest_first else columns > last)
    order = [c.desc() if newest_first else c.asc() for c in columns.clauses]
    return query.order_by(*order).limit(bindparam("most", type_=Integer()))


async def list_sessions(
    connection: AsyncConnection,
    wanted: SessionFilter,
    *,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[Session]:
    """Read one page in the order of creation (keyset: never an offset)."""
    given = {name: getattr(wanted, name) for name in _CONDITIONS}
    values: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    query = _page(
        frozenset(values), newest_first=wanted.newest_first, further=after is not None
    )
    if wanted.statuses is not None:
        values["statuses"] = [str(s) for s in wanted.statuses]
    if after is not None:
        values["last_at"], values["last_id"] = after
    rows = await connection.execute(query, {**values, "most": limit})
    return await _show_clusters(connection, [_view(row) for row in rows])


# --- containers and secrets ------------------------------------------------------


async def insert_containers(
    tx: Transaction, records: Sequence[ContainerRecord]
) -> None:
    """Store new containers."""
    await tx.execute(insert(ContainerRow), [msgspec.structs.asdict(r) for r in records])


async def list_containers(
    connection: AsyncConnection,
    *,
    agent_id: str | None = None,
    session_id: str | None = None,
    ids: Sequence[str] | None = None,
) -> list[ContainerRecord]:
    """List containers their nodes have not reported gone (by id: those too)."""
    query = select(_CONTAINERS).order_by(ContainerRow.created_at, ContainerRow.id)
    if ids is None:
        query = query.where(ContainerRow.gone_at.is_(None))
    else:
        query = query.where(ContainerRow.id.in_(ids))
    if agent_id is not None:
        query = query.where(ContainerRow.agent_id == agent_id)
    if session_id is not None:
        query = query.where(ContainerRow.session_id == session_id)
    rows = await connection.execute(query)
    return [ContainerRecord(**r._mapping) for r in rows]


async def list_members(
    connection: AsyncConnection, session_id: str
) -> list[ContainerRecord]:
    """List the containers of a session's present attempt, the main one first."""
    rows = await connection.execute(
        select(_CONTAINERS)
        .where(ContainerRow.session_id == session_id, ~ContainerRow.former)
        .order_by(ContainerRow.role, ContainerRow.idx)
    )
    return [ContainerRecord(**r._mapping) for r in rows]


async def note_state(
    tx: Transaction,
    container_id: str,
    state: str,
    *,
    reason: str = "",
    exit_code: int | None = None,
) -> None:
    """Note what a container's node says of it; its session is locked."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id == container_id)
        .values(state=state, reason=reason, exit_code=exit_code)
    )


async def list_wanted_on(connection: AsyncConnection, session_id: str) -> list[str]:
    """List the nodes that are asked to run containers of a session, by id."""
    rows = await connection.scalars(
        select(ContainerRow.agent_id)
        .where(ContainerRow.session_id == session_id, ContainerRow.desired == "running")
        .distinct()
        .order_by(ContainerRow.agent_id)
    )
    return list(rows)


async def want_absent(
    tx: Transaction, session_id: str, agent_id: str, generation: int
) -> None:
    """Ask for a session's containers on one node to be removed."""
    await tx.execute(
        update(ContainerRow)
        .where(
            ContainerRow.session_id == session_id,
            ContainerRow.agent_id == agent_id,
            ContainerRow.desired == "running",
        )
        .values(desired="absent", generation=generation)
    )


async def reopen_container(tx: Transaction, container_id: str, generation: int) -> None:
    """Ask again for the removal of a container that has turned up again."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id == container_id)
        .values(desired="absent", generation=generation, gone_at=None)
    )


async def mark_gone(tx: Transaction, ids: Sequence[str]) -> None:
    """Note that these containers have left no trace on their node."""
    await tx.execute(
        update(ContainerRow)
        .where(ContainerRow.id.in_(ids), ContainerRow.gone_at.is_(None))
        .values(gone_at=tx.now, state="gone")
    )


async def replace_secret(tx: Transaction, session_id: str, ciphertext: bytes) -> None:
    """Keep something else in place of what a session was to be born with."""
    await tx.execute(
        update(SecretRow)
        .where(SecretRow.session_id == session_id)
        .values(ciphertext=ciphertext)
    )


async def put_secret(tx: Transaction, session_id: str, ciphertext: bytes) -> None:
    """Keep what a new session is born with."""
    await tx.execute(
        insert(SecretRow).values(session_id=session_id, ciphertext=ciphertext)
    )


async def drop_secret(tx: Transaction, session_id: str) -> None:
    """Forget what an ended session was born with."""
    await tx.execute(delete(SecretRow).where(SecretRow.session_id == session_id))


async def get_secrets(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, bytes]:
    """Read the encrypted secrets of these sessions."""
    rows = await connection.execute(
        select(SecretRow.session_id, SecretRow.ciphertext).where(
            SecretRow.session_id.in_(ids)
        )
    )
    return {session_id: bytes(ciphertext) for session_id, ciphertext in rows}


async def list_shares(
    connection: AsyncConnection, ids: Sequence[str]
) -> list[tuple[str, DeviceShare]]:
    """List what each of these containers has now, by the names of devices."""
    rows = await connection.execute(
        select(
            AllocationRow.container_id,
            DeviceRow.name,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.slices,
        )
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(AllocationRow.container_id.in_(ids), AllocationRow.freed_at.is_(None))
        .order_by(DeviceRow.name, AllocationRow.slot, AllocationRow.slices)
    )
    return [
        (container, DeviceShare(device=device, slot=slot, amount=n, slices=slices))
        for container, device, slot, n, slices in rows
    ]
