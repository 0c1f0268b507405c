"""Reading and writing domains, projects and users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.tenancy import DEFAULT_DOMAIN, DEFAULT_PROJECT, Role, User
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import DomainRow, ProjectRow, UserRow

_USERS = (
    select(
        UserRow.id,
        UserRow.name,
        UserRow.domain_id,
        DomainRow.name.label("domain"),
        UserRow.project_id,
        ProjectRow.name.label("project"),
    )
    .join(DomainRow, DomainRow.id == UserRow.domain_id)
    .join(ProjectRow, ProjectRow.id == UserRow.project_id)
)


def _user(row: Any) -> User:
    return User(role=Role.USER, **row._mapping)


async def find_user(connection: AsyncConnection, name: str) -> User | None:
    """Find a user by JupyterHub's name for them."""
    row = (await connection.execute(_USERS.where(UserRow.name == name))).first()
    return None if row is None else _user(row)


async def ensure_defaults(
    tx: Transaction, new_id: Callable[[], str]
) -> tuple[str, str]:
    """Make the default domain and project if absent; return their ids."""
    await tx.execute(
        insert_ignore(tx, DomainRow).values(
            id=new_id(), name=DEFAULT_DOMAIN, created_at=tx.now
        )
    )
    domain_id = await tx.connection.scalar(
        select(DomainRow.id).where(DomainRow.name == DEFAULT_DOMAIN)
    )
    await tx.execute(
        insert_ignore(tx, ProjectRow).values(
            id=new_id(), domain_id=domain_id, name=DEFAULT_PROJECT, created_at=tx.now
        )
    )
    project_id = await tx.connection.scalar(
        select(ProjectRow.id).where(
            ProjectRow.domain_id == domain_id, ProjectRow.name == DEFAULT_PROJECT
        )
    )
    return str(domain_id), str(project_id)


async def lock_user(tx: Transaction, user_id: str) -> None:
    """Keep other transactions that lock this user waiting until this one ends."""
    query = select(UserRow.id).where(UserRow.id == user_id)
    await tx.execute(query.with_for_update())


async def insert_user(
    tx: Transaction, user_id: str, name: str, domain_id: str, project_id: str
) -> None:
    """Store a new user, unless somebody has just done so."""
    await tx.execute(
        insert_ignore(tx, UserRow).values(
            id=user_id,
            name=name,
            domain_id=domain_id,
            project_id=project_id,
            created_at=tx.now,
        )
    )
