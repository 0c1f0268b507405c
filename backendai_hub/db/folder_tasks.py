"""What is to be done to folders on disk: the intent, its progress, and its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import and_, delete, insert, or_, select, type_coerce, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import func

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import LimitReachedError
from backendai_hub.core.times import format_time
from backendai_hub.core.vfolders import FolderTask, TaskKind, TaskState
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import FolderRow, FolderTaskRow
from backendai_hub.db.tables.base import UtcTime

OPEN = (str(TaskState.PENDING), str(TaskState.RUNNING))


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it is stored; ``arguments`` are its kind's own."""

    id: str
    kind: TaskKind
    folder_id: str
    user_id: str | None
    actor: str
    state: TaskState
    done: int
    total: int | None
    unit: str
    error: str
    arguments: dict[str, Any]
    attempts: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    def show(self) -> FolderTask:
        """Return what the API shows of it."""
        return FolderTask(
            id=self.id,
            kind=str(self.kind),
            folder_id=self.folder_id,
            state=str(self.state),
            done=self.done,
            total=self.total,
            unit=self.unit,
            error=self.error,
            created_at=format_time(self.created_at) or "",
            started_at=format_time(self.started_at),
            ended_at=format_time(self.ended_at),
        )


_TASKS = FolderTaskRow.__table__
MOST_OPEN: Final = 50
"""Tasks that one person may have begun and that have not ended."""
_COUNTED: Final = (
    TaskKind.CLONE,
    TaskKind.COPY,
    TaskKind.EXTRACT,
    TaskKind.EMPTY_TRASH,
)


def _read(row: Any) -> TaskRecord:
    return msgspec.convert(dict(row), TaskRecord)


async def insert_task(
    tx: Transaction,
    task_id: str,
    kind: TaskKind,
    folder_id: str,
    *,
    who: Principal | None = None,
    arguments: dict[str, Any] | None = None,
) -> None:
    """Store what is to be done, and for whom; nobody is the platform itself.

    Raises :class:`LimitReachedError` for who has asked for too much already.
    """
    if who is not None and kind in _COUNTED:
        await _refuse_too_many(tx, who.id)
    await tx.execute(
        insert(FolderTaskRow).values(
            id=task_id,
            kind=str(kind),
            folder_id=folder_id,
            user_id=None if who is None else who.id,
            actor="system" if who is None else who.name,
            arguments=arguments or {},
            created_at=tx.now,
        )
    )
    tx.wake("folders")


async def _refuse_too_many(tx: Transaction, user_id: str) -> None:
    row = FolderTaskRow
    query = select(func.count()).where(
        row.user_id == user_id,
        row.state.in_(OPEN),
        row.kind.in_([str(kind) for kind in _COUNTED]),
    )
    begun = await tx.connection.scalar(query) or 0
    if begun >= MOST_OPEN:
        raise LimitReachedError(
            f"you have {begun} tasks that have not ended; the most is {MOST_OPEN}: wait"
            " for some of them, or cancel them",
            limit=MOST_OPEN,
            used=begun,
        )


def in_turn(tasks: Collection[TaskRecord]) -> list[TaskRecord]:
    """Put everybody's first task before anybody's second, and so on."""
    had: Counter[str] = Counter()
    ranked = []
    for task in tasks:
        whose = task.user_id or task.id
        ranked.append((had[whose], task.id, task))
        had[whose] += 1
    return [task for _, _, task in sorted(ranked, key=itemgetter(0, 1))]


async def find_task(
    connection: AsyncConnection, task_id: str, *, lock: bool = False
) -> TaskRecord | None:
    """Find one task."""
    query = select(_TASKS).where(FolderTaskRow.id == task_id)
    if lock:
        query = query.with_for_update()
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _read(row)


async def list_open(
    connection: AsyncConnection,
    *,
    folder_ids: Collection[str] | None = None,
    kinds: Collection[TaskKind] | None = None,
    ids: Collection[str] | None = None,
) -> list[TaskRecord]:
    """List what is not done yet, the oldest first."""
    query = select(_TASKS).where(FolderTaskRow.state.in_(OPEN))
    if folder_ids is not None:
        query = query.where(FolderTaskRow.folder_id.in_(sorted(folder_ids)))
    if kinds is not None:
        query = query.where(FolderTaskRow.kind.in_([str(k) for k in kinds]))
    if ids is not None:
        query = query.where(FolderTaskRow.id.in_(sorted(ids)))
    rows = await connection.execute(query.order_by(FolderTaskRow.id))
    return [_read(row) for row in rows.mappings()]


