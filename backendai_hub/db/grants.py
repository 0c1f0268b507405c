"""What administrators have said of a session's owner and of its resource group.

It is read when a node asks what it should run, so that a change holds for every
session that starts after it; what runs already is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import Identity
from backendai_hub.db.tables import ResourceGroupRow, SessionRow, UserRow


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a container's specification that administrators decide."""

    host_network: bool = False
    sudo: bool = False
    identity: Identity | None = None


NOTHING: Final = Grant()


async def load_grants(
    connection: AsyncConnection, session_ids: Sequence[str]
) -> dict[str, Grant]:
    """Read what holds for each of the sessions now."""
    query = (
        select(
            SessionRow.id,
            ResourceGroupRow.use_host_network,
            UserRow.sudo_session_enabled,
            UserRow.container_uid,
            UserRow.container_main_gid,
            UserRow.container_gids,
        )
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .outerjoin(
            ResourceGroupRow, ResourceGroupRow.id == SessionRow.resource_group_id
        )
        .where(SessionRow.id.in_(session_ids))
    )
    return {
        session_id: Grant(
            host_network=bool(host_network),
            sudo=sudo,
            identity=_identity(uid, gid, gids),
        )
        for session_id, host_network, sudo, uid, gid, gids in (
            await connection.execute(query)
        ).all()
    }


def _identity(uid: int | None, gid: int | None, gids: list[int]) -> Identity | None:
    if uid is None and gid is None and not gids:
        return None
    return Identity(uid=uid, gid=gid, gids=list(gids))
