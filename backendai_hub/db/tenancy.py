"""Reading and writing the people of a request: actors and their memberships."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import Actor, Membership, Role, UserStatus
from backendai_hub.core.times import format_time
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    DomainRow,
    KeypairRow,
    MembershipRow,
    ProjectRow,
    RegistryRow,
    ResourceGroupAccessRow,
    ResourceGroupRow,
    UserRow,
)

_ACTORS = (
    select(
        UserRow.id,
        UserRow.name,
        UserRow.role,
        UserRow.status,
        UserRow.domain_id,
        DomainRow.name.label("domain"),
        DomainRow.is_active.label("domain_active"),
        UserRow.project_id,
        KeypairRow.id.label("keypair_id"),
        KeypairRow.resource_policy_id.label("keypair_policy_id"),
        UserRow.resource_policy_id.label("user_policy_id"),
        KeypairRow.rate_limit,
        UserRow.allowed_client_ip,
        UserRow.groups_digest,
        DomainRow.allowed_docker_registries.label("registries"),
    )
    .join(DomainRow, DomainRow.id == UserRow.domain_id)
    .join(KeypairRow, (KeypairRow.user_id == UserRow.id) & KeypairRow.is_default)
)


async def find_actor(
    connection: AsyncConnection, *, name: str | None = None, user_id: str | None = None
) -> Actor | None:
    """Find a user by JupyterHub's name for them (in any spelling), or by id."""
    query = _ACTORS
    if name is not None:
        query = query.where(UserRow.name_key == fold(name))
    if user_id is not None:
        query = query.where(UserRow.id == user_id)
    row = (await connection.execute(query)).first()
    if row is None:
        return None
    values: dict[str, Any] = dict(row._mapping)
    values["role"] = Role(values["role"])
    values["status"] = UserStatus(values["status"])
    values["allowed_client_ip"] = tuple(values["allowed_client_ip"] or ())
    registries = values.pop("registries")
    projects = await list_projects(connection, row.id)
    targets = [row.domain_id, *projects, row.keypair_id]
    groups = select(ResourceGroupAccessRow.group_id).join(
        ResourceGroupRow, ResourceGroupRow.id == ResourceGroupAccessRow.group_id
    )
    groups = groups.where(
        ResourceGroupAccessRow.target_id.in_(targets),
        ResourceGroupRow.is_public,
        ResourceGroupRow.is_active,
    )
    policies = select(ProjectRow.resource_policy_id).where(ProjectRow.id.in_(projects))
    allowed = select(RegistryRow.id).where(
        RegistryRow.name_key.in_([fold(name) for name in registries])
    )
    return Actor(
        **values,
        projects=projects,
        project_policy_ids=await _ids(connection, policies.distinct()),
        group_ids=await _ids(connection, groups.distinct()),
        registry_ids=await _ids(connection, allowed) if registries else (),
    )


async def _ids(connection: AsyncConnection, query: Any) -> tuple[str, ...]:
    return tuple(str(found) for (found,) in await connection.execute(query))


async def list_projects(connection: AsyncConnection, user_id: str) -> dict[str, str]:
    """Return the active projects a user is in: names by id, in the order of names."""
    rows = await connection.execute(
        select(ProjectRow.id, ProjectRow.name)
        .join(MembershipRow, MembershipRow.project_id == ProjectRow.id)
        .join(UserRow, UserRow.id == MembershipRow.user_id)
        .where(
            MembershipRow.user_id == user_id,
            ProjectRow.is_active,
            # People are in projects of their own domain only, whatever is stored.
            ProjectRow.domain_id == UserRow.domain_id,
        )
        .order_by(ProjectRow.name)
    )
    return {str(key): str(name) for key, name in rows}


_LOCKED_USER: Final = (
    select(UserRow.id).where(UserRow.id == bindparam("id")).with_for_update()
)


async def lock_user(tx: Transaction, user_id: str) -> None:
    """Keep other transactions that lock this user waiting until this one ends."""
    await tx.connection.execute(_LOCKED_USER, {"id": user_id})


async def insert_user(tx: Transaction, values: dict[str, Any]) -> None:
    """Store a new user, unless somebody has just done so."""
    await tx.execute(insert_ignore(tx, UserRow).values(**values))


async def insert_keypair(tx: Transaction, values: dict[str, Any]) -> None:
    """Store a new keypair."""
    await tx.execute(insert(KeypairRow).values(**values))


async def add_member(
    tx: Transaction, project_id: str, user_id: str, source: str
) -> bool:
    """Make a user a member of a project; tell whether they were not yet."""
    added = await tx.execute(
        insert_ignore(tx, MembershipRow).values(
            project_id=project_id, user_id=user_id, source=source, created_at=tx.now
        )
    )
    return bool(added.rowcount)


async def list_members(
    connection: AsyncConnection, project_id: str
) -> list[Membership]:
    """List who is in a project, by name."""
    rows = await connection.execute(
        select(
            UserRow.name.label("user"),
            UserRow.id.label("user_id"),
            ProjectRow.name.label("project"),
            ProjectRow.id.label("project_id"),
            MembershipRow.source,
            MembershipRow.created_at,
        )
        .join(UserRow, UserRow.id == MembershipRow.user_id)
        .join(ProjectRow, ProjectRow.id == MembershipRow.project_id)
        .where(MembershipRow.project_id == project_id)
        .order_by(UserRow.name_key)
    )
    return [
        Membership(**{**r._mapping, "created_at": format_time(r.created_at) or ""})
        for r in rows
    ]


