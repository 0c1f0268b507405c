"""What sessions have printed: asked of their node, or kept from before."""

from __future__ import annotations

from typing import Final

import msgspec

from backendai_hub.api.agents import LogParcel
from backendai_hub.api.sessions import SessionLog
from backendai_hub.client.agents import AgentClient, AgentUnreachableError
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.batch import LOG_BYTES
from backendai_hub.core.clusters import MAIN_HOST, list_seats
from backendai_hub.core.errors import (
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from backendai_hub.core.sessions import QUEUED, STARTING, TERMINAL, SessionStatus
from backendai_hub.db import batch, containers
from backendai_hub.db.batch import Attempt, StoredLog
from backendai_hub.operations.log_desk import LogDesk, Place
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import get_allowed

MOST_LINES: Final = 10_000

_SILENT: Final = QUEUED | STARTING - {SessionStatus.CREATING}
"""While a session is in one of these it does not print yet."""


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines of the end, of which attempt and of which container.

    The last attempt and the main container, unless said. With ``follow`` one's
    streams that announce changes tell when there is more; whether they do is
    ``followed`` in the answer.
    """

    tail: int = 1000
    attempt: int | None = None
    host: str = MAIN_HOST
    follow: bool = False


async def accept_log(platform: Platform, agent_id: str, parcel: LogParcel) -> None:
    """Keep the end of what a container printed, for whoever asks after its end."""
    content = parcel.content[-LOG_BYTES:]
    clipped = parcel.clipped or len(content) < len(parcel.content)
    async with platform.database.transaction() as tx:
        rows = await containers.list_containers(tx.connection, ids=[parcel.container])
        own = [row for row in rows if row.agent_id == agent_id]
        if not own:
            raise NotFoundError(f"node {agent_id} was given no such container")
        await batch.put_log(
            tx,
            container_id=own[0].id,
            session_id=own[0].session_id,
            log=StoredLog(content=content, clipped=clipped),
        )


async def read_log(
    platform: Platform,
    principal: Principal,
    session_id: str,
    *,
    query: LogQuery,
    desk: LogDesk,
) -> SessionLog:
    """Return the end of what a session has printed, in one of its attempts."""
    if not 1 <= query.tail <= MOST_LINES:
        raise InvalidRequestError(
            f"tail: {query.tail} is not between 1 and {MOST_LINES} lines"
        )
    async with platform.database.read() as connection:
        record = await get_allowed(connection, principal, session_id, Action.READ_LOG)
        attempts = await batch.list_attempts(connection, session_id, query.host)
        hosts = [seat.host for seat in list_seats(record.cluster_size)]
        if query.host not in hosts:
            raise InvalidRequestError(
                f"host: {query.host[:32]!r} is none of this session's containers; there"
                f" are {', '.join(hosts)}"
            )
        number = len(attempts) if query.attempt is None else query.attempt
        live = record.status not in TERMINAL and number == len(attempts)
        if not 1 <= number <= len(attempts):
            if query.attempt is None:
                return SessionLog(
                    session_id=session_id,
                    attempt=0,
                    text="",
                    live=live,
                    followed=query.follow,
                )
            raise InvalidRequestError(
                f"attempt: {number} is not between 1 and {len(attempts)}"
            )
        attempt = attempts[number - 1]
        stored = await batch.get_log(connection, attempt.container_id)
    moment = None
    # Nothing comes then before the session changes, of which everybody hears.
    quiet = stored is not None or attempt.is_gone or record.status in _SILENT
    if stored is None:
        stored, moment = await _ask(desk.nodes, attempt, query.tail)
        if not stored.content:  # what the node had of it may have come meanwhile
            async with platform.database.read() as connection:
                late = await batch.get_log(connection, attempt.container_id)
            stored = late or stored
    else:
        live = live and not attempt.is_gone
    lines = stored.content.decode("utf-8", "replace").splitlines(keepends=True)
    place = Place(session_id, attempt.container_id, attempt.agent_id, attempt.agent_url)
    return SessionLog(
        session_id=session_id,
        attempt=number,
        text="".join(lines[-query.tail :]),
        clipped=stored.clipped or len(lines) > query.tail,
        live=live,
        followed=query.follow
        and live
        and (quiet or desk.follow(principal.id, place, moment)),
    )


async def _ask(
    nodes: AgentClient | None, attempt: Attempt, tail: int
) -> tuple[StoredLog, int | None]:
    if attempt.is_gone or nodes is None or not attempt.agent_url:
        return StoredLog(content=b"", clipped=False), None
    try:
        content, moment = await nodes.read_log(
            attempt.agent_id,
            attempt.agent_url,
            container=attempt.container_id,
            tail=min(tail + 1, MOST_LINES),
        )
    except AgentUnreachableError as error:
        raise UnavailableError(
            "the node on which this session runs does not tell what it prints"
            f" ({error}); try again in a few seconds",
            retry_after=3,
        ) from error
    return StoredLog(content=content, clipped=len(content) >= LOG_BYTES), moment
