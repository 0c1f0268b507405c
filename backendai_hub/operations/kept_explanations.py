"""Keeping why sessions wait, and telling those who listen when it is something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from backendai_hub.api.explanations import Why
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.times import format_time, tell_time
from backendai_hub.db import sessions
from backendai_hub.db.explanations import load_explanations, save_explanations
from backendai_hub.operations.platform import Platform

_NEAR: Final = 10
"""Up to this place in a queue, each one counts."""
_LEAST_MOVE: Final = 60.0
_SHARE: Final = 0.1
_NUMBERS: Final = re.compile(r"\d+")


async def keep_explanations(platform: Platform, told: Sequence[Why]) -> int:
    """Keep what differs from what was told before; return of how many sessions.

    Few enough that the transaction, which holds up others', is a short one.
    """
    async with platform.database.glance() as connection:
        known = await load_explanations(connection, [why.session for why in told])
    news = {
        why.session: why
        for why in told
        if why.session not in known or differs(known[why.session], why)
    }
    if not news:
        return 0
    async with platform.database.transaction() as tx:
        records = await sessions.lock_records(tx.connection, set(news))
        at = format_time(tx.now)
        # One that has just moved on does not wait any more.
        waiting = {
            i: replace(news[i], at=at)
            for i, record in records.items()
            if record.status is SessionStatus.PENDING
        }
        await save_explanations(tx, waiting)
        for session_id, why in waiting.items():
            record = records[session_id]
            tx.record(
                Event(
                    kind=EventKind.SESSION_WAITING,
                    text=f"{record.reason}; {tell_place(why)}",
                    session_id=session_id,
                    owner_id=record.owner_id,
                    status=record.status,
                )
            )
    return len(waiting)


def differs(old: Why, new: Why) -> bool:
    """Tell whether *new* says something else than *old*, and not only a little later.

    What is far away in the queue, or in time, counts only when it moves by a tenth.
    """
    same = replace(
        new,
        at=old.at,
        position=old.position,
        waiting=old.waiting,
        starts_at=old.starts_at,
        hangs_on=old.hangs_on,
    )
    return (
        same != old
        or _has_moved(old.position, new.position)
        or _is_shifted(old, new)
        or _NUMBERS.sub("#", old.hangs_on) != _NUMBERS.sub("#", new.hangs_on)
    )


def _has_moved(old: int | None, new: int | None) -> bool:
    if old is None or new is None or min(old, new) <= _NEAR:
        return old != new
    return abs(new - old) > old * _SHARE


def _is_shifted(old: Why, new: Why) -> bool:
    if old.starts_at is None or new.starts_at is None:
        return old.starts_at != new.starts_at
    before, after = map(datetime.fromisoformat, (old.starts_at, new.starts_at))
    left = 0.0 if old.at is None else _seconds(datetime.fromisoformat(old.at), before)
    return abs(_seconds(before, after)) > max(_LEAST_MOVE, left * _SHARE)


def _seconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()


def tell_place(why: Why) -> str:
    """Say where it stands in the queue, and when it starts as far as that is known."""
    place = f"place {why.position} of {why.waiting} in the queue"
    if why.starts_at is None:
        return place
    moment = tell_time(datetime.fromisoformat(why.starts_at))
    if why.at_the_earliest:
        return f"{place}, starts at {moment} at the earliest"
    return f"{place}, starts at {moment} if all others stay as long as they may"
