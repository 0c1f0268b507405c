"""What permits somebody to use folders, held so that it is not taken back meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import (
    DomainRow,
    FolderGrantRow,
    FolderRow,
    KeypairPolicyRow,
    KeypairRow,
    MembershipRow,
    ProjectRow,
    UserRow,
)

_IS_HELD: Final = "55P03"
"""What PostgreSQL says of a row that somebody else is about to change."""


async def hold(
    tx: Transaction,
    user_id: str,
    keypair_id: str | None,
    *,
    folder_ids: Collection[str],
) -> bool:
    """Let nothing of what somebody may do in folders be changed before the commit.

    Returns whether that could be had at once: it waits for nobody, so that nobody waits
    for each other. On SQLite nobody else writes meanwhile anyway.
    """
    if tx.connection.dialect.name != "postgresql":
        return True
    try:
        async with tx.connection.begin_nested():
            for query in _list_rights(user_id, keypair_id, sorted(folder_ids)):
                held = query.with_for_update(read=True, nowait=True)
                await tx.connection.execute(held)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _IS_HELD:
            raise
        return False
    return True


def _list_rights(
    user_id: str, keypair_id: str | None, folder_ids: list[str]
) -> Iterator[Any]:
    """Build the statements that find every row from which a permission comes."""
    domain = select(UserRow.domain_id).where(UserRow.id == user_id)
    member = MembershipRow.user_id == user_id
    projects = select(MembershipRow.project_id).where(member)
    mine = KeypairRow.is_default if keypair_id is None else KeypairRow.id == keypair_id
    keypairs = select(KeypairRow.id).where(KeypairRow.user_id == user_id, mine)
    policies = select(KeypairRow.resource_policy_id).where(
        KeypairRow.user_id == user_id, mine
    )
    # The folders first: who shares one, or takes it back, holds it.
    yield select(FolderRow.id).where(FolderRow.id.in_(folder_ids))
    yield select(FolderGrantRow.folder_id).where(
        FolderGrantRow.user_id == user_id, FolderGrantRow.folder_id.in_(folder_ids)
    )
    yield select(MembershipRow.project_id).where(member)
    yield select(UserRow.id).where(UserRow.id == user_id)
    yield select(DomainRow.id).where(DomainRow.id.in_(domain))
    yield select(ProjectRow.id).where(ProjectRow.id.in_(projects))
    yield keypairs
    yield select(KeypairPolicyRow.id).where(KeypairPolicyRow.id.in_(policies))