async def find_busy(connection: AsyncConnection, folder_id: str) -> TaskRecord | None:
    """Find something that is done in a folder, or with what is in it, and not over."""
    row = FolderTaskRow
    copied = and_(
        row.kind == str(TaskKind.CLONE),
        row.arguments["source"].as_string() == folder_id,
    )
    query = (
        select(_TASKS)
        .where(row.state.in_(OPEN), or_(row.folder_id == folder_id, copied))
        .order_by(row.id)
        .limit(1)
    )
    found = (await connection.execute(query)).mappings().first()
    return None if found is None else _read(found)


async def find_last_failures(
    connection: AsyncConnection, kind: TaskKind, folder_ids: Collection[str]
) -> dict[str, TaskRecord]:
    """Return the last task of a kind that the platform itself began and that failed.

    It is remembered for some days, by the folder it was about.
    """
    row = FolderTaskRow
    query = select(_TASKS).where(
        row.kind == str(kind),
        row.folder_id.in_(sorted(folder_ids)),
        row.user_id.is_(None),
        row.state == str(TaskState.FAILED),
    )
    rows = await connection.execute(query.order_by(row.ended_at, row.id))
    return {row["folder_id"]: _read(row) for row in rows.mappings()}


async def find_hosts(
    connection: AsyncConnection, tasks: Collection[TaskRecord]
) -> dict[str, str]:
    """Return the storage host that each task is about; of some nobody knows it."""
    query = select(FolderRow.id, FolderRow.host).where(
        FolderRow.id.in_(
            select(FolderTaskRow.folder_id).where(FolderTaskRow.state.in_(OPEN))
        )
    )
    host_of = {row.id: row.host for row in await connection.execute(query)}
    return {
        task.id: host_of.get(task.folder_id, str(task.arguments.get("host", "")))
        for task in tasks
    }


async def list_tasks(
    connection: AsyncConnection,
    condition: Any,
    *,
    after: str | None,
    limit: int,
) -> list[TaskRecord]:
    """List tasks, the newest first."""
    query = select(_TASKS).where(condition)
    if after is not None:
        query = query.where(FolderTaskRow.id < after)
    rows = await connection.execute(
        query.order_by(FolderTaskRow.id.desc()).limit(limit)
    )
    return [_read(row) for row in rows.mappings()]


async def begin_task(tx: Transaction, task: TaskRecord) -> bool:
    """Note that somebody works on a task now; tell whether it is still to be done."""
    begun = await tx.execute(
        update(FolderTaskRow)
        .where(FolderTaskRow.id == task.id, FolderTaskRow.state.in_(OPEN))
        .values(
            state=str(TaskState.RUNNING),
            attempts=FolderTaskRow.attempts + 1,
            started_at=func.coalesce(FolderTaskRow.started_at, tx.now),
        )
    )
    return bool(begun.rowcount)


async def note_progress(
    tx: Transaction, task_id: str, *, done: int, total: int | None, unit: str
) -> None:
    """Note how far a task is."""
    await tx.execute(
        update(FolderTaskRow)
        .where(FolderTaskRow.id == task_id, FolderTaskRow.state.in_(OPEN))
        .values(done=done, total=total, unit=unit)
    )


async def end_task(
    tx: Transaction, task_id: str, state: TaskState, *, error: str = "", **more: Any
) -> bool:
    """End a task, unless it has ended; tell whether this was its end."""
    ended = await tx.execute(
        update(FolderTaskRow)
        .where(FolderTaskRow.id == task_id, FolderTaskRow.state.in_(OPEN))
        .values(state=str(state), error=error[:2000], ended_at=tx.now, **more)
    )
    return bool(ended.rowcount)


async def forget_tasks(tx: Transaction, days: int) -> int:
    """Remove tasks that have ended so many days ago."""
    gone = await tx.execute(
        delete(FolderTaskRow).where(
            and_(
                FolderTaskRow.state.not_in(OPEN),
                FolderTaskRow.ended_at < tx.now - timedelta(days=days),
            )
        )
    )
    return int(gone.rowcount)


def is_about(user_id: str, folder_ids: Any) -> Any:
    """Build the condition that a task is somebody's, or about a folder they see."""
    return or_(
        FolderTaskRow.user_id == user_id, FolderTaskRow.folder_id.in_(folder_ids)
    )


async def read_time(connection: AsyncConnection) -> datetime:
    """Return what time it is by the database's own clock.

    What is removed because of its age is not removed because the clock of the machine
    that the service runs on was wrong.
    """
    now = await connection.scalar(select(type_coerce(func.now(), UtcTime())))
    assert isinstance(now, datetime)
    return now
