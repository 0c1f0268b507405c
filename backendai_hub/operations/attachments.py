"""Sessions and JupyterHub's named servers: which ones have lost each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.sessions import TERMINAL, SessionStatus
from backendai_hub.core.slots import ResourceSlots, format_amount
from backendai_hub.db import agents, session_lists, sessions
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.platform import Platform

YOUNG = timedelta(seconds=10)
_LEAVING = {SessionStatus.TERMINATING, SessionStatus.PREEMPTED}


class Attached(msgspec.Struct, frozen=True):
    """A session and the Hub server it belongs to."""

    session_id: str
    user: str
    server: str
    options: dict[str, Any]
    ready: bool
    young: bool
    is_heard: bool
    """Whether its node answers, so that JupyterHub can hear of its use."""


async def list_attached(platform: Platform) -> list[Attached]:
    """List the live sessions that belong to a Hub server."""
    now = platform.database.clock()
    live = [s for s in SessionStatus if s not in TERMINAL | _LEAVING]
    async with platform.database.glance() as connection:
        rows = await session_lists.list_on_servers(connection, live)
        nodes = await agents.list_agents(connection)
    alive = {node.id for node in nodes if node.status is AgentStatus.ALIVE}
    return [
        Attached(
            session_id=r.id,
            user=r.owner,
            server=r.server,
            options={
                "image": r.image,
                "name": r.name,
                "slots": ResourceSlots(r.slots).to_text(),
                "shmem": format_amount("mem", r.shmem),
                "session_key": r.idempotency_key,
                **_cluster(r),
            },
            ready=r.ready,
            young=now - r.created_at < YOUNG,
            is_heard=r.agent_id in alive,
        )
        for r in rows
    ]


def _cluster(row: Any) -> dict[str, Any]:
    """Return what a session's options say of its containers, if it has several."""
    if row.cluster_size == 1:
        return {}
    options = {"cluster_size": row.cluster_size, "cluster_mode": row.cluster_mode}
    if row.cluster_strategy is not None:
        options["cluster_strategy"] = row.cluster_strategy
    return options


async def list_ended_servers(
    platform: Platform, servers: Mapping[tuple[str, str], datetime | None]
) -> list[tuple[str, str]]:
    """Of these (user, server) pairs, list those whose session has ended.

    With each goes when JupyterHub started the server: one that is younger than the
    end of our session is somebody else's under the same name, and is left alone.
    """
    if not servers:
        return []
    names = sorted({server for _, server in servers})
    async with platform.database.read() as connection:
        ended = await session_lists.list_ended_servers(connection, names)
    return [
        pair
        for pair, started in servers.items()
        if pair in ended and (started is None or started <= ended[pair])
    ]


async def refuse_attachment(platform: Platform, session_id: str, words: str) -> None:
    """End a session that JupyterHub will not attach, with JupyterHub's words."""
    async with platform.database.transaction() as tx:
        record = await sessions.get_record(tx.connection, session_id, lock=True)
        if record.status is SessionStatus.PENDING and not record.ready:
            await move(
                tx,
                record,
                SessionStatus.ERROR,
                f"JupyterHub refused to start its server: {words}",
            )
