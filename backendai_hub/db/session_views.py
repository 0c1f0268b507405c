"""Reading sessions as the API shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

import msgspec
from sqlalchemy import (
    Integer,
    Select,
    bindparam,
    case,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.clusters import ClusterMode, ClusterStrategy
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.sessions import (
    OCCUPYING,
    Attachment,
    HeldDevice,
    Session,
    SessionContainer,
    SessionResult,
    SessionStatus,
    SessionType,
)
from backendai_hub.core.slots import ResourceSlots, format_amount
from backendai_hub.core.times import format_time
from backendai_hub.db.tables import (
    AgentRow,
    AllocationRow,
    ContainerRow,
    DependencyRow,
    DeviceRow,
    DomainRow,
    ProjectRow,
    ResourceGroupRow,
    SessionRow,
    UserRow,
)

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
            ContainerRow.idx,
            AgentRow.name,
            ContainerRow.state,
            ContainerRow.reason,
            ContainerRow.exit_code,
        )
        .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
        .where(ContainerRow.session_id.in_(ids), ~ContainerRow.former)
        .order_by(ContainerRow.role, ContainerRow.idx)
    )
    held = await _list_held(connection, ids)
    found: dict[str, list[SessionContainer]] = {}
    for row in await connection.execute(query):
        shown = SessionContainer(
            id=row.id,
            host=row.host,
            role=row.role,
            idx=row.idx,
            node=row.name,
            devices=held.get(row.id, []),
            state=row.state,
            reason=row.reason,
            exit_code=row.exit_code,
        )
        found.setdefault(row.session_id, []).append(shown)
    return found


async def _list_held(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, list[HeldDevice]]:
    """List what each container of these sessions has of accelerators, by id."""
    query = (
        select(
            AllocationRow.container_id,
            DeviceRow.name,
            DeviceRow.model,
            AllocationRow.slot,
            AllocationRow.amount,
            AllocationRow.slices,
        )
        .join(DeviceRow, DeviceRow.id == AllocationRow.device_id)
        .where(
            AllocationRow.session_id.in_(ids),
            AllocationRow.freed_at.is_(None),
            DeviceRow.kind != "host",
        )
        .order_by(DeviceRow.name, AllocationRow.slot, AllocationRow.slices)
    )
    found: dict[str, list[HeldDevice]] = {}
    rows = await connection.execute(query)
    for container_id, name, model, slot, amount, slices in rows:
        device = HeldDevice(
            name=name,
            model=model,
            slot=slot,
            amount=format_amount(slot, amount),
            slices=[n for n in range(slices.bit_length()) if slices >> n & 1],
        )
        found.setdefault(container_id, []).append(device)
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


_THESE: Final = _VIEW.where(SessionRow.id.in_(bindparam("ids", expanding=True)))


async def get_session(connection: AsyncConnection, session_id: str) -> Session:
    """Read one session as the API shows it."""
    return (await get_sessions(connection, [session_id]))[0]


async def get_sessions(
    connection: AsyncConnection, ids: Sequence[str]
) -> list[Session]:
    """Read several sessions as the API shows them; raises if none exists."""
    rows = await connection.execute(_THESE, {"ids": list(ids)})
    found = [_view(row) for row in rows]
    if not found:
        raise NotFoundError("there is no such session")
    return await _show_clusters(connection, found)


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a list shows, and in which order."""

    owner_id: str | None = None
    owner_name: str | None = None
    domain_id: str | None = None
    statuses: Sequence[SessionStatus] | None = None
    search: str | None = None
    """Part of a name or tag, or the beginning of an identifier."""
    kind: SessionType | None = None
    project: str | None = None
    resource_group: str | None = None
    agent: str | None = None
    order: str = "-created_at"


_CONDITIONS = {
    "owner_id": SessionRow.owner_id == bindparam("owner_id"),
    "domain_id": SessionRow.domain_id == bindparam("domain_id"),
    "owner_name": UserRow.name == bindparam("owner_name"),
    "statuses": SessionRow.status.in_(bindparam("statuses", expanding=True)),
    "search": or_(
        func.lower(SessionRow.name).like(bindparam("part"), escape="\\"),
        func.lower(SessionRow.tag).like(bindparam("part"), escape="\\"),
        SessionRow.id.like(bindparam("beginning"), escape="\\"),
    ),
    "kind": SessionRow.type == bindparam("kind"),
    "project": ProjectRow.name == bindparam("project"),
    "resource_group": ResourceGroupRow.name == bindparam("resource_group"),
    "agent": AgentRow.name == bindparam("agent"),
}

_ORDERS: dict[str, Any] = {
    "created_at": SessionRow.created_at,
    "name": SessionRow.name,
    "owner": UserRow.name,
    "priority": SessionRow.priority,
    "status": SessionRow.status,
}


@cache
def _page(
    named: frozenset[str], *, order: str, further: bool
) -> Select[*tuple[Any, ...]]:
    """Build the statement of a list once for each kind of list."""
    backwards = order.startswith("-")
    by = _ORDERS[order.removeprefix("-")]
    columns = tuple_(by, SessionRow.id)
    query = _VIEW.where(*(_CONDITIONS[name] for name in sorted(named)))
    if further:
        last = tuple_(bindparam("last_key", type_=by.type), bindparam("last_id"))
        query = query.where(columns < last if backwards else columns > last)
    sorting = [c.desc() if backwards else c.asc() for c in columns.clauses]
    return query.order_by(*sorting).limit(bindparam("most", type_=Integer()))


def _values(wanted: SessionFilter) -> dict[str, Any]:
    """Tell what the statement of this list is given."""
    given = {name: getattr(wanted, name) for name in _CONDITIONS}
    values = {name: value for name, value in given.items() if value is not None}
    if wanted.statuses is not None:
        values["statuses"] = [str(s) for s in wanted.statuses]
    if wanted.kind is not None:
        values["kind"] = str(wanted.kind)
    return values


def _pattern(part: str) -> str:
    for special in ("\\", "%", "_"):
        part = part.replace(special, f"\\{special}")
    return part


async def list_sessions(
    connection: AsyncConnection,
    wanted: SessionFilter,
    *,
    limit: int,
    after: tuple[datetime | int | str, str] | None = None,
) -> list[Session]:
    """Read one page in the order that is wanted (keyset: never an offset)."""
    values = _values(wanted)
    query = _page(frozenset(values), order=wanted.order, further=after is not None)
    if wanted.search is not None:
        part = _pattern(values.pop("search").lower())
        values |= {"part": f"%{part}%", "beginning": f"{part}%"}
    if after is not None:
        values["last_key"], values["last_id"] = after
    rows = await connection.execute(query, {**values, "most": limit})
    return await _show_clusters(connection, [_view(row) for row in rows])
