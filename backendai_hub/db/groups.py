"""Reading resource groups: who may use which, and what a group asks of sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import BindParameter, bindparam, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.groups import (
    GroupAccess,
    SchedulerOptions,
    SessionOptions,
    read_options,
)
from backendai_hub.core.names import fold
from backendai_hub.core.operators import StopKind, tell_freeze, tell_hold
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.stops import list_stops
from backendai_hub.db.tables import (
    DomainRow,
    KeypairRow,
    ProjectRow,
    ResourceGroupAccessRow,
    ResourceGroupRow,
    UserRow,
)


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What submitting and scheduling need of a resource group."""

    id: str
    name: str
    is_active: bool
    is_public: bool
    is_default: bool
    options: SchedulerOptions
    session_options: SessionOptions


_COLUMNS = (
    ResourceGroupRow.id,
    ResourceGroupRow.name,
    ResourceGroupRow.is_active,
    ResourceGroupRow.is_public,
    ResourceGroupRow.is_default,
    ResourceGroupRow.scheduler_opts,
    ResourceGroupRow.default_session_options,
)


async def list_allowed(
    connection: AsyncConnection, targets: Collection[str]
) -> list[GroupRecord]:
    """List the groups open to any of these domains, projects and keypairs (by id).

    The union of the three, as in Backend.AI; the default group comes first.
    """
    opened = select(ResourceGroupAccessRow.group_id).where(
        ResourceGroupAccessRow.target_id.in_(targets)
    )
    rows = await connection.execute(
        select(*_COLUMNS)
        .where(ResourceGroupRow.id.in_(opened))
        .order_by(ResourceGroupRow.is_default.desc(), ResourceGroupRow.name)
    )
    return [
        GroupRecord(
            id=row.id,
            name=row.name,
            is_active=row.is_active,
            is_public=row.is_public,
            is_default=row.is_default,
            options=read_options(row.scheduler_opts),
            session_options=msgspec.convert(
                row.default_session_options or {}, SessionOptions
            ),
        )
        for row in rows
    ]


async def find_group(connection: AsyncConnection, name: str) -> str | None:
    """Find a group by name; return its id."""
    found = await connection.scalar(
        select(ResourceGroupRow.id).where(ResourceGroupRow.name_key == fold(name))
    )
    return None if found is None else str(found)


async def open_group(tx: Transaction, group_id: str, kind: str, target_id: str) -> bool:
    """Open a group to a domain, project or keypair; tell whether it was closed."""
    added = await tx.execute(
        insert_ignore(tx, ResourceGroupAccessRow).values(
            group_id=group_id, kind=kind, target_id=target_id
        )
    )
    return bool(added.rowcount)


_IDS: Final[BindParameter[Any]] = bindparam("ids", expanding=True)
_INACTIVE_DOMAINS, _INACTIVE_PROJECTS, _INACTIVE_GROUPS = (
    select(table.id, table.name).where(table.id.in_(_IDS), ~table.is_active)
    for table in (DomainRow, ProjectRow, ResourceGroupRow)
)
_INACTIVE_PEOPLE: Final = select(UserRow.id, UserRow.name, UserRow.status).where(
    UserRow.id.in_(_IDS), UserRow.status != "active"
)


async def load_holds(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> dict[str, str]:
    """Say which waiting sessions may not start whatever room there is, and why.

    A group, project, domain or user that has been made inactive keeps its queue: what
    waits goes on waiting, with that reason, and what runs goes on. So does what an
    operator or its owner holds, and what waits in a frozen group.
    """
    inactive: dict[str, str] = {}
    groups = {r.resource_group_id for r in records if r.resource_group_id is not None}
    for query, word, ids in (
        (_INACTIVE_DOMAINS, "domain", {r.domain_id for r in records}),
        (_INACTIVE_PROJECTS, "project", {r.project_id for r in records}),
        (_INACTIVE_GROUPS, "resource group", groups),
    ):
        rows = await connection.execute(query, {"ids": list(ids)})
        inactive.update({i: f"{word} {name} is not active" for i, name in rows})
    people = await connection.execute(
        _INACTIVE_PEOPLE, {"ids": list({r.owner_id for r in records})}
    )
    inactive.update({i: f"user {name} is {status}" for i, name, status in people})
    held, frozen = await _load_stops(connection, records)
    inactive.update(held)
    found = {}
    for record in records:
        places = (
            record.id,
            record.domain_id,
            record.project_id,
            record.owner_id,
            record.resource_group_id,
        )
        reasons = [inactive[place] for place in places if place in inactive]
        if record.resource_group_id in frozen:
            reasons.append(frozen[record.resource_group_id])
        if reasons:
            found[record.id] = "; ".join(reasons)
    return found


async def _load_stops(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> tuple[dict[str, str], dict[str, str]]:
    """Say which sessions are held, and which of their groups are frozen, by id."""
    groups = {r.resource_group_id for r in records if r.resource_group_id is not None}
    stops = await list_stops(connection, {r.id for r in records} | groups)
    frozen = {stop.target_id: stop for stop in stops if stop.kind is StopKind.GROUP}
    held = {s.target_id: tell_hold(s) for s in stops if s.kind is StopKind.SESSION}
    if not frozen:
        return held, {}
    rows = await connection.execute(
        select(ResourceGroupRow.id, ResourceGroupRow.name).where(
            ResourceGroupRow.id.in_(frozen)
        )
    )
    return held, {i: tell_freeze(name, frozen[i]) for i, name in rows}


async def close_group(
    tx: Transaction, group_id: str, kind: str, target_id: str
) -> bool:
    """Close a group to a domain, project or keypair; tell whether it was open."""
    gone = await tx.execute(
        delete(ResourceGroupAccessRow).where(
            ResourceGroupAccessRow.group_id == group_id,
            ResourceGroupAccessRow.kind == kind,
            ResourceGroupAccessRow.target_id == target_id,
        )
    )
    return bool(gone.rowcount)


async def list_access(connection: AsyncConnection, group_id: str) -> list[GroupAccess]:
    """List the domains, projects and keypairs that may use a group."""
    project_domain = aliased(DomainRow)
    rows = await connection.execute(
        select(
            ResourceGroupAccessRow.kind,
            ResourceGroupAccessRow.target_id,
            DomainRow.name.label("domain"),
            ProjectRow.name.label("project"),
            project_domain.name.label("project_domain"),
            KeypairRow.name.label("keypair"),
        )
        .outerjoin(DomainRow, DomainRow.id == ResourceGroupAccessRow.target_id)
        .outerjoin(ProjectRow, ProjectRow.id == ResourceGroupAccessRow.target_id)
        .outerjoin(project_domain, project_domain.id == ProjectRow.domain_id)
        .outerjoin(KeypairRow, KeypairRow.id == ResourceGroupAccessRow.target_id)
        .where(ResourceGroupAccessRow.group_id == group_id)
        .order_by(ResourceGroupAccessRow.kind, ResourceGroupAccessRow.target_id)
    )
    return [
        GroupAccess(
            kind=row.kind,
            id=row.target_id,
            name=row.domain
            or (row.project and f"{row.project_domain}:{row.project}")
            or row.keypair
            or row.target_id,
        )
        for row in rows
    ]


async def list_group_names(connection: AsyncConnection) -> dict[str, str]:
    """Return the names of all groups, by id."""
    rows = await connection.execute(select(ResourceGroupRow.id, ResourceGroupRow.name))
    return {str(group_id): str(name) for group_id, name in rows}
