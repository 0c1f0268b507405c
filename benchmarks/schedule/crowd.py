"""Many sessions that wait for a quota, written straight into the tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, create_engine, insert, select, text, update

from backendai_hub.core.ids import make_id
from backendai_hub.core.sessions import WAITING_WORDS, SessionStatus
from backendai_hub.db.tables import ProjectRow, SessionRow

CHUNK = 5000
_SESSIONS, _PROJECTS = SessionRow.__table__, ProjectRow.__table__


def fill(db_url: str, pattern_id: str, total: int) -> None:
    """Store *total* sessions after a pattern, in a project that may not have anything.

    They have come earlier than everybody else, and so stand before them.
    """
    engine = create_engine(db_url)
    try:
        with engine.begin() as connection:
            found = connection.execute(
                select(_SESSIONS).where(_SESSIONS.c.id == pattern_id)
            )
            pattern = dict(found.mappings().one())
            project = _make_project(connection, pattern["project_id"])
            rows = _make_rows({**pattern, "project_id": project}, total)
            while chunk := list(islice(rows, CHUNK)):
                connection.execute(insert(SessionRow), chunk)
            connection.execute(
                update(SessionRow)
                .where(_SESSIONS.c.id == pattern_id)
                .values(status="CANCELLED", ended_at=pattern["created_at"])
            )
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as now:
            now.execute(text("VACUUM ANALYZE sessions"))
    finally:
        engine.dispose()


def _make_project(connection: Connection, pattern_id: str) -> str:
    found = connection.execute(select(_PROJECTS).where(_PROJECTS.c.id == pattern_id))
    made = make_id(int(datetime.now(UTC).timestamp() * 1000), os.urandom(10))
    names = {"name": "crowd", "name_key": "crowd"}
    limits = {"total_resource_slots": {"cpu": 0}}
    row = {**found.mappings().one(), **names, **limits, "id": made}
    connection.execute(insert(ProjectRow), [row])
    return made


def _make_rows(pattern: dict[str, Any], total: int) -> Iterator[dict[str, Any]]:
    for number in range(total):
        born = pattern["created_at"] - timedelta(milliseconds=10 * (total - number))
        session_id = make_id(int(born.timestamp() * 1000), os.urandom(10))
        yield {
            **pattern,
            "id": session_id,
            "name": f"crowd-{number}",
            "status": str(SessionStatus.PENDING),
            "reason": WAITING_WORDS[SessionStatus.PENDING],
            "server": f"crowd-{number}",
            "prefix": f"/user/crowd/{number}/",
            "idempotency_key": session_id,
            "created_at": born,
            "scheduled_at": None,
            "started_at": None,
            "ended_at": None,
            "deadline_at": None,
            "agent_id": None,
            "ready": True,
        }
