"""The limits that apply to sessions, read from the policies that say them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.policies import SubmissionCaps, Unspecified
from backendai_hub.core.quotas import (
    SESSIONS,
    SYSTEM_SESSIONS,
    TENANTS,
    QuotaScope,
    ScopeKind,
)
from backendai_hub.core.slots import MILLI
from backendai_hub.db.agents import list_balances
from backendai_hub.db.engine import Database
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.tables import (
    DomainRow,
    KeypairPolicyRow,
    KeypairRow,
    ProjectRow,
    UserRow,
)

Scopes = dict[tuple[ScopeKind, str], QuotaScope]

_WORTH_KEEPING: Final = 200
"""Sets of more scopes than this are hardly ever asked for twice."""


async def load_scopes(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> Scopes:
    """Read the limits and the use of every scope these sessions count in."""
    return await add_use(connection, await load_limits(connection, records))


async def recall_limits(database: Database, records: Sequence[SessionRecord]) -> Scopes:
    """Return the limits of these sessions' scopes as they are, without what is used.

    They are read again only where something about tenancy has changed.
    """
    scopes = frozenset(scope for record in records for scope in record.scopes)
    return await recall_limits_of(database, scopes)


async def recall_limits_of(
    database: Database, scopes: frozenset[tuple[ScopeKind, str]]
) -> Scopes:
    """Return the limits of these scopes as they are, without what is used."""
    if len(scopes) > _WORTH_KEEPING:
        async with database.glance() as connection:
            return await _load_scopes(connection, scopes)
    return await database.recall(
        ("limits", scopes), lambda connection: _load_scopes(connection, scopes)
    )


async def load_limits(
    connection: AsyncConnection, records: Sequence[SessionRecord]
) -> Scopes:
    """Read the limits of every scope these sessions count in, with nothing in use."""
    scopes = {scope for record in records for scope in record.scopes}
    return await _load_scopes(connection, scopes)


async def _load_scopes(
    connection: AsyncConnection, scopes: Collection[tuple[ScopeKind, str]]
) -> Scopes:
    ids: dict[ScopeKind, set[str]] = {}
    for kind, scope in scopes:
        ids.setdefault(kind, set()).add(scope)
    tenants = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER, ScopeKind.KEYPAIR)
    return await _load(connection, *(ids.get(kind, set()) for kind in tenants))


async def load_tenant_scopes(
    connection: AsyncConnection, *, domain_id: str, project_id: str, user_id: str
) -> list[QuotaScope]:
    """Read the limits and the use of one user in one project, widest first."""
    limits = await _load(connection, {domain_id}, {project_id}, {user_id}, set())
    found = await add_use(connection, limits)
    wanted = (
        (ScopeKind.DOMAIN, domain_id),
        (ScopeKind.PROJECT, project_id),
        (ScopeKind.USER, user_id),
    )
    return [found[key] for key in wanted if key in found]


async def _load(
    connection: AsyncConnection,
    domains: set[str],
    projects: set[str],
    users: set[str],
    keypairs: set[str],
) -> Scopes:
    found: Scopes = {}
    for kind, table, ids in (
        (ScopeKind.DOMAIN, DomainRow, domains),
        (ScopeKind.PROJECT, ProjectRow, projects),
    ):
        rows = await connection.execute(
            select(table.id, table.name, table.total_resource_slots).where(
                table.id.in_(ids)
            )
        )
        for scope_id, name, limits in rows:
            found[kind, scope_id] = QuotaScope(
                kind=kind, id=scope_id, name=name, limits=limits, used={}
            )
    rows = await connection.execute(
        select(
            KeypairRow.id,
            KeypairRow.name,
            KeypairRow.is_default,
            UserRow.id.label("user_id"),
            UserRow.name.label("user_name"),
            KeypairPolicyRow.default_for_unspecified,
            KeypairPolicyRow.total_resource_slots,
            KeypairPolicyRow.max_concurrent_sessions,
            KeypairPolicyRow.max_concurrent_sftp_sessions,
        )
        .join(UserRow, UserRow.id == KeypairRow.user_id)
        .join(KeypairPolicyRow, KeypairPolicyRow.id == KeypairRow.resource_policy_id)
        .where(
            KeypairRow.id.in_(keypairs)
            | (KeypairRow.user_id.in_(users) & KeypairRow.is_default)
        )
    )
    for row in rows:
        if row.is_default:
            # The user's own limit. The key itself says the same and is not asked.
            found[ScopeKind.USER, row.user_id] = _policy(
                row, ScopeKind.USER, row.user_id, row.user_name
            )
            found[ScopeKind.KEYPAIR, row.id] = QuotaScope(
                kind=ScopeKind.KEYPAIR, id=row.id, name=row.name, limits={}, used={}
            )
        else:
            found[ScopeKind.KEYPAIR, row.id] = _policy(
                row, ScopeKind.KEYPAIR, row.id, row.name
            )
    return found


async def add_use(connection: AsyncConnection, limits: Scopes) -> Scopes:
    """Read what is in use of these limits."""
    balances = await list_balances(connection, TENANTS, {key[1] for key in limits})
    return {
        key: _with_use(scope, balances.get(key, {})) for key, scope in limits.items()
    }


def _policy(row: Any, kind: ScopeKind, scope_id: str, name: str) -> QuotaScope:
    limits: dict[str, int | None] = dict(row.total_resource_slots)
    for counter, most in (
        (SESSIONS, row.max_concurrent_sessions),
        (SYSTEM_SESSIONS, row.max_concurrent_sftp_sessions),
    ):
        limits[counter] = most * MILLI if most > 0 else None
    limited = row.default_for_unspecified == Unspecified.LIMITED
    return QuotaScope(
        kind=kind,
        id=scope_id,
        name=name,
        limits=limits,
        used={},
        unspecified=0 if limited else None,
    )


def _with_use(scope: QuotaScope, balances: Mapping[str, Any]) -> QuotaScope:
    return QuotaScope(
        kind=scope.kind,
        id=scope.id,
        name=scope.name,
        limits=scope.limits,
        used={slot: balance.used for slot, balance in balances.items()},
        unspecified=scope.unspecified,
    )


async def load_caps(
    connection: AsyncConnection, keypair_id: str
) -> list[SubmissionCaps]:
    """Read what policies say about sessions that are asked for with a keypair.

    Its owner's default keypair speaks for the owner; another keypair may be limited
    further, for what is asked for with it.
    """
    owner = select(KeypairRow.user_id).where(KeypairRow.id == keypair_id)
    rows = await connection.execute(
        select(
            KeypairRow.id.label("keypair_id"),
            KeypairRow.is_default,
            KeypairPolicyRow.name.label("policy"),
            KeypairPolicyRow.max_pending_session_count,
            KeypairPolicyRow.max_pending_session_resource_slots,
            KeypairPolicyRow.max_containers_per_session,
            KeypairPolicyRow.max_priority,
            KeypairPolicyRow.max_job_priority,
            KeypairPolicyRow.allows_not_preemptible,
        )
        .join(KeypairRow, KeypairRow.resource_policy_id == KeypairPolicyRow.id)
        .where(
            (KeypairRow.id == keypair_id)
            | (KeypairRow.user_id.in_(owner) & KeypairRow.is_default)
        )
        .order_by(KeypairRow.is_default.desc())
    )
    found = []
    for row in rows:
        values = dict(row._mapping)
        if values.pop("is_default"):
            values["keypair_id"] = None
        found.append(SubmissionCaps(**values))
    return found
