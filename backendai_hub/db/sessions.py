"""Sessions as the operations see them: one read, made or changed; and their secrets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import NotFoundError, StaleRevisionError
from backendai_hub.core.quotas import ScopeKind, charge
from backendai_hub.core.sessions import (
    DEADLINES,
    STARTING,
    TERMINAL,
    SessionStatus,
    SessionType,
    check_can_become,
)
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import ImageRow, SecretRow, SessionRow, UserRow


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One session as the operations see it: ids instead of names."""

    id: str
    name: str
    type: str
    owner_id: str
    domain_id: str
    project_id: str
    keypair_id: str | None = None
    resource_group_id: str | None = None
    image_id: str | None = None
    priority: int = 10
    image: str
    slots: dict[str, int]
    shmem: int
    status: SessionStatus
    reason: str
    agent_id: str | None
    server: str | None
    prefix: str | None
    ready: bool
    exit_code: int | None
    idempotency_key: str
    request_hash: str
    revision: int
    created_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    deadline_at: datetime | None
    result: str = "undefined"
    batch_timeout: int | None = None
    starts_at: datetime | None = None
    max_attempts: int = 1
    requeues: int = 0
    tag: str | None = None
    job_priority: int = 0
    is_preemptible: bool = True
    preemptions: int = 0
    agents: list[str] = []
    preferred_agents: list[str] = []
    labels: dict[str, str] = {}
    cluster_size: int = 1
    cluster_mode: str = "single-node"
    cluster_strategy: str | None = None
    ends_as: str | None = None

    @property
    def scopes(self) -> tuple[tuple[ScopeKind, str], ...]:
        """The scopes whose use this session counts in."""
        tenants = (
            (ScopeKind.DOMAIN, self.domain_id),
            (ScopeKind.PROJECT, self.project_id),
            (ScopeKind.USER, self.owner_id),
        )
        if self.keypair_id is None:
            return tenants
        return (*tenants, (ScopeKind.KEYPAIR, self.keypair_id))

    @property
    def each(self) -> ResourceSlots:
        """What each of its containers asks for."""
        return ResourceSlots(self.slots)

    @property
    def request(self) -> ResourceSlots:
        """What it asks for in all."""
        size = self.cluster_size
        return ResourceSlots({slot: n * size for slot, n in self.slots.items()})

    @property
    def is_cluster(self) -> bool:
        """Whether it has several containers."""
        return self.cluster_size > 1

    @property
    def is_system(self) -> bool:
        """Whether it is the platform's own, and counts only as such."""
        return self.type == str(SessionType.SYSTEM)

    @property
    def is_batch(self) -> bool:
        """Whether it runs one command, and has a result then."""
        return self.type == str(SessionType.BATCH)

    @property
    def is_leased(self) -> bool:
        """Whether it stops by itself when its node has lost us."""
        return self.is_batch and self.max_attempts > 1

    @property
    def may_start_again(self) -> bool:
        """Whether another attempt follows if this one is lost."""
        begun = STARTING | {SessionStatus.RUNNING}
        return (
            self.is_batch
            and self.status in begun
            and self.requeues + 1 < self.max_attempts
        )

    @property
    def charge(self) -> ResourceSlots:
        """What it counts in each of its scopes while it is placed."""
        return charge(self.request, system=self.is_system)


_TABLE = SessionRow.__table__


def record_of(mapping: Any) -> SessionRecord:
    """Make the record of a row of sessions."""
    values = dict(mapping)
    values["status"] = SessionStatus(values["status"])
    return SessionRecord(**values)


_INSERT: Final = insert(SessionRow)


async def insert_session(tx: Transaction, record: SessionRecord) -> None:
    """Store a new session."""
    values = msgspec.structs.asdict(record)
    await tx.execute(_INSERT, [values], owner=record.owner_id, ids=[record.id])


async def get_record(
    connection: AsyncConnection, session_id: str, *, lock: bool = False
) -> SessionRecord:
    """Read one session; with ``lock``, keep others from changing it meanwhile."""
    query = select(_TABLE).where(SessionRow.id == session_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).first()
    if row is None:
        raise NotFoundError(f"there is no session {session_id}")
    return record_of(row._mapping)


_LOCKED: Final = (
    select(_TABLE)
    .where(SessionRow.id.in_(bindparam("ids", expanding=True)))
    .order_by(SessionRow.id)
    .with_for_update()
)


async def lock_records(
    connection: AsyncConnection, ids: Collection[str]
) -> dict[str, SessionRecord]:
    """Read several sessions and keep others from changing them, in the order of ids."""
    rows = await connection.execute(_LOCKED, {"ids": list(ids)})
    return {row.id: record_of(row._mapping) for row in rows}


async def get_records(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, tuple[SessionRecord, str]]:
    """Read several sessions, each with its owner's name, by id."""
    query = (
        select(_TABLE, UserRow.name.label("owner_name"))
        .join(UserRow, UserRow.id == SessionRow.owner_id)
        .where(SessionRow.id.in_(ids))
    )
    found = {}
    for row in (await connection.execute(query)).mappings():
        values = dict(row)
        owner = values.pop("owner_name")
        found[values["id"]] = (record_of(values), owner)
    return found


