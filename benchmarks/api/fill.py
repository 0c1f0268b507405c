"""Fills the tables: many people, and sessions old and new for each of them."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, create_engine, func, insert, select, text, update

from backendai_hub.core.ids import make_id
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.tables import SessionRow
from tests.harness import Stack

CHUNK = 5000
_TABLE = SessionRow.__table__
_ENDED = [SessionStatus.TERMINATED, SessionStatus.ERROR, SessionStatus.CANCELLED]
_WEIGHTS = [90, 6, 4]
_SHAPES = [
    {"cpu": 1000, "mem": 1 << 30},
    {"cpu": 4000, "mem": 16 << 30, "cuda.device": 1000},
    {"cpu": 500, "mem": 3 << 29},
    {"cpu": 16000, "mem": 128 << 30, "cuda.device": 8000},
]


async def meet(stack: Stack, names: list[str]) -> None:
    """Let the service see everybody once, as their first login does."""
    for start in range(0, len(names), 8):
        await asyncio.gather(*(_meet(stack, n) for n in names[start : start + 8]))


async def _meet(stack: Stack, name: str) -> None:
    async with stack.client(name) as api:
        await api.get("api/me")


async def ask_for_one(stack: Stack, name: str) -> str:
    """Ask for a session as people do; the others are made after its pattern."""
    async with stack.client(name) as api:
        return str((await api.launch("pattern"))["id"])


def fill(db_url: str, pattern_id: str, names: list[str], total: int) -> None:
    """Store *total* sessions: each person's newest runs, the others have ended."""
    engine = create_engine(db_url)
    chance = random.Random(1)
    try:
        with engine.begin() as connection:
            found = connection.execute(select(_TABLE).where(_TABLE.c.id == pattern_id))
            pattern = dict(found.mappings().one())
            owners = list(_owners(connection, names))
            each = total // len(owners)
            rows = (
                _make_row(pattern, owner, number, each, chance)
                for number in range(each)
                for owner in owners
            )
            chunk: list[dict[str, Any]] = []
            for row in rows:
                chunk.append(row)
                if len(chunk) == CHUNK:
                    connection.execute(insert(_TABLE), chunk)
                    chunk = []
            if chunk:
                connection.execute(insert(_TABLE), chunk)
            connection.execute(text("DELETE FROM session_secrets"))
            connection.execute(
                update(_TABLE)
                .where(_TABLE.c.id == pattern_id)
                .values(status="CANCELLED", ended_at=pattern["created_at"])
            )
        tidy(db_url)
    finally:
        engine.dispose()


def _owners(connection: Connection, names: list[str]) -> Iterator[dict[str, str]]:
    """The columns that say whose a session is, whatever tenancy there is."""
    tables = _TABLE.metadata.tables
    users = tables["users"]
    query = select(users.c.id.label("owner_id"), users.c.name)
    if "keypair_id" in _TABLE.c:
        keypairs = tables["keypairs"]
        query = query.add_columns(keypairs.c.id.label("keypair_id")).join(
            keypairs, (keypairs.c.user_id == users.c.id) & keypairs.c.is_default
        )
    found = connection.execute(query.where(users.c.name.in_(names)))
    yield from (dict(row) for row in found.mappings())


def _make_row(
    pattern: dict[str, Any],
    owner: dict[str, str],
    number: int,
    each: int,
    chance: random.Random,
) -> dict[str, Any]:
    """Write one session, the older the smaller its number."""
    age = timedelta(hours=7 * (each - number), seconds=chance.uniform(0, 20000))
    born = datetime.now(UTC) - age
    session_id = make_id(int(born.timestamp() * 1000), os.urandom(10))
    newest = number == each - 1
    status = (
        SessionStatus.RUNNING if newest else chance.choices(_ENDED, weights=_WEIGHTS)[0]
    )
    began = None if status is SessionStatus.CANCELLED else born + timedelta(seconds=2)
    name = owner["name"]
    owned = {key: value for key, value in owner.items() if key != "name"}
    return {
        **pattern,
        **owned,
        "id": session_id,
        "name": f"work-{session_id[-6:]}",
        "status": str(status),
        "slots": chance.choice(_SHAPES),
        "reason": "" if newest else f"stopped by {name}",
        # A server that JupyterHub does not know would be started by the service.
        "server": None if newest else f"s-{session_id[-12:]}",
        "prefix": f"/user/{name}/s-{session_id[-12:]}/",
        "idempotency_key": session_id,
        "exit_code": 0 if status is SessionStatus.TERMINATED else None,
        "created_at": born,
        "scheduled_at": began,
        "started_at": began,
        "ended_at": None if newest else born + timedelta(hours=chance.uniform(0, 7)),
        "deadline_at": None,
    }


def clear_queue(db_url: str) -> int:
    """End what still waits, so that every turn finds the same queue: none."""
    engine = create_engine(db_url)
    try:
        with engine.begin() as connection:
            # The scheduler may be writing reasons just now: one after the other.
            connection.execute(text("LOCK TABLE sessions IN EXCLUSIVE MODE"))
            ended = connection.execute(
                update(_TABLE)
                .where(_TABLE.c.status == "PENDING")
                .values(
                    status="CANCELLED",
                    ended_at=datetime.now(UTC),
                    revision=_TABLE.c.revision + 1,
                )
            )
        tidy(db_url)
        return int(ended.rowcount)
    finally:
        engine.dispose()


def tidy(db_url: str) -> None:
    """Do what autovacuum would do a little later, in the middle of a turn."""
    engine = create_engine(db_url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text("VACUUM ANALYZE"))
    finally:
        engine.dispose()


def look(db_url: str) -> dict[str, Any]:
    """Say what is in the tables and how the server keeps it."""
    engine = create_engine(db_url)
    try:
        with engine.connect() as connection:
            counted = connection.execute(
                select(_TABLE.c.status, func.count()).group_by(_TABLE.c.status)
            )
            found: dict[str, Any] = {"sessions": dict(counted.tuples().all())}
            for name in ("server_version", "fsync", "synchronous_commit"):
                found[name] = connection.scalar(text(f"SHOW {name}"))
            return found
    finally:
        engine.dispose()