async def remove_members(
    tx: Transaction,
    user_id: str,
    *,
    project_ids: Collection[str] | None = None,
    source: str | None = None,
) -> list[str]:
    """Take a user out of projects (all, or these; from one source); return which."""
    query = delete(MembershipRow).where(MembershipRow.user_id == user_id)
    if project_ids is not None:
        query = query.where(MembershipRow.project_id.in_(project_ids))
    if source is not None:
        query = query.where(MembershipRow.source == source)
    gone = await tx.execute(query.returning(MembershipRow.project_id))
    tx.wake("uploads", "folders")  # what they had begun in folders of these
    return [project for (project,) in gone]


async def drop_admin_keys(tx: Transaction, user_id: str) -> None:
    """Take an administrator's rights from all keys of somebody whose role changes.

    Whoever made such a key before may know its secret; the new role is not theirs.
    """
    await tx.execute(
        update(KeypairRow)
        .where(KeypairRow.user_id == user_id, KeypairRow.is_admin)
        .values(is_admin=False, revision=KeypairRow.revision + 1)
    )


async def change_user(tx: Transaction, user_id: str, **values: Any) -> None:
    """Change fields of a user without a revision of their own (bookkeeping)."""
    await tx.execute(update(UserRow).where(UserRow.id == user_id).values(**values))


async def default_id(connection: AsyncConnection, table: Any) -> str | None:
    """Return the id of the row that is the default of its kind."""
    found = await connection.scalar(select(table.id).where(table.is_default))
    return None if found is None else str(found)


async def find_project(
    connection: AsyncConnection, domain_id: str, name: str
) -> str | None:
    """Find a project of a domain by its name; return its id."""
    found = await connection.scalar(
        select(ProjectRow.id).where(
            ProjectRow.domain_id == domain_id, ProjectRow.name_key == fold(name)
        )
    )
    return None if found is None else str(found)


async def find_stored(connection: AsyncConnection, name: str) -> str | None:
    """Find a user's id by their name, in any spelling."""
    found = await connection.scalar(
        select(UserRow.id).where(UserRow.name_key == fold(name))
    )
    return None if found is None else str(found)


async def list_registries(connection: AsyncConnection, domain_id: str) -> list[str]:
    """List the active registries a domain may name: its own, and those for all."""
    allowed = await connection.scalar(
        select(DomainRow.allowed_docker_registries).where(DomainRow.id == domain_id)
    )
    rows = await connection.execute(
        select(RegistryRow.name, RegistryRow.name_key, RegistryRow.is_global)
        .where(RegistryRow.is_active)
        .order_by(RegistryRow.name_key)
    )
    own = {fold(name) for name in allowed or ()}
    return [name for name, key, everybody in rows if everybody or key in own]


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration has given to a user so far."""

    role: Role
    granted_role: str
    digest: str
    revision: int
    projects: dict[str, str]
    """The source of each of their memberships, by the project's id."""


async def read_granted(connection: AsyncConnection, user_id: str) -> Granted:
    """Read what a user has, and of that what the configuration has given."""
    user = (
        await connection.execute(
            select(
                UserRow.role,
                UserRow.granted_role,
                UserRow.groups_digest,
                UserRow.revision,
            ).where(UserRow.id == user_id)
        )
    ).one()
    memberships = await connection.execute(
        select(MembershipRow.project_id, MembershipRow.source).where(
            MembershipRow.user_id == user_id
        )
    )
    return Granted(
        role=Role(user.role),
        granted_role=user.granted_role,
        digest=user.groups_digest,
        revision=user.revision,
        projects={str(project): str(source) for project, source in memberships},
    )


async def find_domain(connection: AsyncConnection, name: str) -> str | None:
    """Find a domain by its name; return its id."""
    found = await connection.scalar(
        select(DomainRow.id).where(DomainRow.name_key == fold(name))
    )
    return None if found is None else str(found)


async def look_again(tx: Transaction, rules_mark: str) -> None:
    """Have the rules about groups applied anew to everybody: there is a new name.

    *rules_mark* is what digests begin with that were made under these rules.
    """
    await tx.execute(
        update(UserRow)
        .where(UserRow.groups_digest.startswith(rules_mark, autoescape=True))
        .values(groups_digest=rules_mark)
    )


async def grant_roles(
    tx: Transaction, names: Collection[str], role: Role, rules_mark: str
) -> list[str]:
    """Give *role* to the users *names*, and take back what the rules of before gave.

    Returns the names of the users who are something else now.
    """
    keys = [fold(name) for name in names]
    old_rules = ~UserRow.groups_digest.startswith(rules_mark, autoescape=True)
    if not rules_mark:
        old_rules = true()
    bumped = {"revision": UserRow.revision + 1, "modified_at": tx.now}
    taken = await tx.execute(
        update(UserRow)
        .where(
            UserRow.granted_role != "",
            UserRow.granted_role == UserRow.role,
            UserRow.name_key.not_in(keys),
            old_rules,
        )
        .values(role=str(Role.USER), granted_role="", groups_digest="", **bumped)
        .returning(UserRow.name)
    )
    given = await tx.execute(
        update(UserRow)
        .where(UserRow.name_key.in_(keys), UserRow.role != str(role))
        .values(role=str(role), granted_role=str(role), **bumped)
        .returning(UserRow.name)
    )
    return [str(name) for result in (taken, given) for (name,) in result]