def is_live() -> Any:
    """Build the condition that a session has not ended."""
    return SessionRow.status.not_in([str(s) for s in TERMINAL])


async def find_images(tx: Transaction) -> None:
    """Give waiting sessions that know their environment by name only its row."""
    named = (
        select(ImageRow.id)
        .where(ImageRow.status == "ALIVE", ImageRow.name == SessionRow.image)
        .order_by(ImageRow.architecture.desc())
        .limit(1)
        .scalar_subquery()
    )
    await tx.execute(
        update(SessionRow)
        .where(
            SessionRow.image_id.is_(None),
            SessionRow.status == str(SessionStatus.PENDING),
        )
        .values(image_id=named)
    )


async def move_session(
    tx: Transaction, record: SessionRecord, status: SessionStatus, **changes: Any
) -> SessionRecord:
    """Move *record* to *status*, if nobody has changed it since it was read."""
    check_can_become(record.id, record.status, status)
    seconds = DEADLINES.get(status)
    values: dict[str, Any] = {
        "status": status,
        "deadline_at": None if seconds is None else tx.now + timedelta(seconds=seconds),
        **changes,
    }
    if status is SessionStatus.SCHEDULED:
        values["scheduled_at"] = tx.now
    if status is SessionStatus.RUNNING:
        values["started_at"] = tx.now
    if status in TERMINAL:
        values["ended_at"] = tx.now
    return await change_session(tx, record, **values)


_SCHEDULED: Final = (
    update(SessionRow)
    .where(
        SessionRow.id == bindparam("of_id"),
        SessionRow.revision == bindparam("of_revision"),
    )
    .values(
        status=str(SessionStatus.SCHEDULED),
        reason=bindparam("words"),
        agent_id=bindparam("on_agent"),
        scheduled_at=bindparam("now"),
        deadline_at=bindparam("until"),
        revision=SessionRow.revision + 1,
    )
)


async def schedule_sessions(
    tx: Transaction, placed: Sequence[tuple[SessionRecord, str, str]]
) -> None:
    """Give locked sessions that wait their nodes: (session, node's id, reason) each."""
    for record, _, _ in placed:
        check_can_become(record.id, record.status, SessionStatus.SCHEDULED)
    seconds = DEADLINES[SessionStatus.SCHEDULED] or 0.0
    changed = await tx.execute(
        _SCHEDULED,
        [
            {
                "now": tx.now,
                "until": tx.now + timedelta(seconds=seconds),
                "of_id": record.id,
                "of_revision": record.revision,
                "words": reason,
                "on_agent": agent_id,
            }
            for record, agent_id, reason in placed
        ],
        owner={record.owner_id for record, _, _ in placed},
        ids={record.id for record, _, _ in placed},
    )
    if changed.rowcount != len(placed):
        raise StaleRevisionError("some of these sessions were changed meanwhile")


async def explain_sessions(
    tx: Transaction, news: Sequence[tuple[SessionRecord, str]]
) -> None:
    """Give waiting sessions new reasons; one that has moved on meanwhile keeps its."""
    await tx.execute(
        update(SessionRow)
        .where(
            SessionRow.id == bindparam("of_id"),
            SessionRow.revision == bindparam("of_revision"),
        )
        .values(reason=bindparam("words"), revision=SessionRow.revision + 1),
        [
            {"of_id": record.id, "of_revision": record.revision, "words": reason}
            for record, reason in news
        ],
        owner={record.owner_id for record, _ in news},
        ids={record.id for record, _ in news},
    )


async def change_session(
    tx: Transaction, record: SessionRecord, **values: Any
) -> SessionRecord:
    """Change fields of *record*, if nobody has changed it since it was read."""
    values["revision"] = record.revision + 1
    changed = await tx.execute(
        update(SessionRow)
        .where(SessionRow.id == record.id, SessionRow.revision == record.revision)
        .values(**values),
        owner=record.owner_id,
        ids=[record.id],
    )
    if changed.rowcount == 0:
        raise StaleRevisionError(f"session {record.id} was changed meanwhile")
    return msgspec.structs.replace(record, **values)


async def replace_secret(tx: Transaction, session_id: str, ciphertext: bytes) -> None:
    """Keep something else in place of what a session was to be born with."""
    await tx.execute(
        update(SecretRow)
        .where(SecretRow.session_id == session_id)
        .values(ciphertext=ciphertext)
    )


_SECRET: Final = insert(SecretRow)


async def put_secret(tx: Transaction, session_id: str, ciphertext: bytes) -> None:
    """Keep what a new session is born with."""
    await tx.execute(_SECRET, [{"session_id": session_id, "ciphertext": ciphertext}])


async def drop_secret(tx: Transaction, session_id: str) -> None:
    """Forget what an ended session was born with."""
    await tx.execute(delete(SecretRow).where(SecretRow.session_id == session_id))


async def get_secrets(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, bytes]:
    """Read the encrypted secrets of these sessions."""
    rows = await connection.execute(
        select(SecretRow.session_id, SecretRow.ciphertext).where(
            SecretRow.session_id.in_(ids)
        )
    )
    return {session_id: bytes(ciphertext) for session_id, ciphertext in rows}
