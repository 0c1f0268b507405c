"""Removing what belonged to a tenant that is purged. Events and acts stay."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, or_, select, update

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    AccountRow,
    AllocationRow,
    AttemptRow,
    ContainerRow,
    ContainerUsageRow,
    DependencyRow,
    DotfileRow,
    ExplanationRow,
    GroupShareRow,
    ImageAliasRow,
    ImageInstallRow,
    ImageRow,
    KeypairRow,
    LedgerRow,
    LoginRow,
    LogRow,
    MembershipRow,
    PreemptionRow,
    ReservationRow,
    ResourceGroupAccessRow,
    SecretRow,
    SessionMountRow,
    SessionRow,
    SSHKeyRow,
    StopRow,
    UsageBucketRow,
    UserRow,
    VictimRow,
)
from backendai_hub.db.usage import count_usage


async def purge_sessions(tx: Transaction, condition: Any) -> None:
    """Remove the history of sessions that have ended.

    Who waits for one of them that has succeeded waits no longer; for the others,
    nobody waits any more.
    """
    ids = select(SessionRow.id).where(condition)
    while await count_usage(tx, AllocationRow.session_id.in_(ids)):
        pass
    await tx.execute(delete(StopRow).where(StopRow.target_id.in_(ids)), ids=())
    await tx.execute(delete(DependencyRow).where(DependencyRow.depends_on.in_(ids)))
    plans = select(PreemptionRow.id).where(PreemptionRow.session_id.in_(ids))
    await tx.execute(delete(VictimRow).where(VictimRow.preemption_id.in_(plans)))
    for row in (
        VictimRow,
        PreemptionRow,
        AllocationRow,
        AttemptRow,
        ExplanationRow,
        LogRow,
        ContainerUsageRow,
        ContainerRow,
        DependencyRow,
        SecretRow,
        SessionMountRow,
    ):
        await tx.execute(delete(row).where(row.session_id.in_(ids)))
    await tx.execute(delete(SessionRow).where(condition))


async def purge_scope(tx: Transaction, kind: ScopeKind, scope_id: str) -> None:
    """Remove a tenant's ledger rows, dotfiles, access to groups, and shares of them."""
    await tx.execute(
        delete(LedgerRow).where(
            LedgerRow.kind == str(kind), LedgerRow.owner_id == scope_id
        )
    )
    await tx.execute(delete(DotfileRow).where(DotfileRow.scope_id == scope_id))
    await tx.execute(
        delete(ResourceGroupAccessRow).where(
            ResourceGroupAccessRow.target_id == scope_id
        )
    )
    await tx.execute(
        delete(GroupShareRow).where(
            or_(
                GroupShareRow.domain_id == scope_id,
                GroupShareRow.project_id == scope_id,
                GroupShareRow.user_id == scope_id,
            )
        )
    )


async def purge_keypair(tx: Transaction, keypair_id: str) -> None:
    """Remove a keypair; sessions started with it go on without it."""
    # In the order of ids, as everybody who locks several sessions does.
    using = select(SessionRow.id).where(SessionRow.keypair_id == keypair_id)
    await tx.execute(using.order_by(SessionRow.id).with_for_update())
    await tx.execute(
        update(SessionRow)
        .where(SessionRow.keypair_id == keypair_id)
        .values(keypair_id=None, revision=SessionRow.revision + 1)
    )
    await purge_scope(tx, ScopeKind.KEYPAIR, keypair_id)
    await tx.execute(delete(LoginRow).where(LoginRow.keypair_id == keypair_id))
    await tx.execute(delete(SSHKeyRow).where(SSHKeyRow.keypair_id == keypair_id))
    await tx.execute(delete(KeypairRow).where(KeypairRow.id == keypair_id))


async def purge_user(tx: Transaction, user_id: str, name: str) -> None:
    """Remove everything of a user whose sessions have all ended."""
    await purge_sessions(tx, SessionRow.owner_id == user_id)
    keys = await tx.execute(select(KeypairRow.id).where(KeypairRow.user_id == user_id))
    for (keypair_id,) in keys.all():
        await purge_keypair(tx, keypair_id)
    await tx.execute(delete(LoginRow).where(LoginRow.user_id == user_id))
    await tx.execute(delete(MembershipRow).where(MembershipRow.user_id == user_id))
    await purge_scope(tx, ScopeKind.USER, user_id)
    await tx.execute(
        update(ImageRow)
        .where(ImageRow.owner_id == user_id)
        .values(owner_id=None, status="DELETED")
    )
    await tx.execute(delete(AccountRow).where(AccountRow.name == name))
    await tx.execute(delete(UserRow).where(UserRow.id == user_id))


async def leave_project(tx: Transaction, project_id: str) -> None:
    """Take everybody out of a project, and let nobody use it without naming it."""
    await tx.execute(
        delete(MembershipRow).where(MembershipRow.project_id == project_id)
    )
    await tx.execute(
        update(UserRow).where(UserRow.project_id == project_id).values(project_id=None)
    )


async def forget_group(tx: Transaction, group_id: str) -> None:
    """Remove who may use a group, what it kept, shares, and its name from sessions."""
    await tx.execute(delete(StopRow).where(StopRow.target_id == group_id))
    await tx.execute(
        delete(ReservationRow).where(ReservationRow.resource_group_id == group_id)
    )
    for row in (GroupShareRow, UsageBucketRow):
        await tx.execute(delete(row).where(row.group_id == group_id))
    await tx.execute(
        delete(ResourceGroupAccessRow).where(
            ResourceGroupAccessRow.group_id == group_id
        )
    )
    await tx.execute(
        update(SessionRow)
        .where(SessionRow.resource_group_id == group_id)
        .values(resource_group_id=None)
    )


async def purge_images(tx: Transaction, registry_id: str) -> None:
    """Remove the forgotten images of a registry."""
    ids = select(ImageRow.id).where(ImageRow.registry_id == registry_id)
    await tx.execute(
        update(SessionRow).where(SessionRow.image_id.in_(ids)).values(image_id=None)
    )
    for row in (ImageAliasRow, ImageInstallRow):
        await tx.execute(delete(row).where(row.image_id.in_(ids)))
    await tx.execute(delete(ImageRow).where(ImageRow.registry_id == registry_id))
