"""Sessions that nobody uses end when their keypair policy says so."""

from __future__ import annotations

import logging
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.durations import describe_duration
from backendai_hub.core.idleness import find_idle_end
from backendai_hub.core.sessions import WAITING_WORDS, SessionStatus
from backendai_hub.db import deadlines, sessions
from backendai_hub.db.deadlines import IdleLimit
from backendai_hub.db.engine import Transaction
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.platform import Platform

log = logging.getLogger("backendai_hub.operations.idleness")


async def end_idle(platform: Platform) -> int:
    """End every interactive session that was unused for too long; return how many.

    Policies are asked anew each time, so that a change of them counts at once. Where
    it is unknown whether a session is used, it goes on.
    """
    if platform.activity.is_blind:
        return 0
    async with platform.database.read() as connection:
        limits = await deadlines.list_idle_limits(connection)
    now = platform.database.clock()
    ended = 0
    for limit in limits:
        if _is_over(platform, limit, now):
            async with platform.database.transaction() as tx:
                ended += await _judge(platform, tx, limit.session_id)
    return ended


async def _judge(platform: Platform, tx: Transaction, session_id: str) -> bool:
    """Decide on one session, with what is true in this transaction."""
    record = await sessions.get_record(tx.connection, session_id, lock=True)
    for limit in await deadlines.list_idle_limits(tx.connection, session_id):
        if _is_over(platform, limit, tx.now):
            reason = _explain(limit, _choose_seconds(platform, limit))
            log.warning(
                "session %s of %s is ended: %s", limit.session_id, limit.user, reason
            )
            stopping = WAITING_WORDS[SessionStatus.TERMINATING]
            words = f"{reason}; {stopping}"
            await move(tx, record, SessionStatus.TERMINATING, words)
            return True
    return False


async def find_session_idle_end(
    platform: Platform, connection: AsyncConnection, session_id: str
) -> datetime | None:
    """Tell when a session ends unless it is used; None is never, or unknown."""
    now = platform.database.clock()
    limits = await deadlines.list_idle_limits(connection, session_id)
    return _find_end(platform, limits[0], now) if limits else None


def _is_over(platform: Platform, limit: IdleLimit, now: datetime) -> bool:
    ends = _find_end(platform, limit, now)
    return ends is not None and ends <= now


def _find_end(platform: Platform, limit: IdleLimit, now: datetime) -> datetime | None:
    activity = platform.activity.find((limit.user, limit.server), now=now)
    if activity is None:
        return None
    seconds = _choose_seconds(platform, limit)
    return find_idle_end(seconds, started_at=limit.started_at, activity=activity)


def _choose_seconds(platform: Platform, limit: IdleLimit) -> int:
    return platform.settings.idle_timeout if limit.seconds < 0 else limit.seconds


def _explain(limit: IdleLimit, seconds: int) -> str:
    unused = f"unused for {describe_duration(seconds)}"
    if limit.seconds < 0:
        return (
            f"{unused} (idle timeout of this site, to which the keypair policy"
            f" {limit.giver} leaves it)"
        )
    return f"{unused} (idle timeout of the keypair policy {limit.giver})"
