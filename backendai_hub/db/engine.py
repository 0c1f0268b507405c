"""The database: one unit of work for everything, on SQLite and PostgreSQL.

``async with database.transaction() as tx`` is the only way to write. Events and acts
are noted on the transaction and written at its end, with the change they are of;
wake-ups asked for on it happen after the commit. On SQLite every write transaction is
``BEGIN IMMEDIATE``, because the busy timeout does not cover the upgrade of a read lock.
"""

from __future__ import annotations

import asyncio
import os
import select as polling
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterator,
)
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Executable, bindparam, event, func, insert, literal, select
from sqlalchemy.engine import CursorResult, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from backendai_hub.core.audit import Act
from backendai_hub.core.errors import UnavailableError
from backendai_hub.core.events import Event
from backendai_hub.db import chain
from backendai_hub.db.kept import Kept
from backendai_hub.db.tables import EventRow, VersionRow
from backendai_hub.db.versions import Changes, Versions

Thing = TypeVar("Thing")

_EVENT_LOCK: Final = 0x6261_6576
"""PostgreSQL advisory lock: events get their numbers in the order of commits."""
_TENANCY_LOCK: Final = 0x6261_6974
LEADER: Final = "leader"
"""The counter of leaderships (:mod:`.leader`) among the versions."""
LABEL: Final = "backendai-hub "
"""How the connections of each service begin their name on the server."""

_SPARED: Final = 2
"""Connections that are kept for who must not queue up behind everybody."""
_IS_SPARED: Final = ContextVar("is_spared", default=False)
_GLANCERS: Final = 5
"""Connections for single statements; each is needed for about a millisecond."""


# Statements of every transaction, made once: that takes longer than their answer.
_EVENTS: Final = insert(EventRow)
_QUEUED_UP: Final = select(func.pg_advisory_xact_lock(_EVENT_LOCK))
_LEADS: Final = (VersionRow.name == LEADER, VersionRow.value == bindparam("epoch"))
_LED: Final = select(literal(1)).where(*_LEADS).with_for_update(read=True)
_LED_AND_QUEUED_UP: Final = _QUEUED_UP.where(*_LEADS).with_for_update(read=True)


class OvertakenError(UnavailableError):
    """Another service has taken over; nothing of this one counts any more."""

    code = "overtaken"
    title = "Another hub service has taken over"


class Transaction:
    """One unit of work: statements, the facts they make true, and who to wake."""

    def __init__(
        self, connection: AsyncConnection, now: datetime, changes: Changes
    ) -> None:
        self.connection = connection
        self.now = now
        self.changes = changes
        self.events: list[Event] = []
        self.acts: list[Act] = []
        self.wakes: set[str] = set()

    async def execute(
        self,
        statement: Executable,
        rows: list[dict[str, Any]] | None = None,
        *,
        owner: str | Collection[str] | None = None,
        ids: Collection[str] | None = None,
    ) -> CursorResult[Any]:
        """Run one statement; where it changes some people's sessions only, whose.

        *ids* are the sessions, nodes, devices or images it changes, as far as that
        means anything to the scheduler; without them, it may be any.
        """
        self.changes.note(statement, owner, ids)
        if rows is None:
            return await self.connection.execute(statement)
        return await self.connection.execute(statement, rows)

    def record(self, happened: Event) -> None:
        """Write *happened* when, and only if, this transaction commits."""
        self.events.append(happened)

    def audit(self, act: Act) -> None:
        """Write *act* when, and only if, this transaction commits."""
        self.acts.append(act)

    def wake(self, *names: str) -> None:
        """Wake these waiters after the commit."""
        self.wakes.update(names)

    async def alone(self) -> None:
        """Let no other change of tenancy run until this transaction ends.

        Administrators' changes are rare and look at much before they write: that
        nobody is left in a domain, that one default remains, that somebody is still a
        superadmin. One after the other, what they have seen stays true. On SQLite
        every writing transaction is alone anyway.
        """
        if self.connection.dialect.name == "postgresql":
            await self.connection.execute(
                select(func.pg_advisory_xact_lock(_TENANCY_LOCK))
            )

    async def confirm(self, epoch: int | None) -> None:
        """See that nobody has taken over from who writes this, until the commit.

        A successor's turn begins by changing the row that is held here, so it waits
        for a transaction that has come so far, and refuses every later one. In the
        same statement, writers of events queue up: facts get their numbers in the
        order of commits.
        """
        if self.connection.dialect.name != "postgresql":
            return
        if epoch is None:
            if self.events:
                await self.connection.execute(_QUEUED_UP)
            return
        held = _LED_AND_QUEUED_UP if self.events else _LED
        found = await self.connection.execute(held, {"epoch": epoch})
        if found.first() is None:
            raise OvertakenError(
                "another hub service has taken over this database meanwhile; nothing"
                " was changed, ask again",
                retry_after=3,
            )

    async def flush_events(self) -> None:
        """Write the recorded facts; the last statements of the transaction."""
        if not self.events:
            return
        await self.connection.execute(
            _EVENTS,
            [
                {
                    "at": self.now,
                    "kind": str(e.kind),
                    "text": e.text,
                    "actor": e.actor,
                    "session_id": e.session_id,
                    "owner_id": e.owner_id,
                    "agent_id": e.agent_id,
                    "status": e.status,
                    "folder_id": e.folder_id,
                }
                for e in self.events
            ],
        )
        self.wakes.add("events")

    async def flush_acts(self, key: bytes | None) -> None:
        """Write the acts into the chain; after the events, always in this order."""
        if not self.acts:
            return
        if key is None:
            raise chain.NoAuditKeyError(
                "this database was opened without the key of its audit, so nothing"
                " that has to be written there can be done"
            )
        await chain.append(self.connection, key, self.acts, self.now)


def _tell_time() -> datetime:
    """Tell the time to the millisecond, as the API shows it and reads it back.

    A cursor that is coarser than what it points at would skip its neighbours.
    """
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class Database:
    """An engine, its clock, and the one door to a transaction."""

    def __init__(
        self,
        url: str,
        *,
        wake: Callable[[str], None] = lambda name: None,
        clock: Callable[[], datetime] = _tell_time,
        pool_size: int = 20,
        audit_key: bytes | None = None,
    ) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.clock = clock
        self.audit_key = audit_key
        """The key of the chain of acts; without it, no act can be written."""
        self.versions = Versions()
        self.kept = Kept(self.versions)
        self.label = f"{LABEL}{os.getpid()} {os.urandom(8).hex()}"
        """The name of this process's connections, by which the server tells them."""
        self.epoch: int | None = None
        """The leadership that writes here have to be made under, if there are any."""
        self.overtaken = asyncio.Event()
        """Set once a write was refused because another service has taken over."""
        self._wake = wake
        # SQLite lets one writer in; queueing here is fair and wakes at once, while
        # its own busy handler sleeps and polls.
        self._writer = asyncio.Lock() if self.is_sqlite else None
        self.engine = self._create_engine(pool_size)
        self._spared = self.engine if self.is_sqlite else self._create_engine(_SPARED)
        # The pool would give a connection to whoever comes, not to who waits longest.
        self._turns = asyncio.Semaphore(_GLANCERS)
        self._glancing = (
            self.engine
            if self.is_sqlite
            else self._create_engine(_GLANCERS, isolation_level="AUTOCOMMIT")
        )

    def _create_engine(self, pool_size: int, **options: Any) -> AsyncEngine:
        if not self.is_sqlite:
            engine = create_async_engine(
                self.url,
                pool_size=pool_size,
                # One above the size would be opened and closed for each use.
                max_overflow=0,
                pool_use_lifo=True,
                connect_args={
                    "options": "-c timezone=UTC",
                    "application_name": self.label,
                },
                json_deserializer=msgspec.json.decode,
                **options,
            )
            event.listen(engine.sync_engine, "checkout", _check_still_open)
            return engine
        engine = create_async_engine(
            self.url, connect_args={"timeout": 30}, pool_size=pool_size
        )
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Let what is done inside wait for no connection that others use.

        On PostgreSQL: SQLite has one writer, whoever it is.
        """
        token = _IS_SPARED.set(True)
        try:
            yield
        finally:
            _IS_SPARED.reset(token)

    def _connect(self) -> AsyncConnection:
        engine = self._spared if _IS_SPARED.get() else self.engine
        return engine.connect()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a write transaction; leaving it commits, an exception rolls back."""
        if self._writer is None:
            async with self._begin() as tx:
                yield tx
        else:
            async with self._writer, self._begin() as tx:
                yield tx
        asking = chain.ASKING.get()
        if asking is not None:
            asking.written += len(tx.acts)
        for name in tx.wakes:
            self._wake(name)

    @asynccontextmanager
    async def _begin(self) -> AsyncIterator[Transaction]:
        async with (
            self.versions.following() as changes,
            self._connect() as connection,
        ):
            await connection.execution_options(backendai_write=True)
            async with connection.begin():
                tx = Transaction(connection, self.clock(), changes)
                yield tx
                await self._confirm(tx)
                await tx.flush_events()
                await tx.flush_acts(self.audit_key)

    async def _confirm(self, tx: Transaction) -> None:
        if not (tx.changes.written or tx.events or tx.acts):
            return
        try:
            await tx.confirm(self.epoch)
        except OvertakenError:
            self.overtaken.set()
            raise

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection that only reads, with one consistent view."""
        async with self._connect() as connection:
            if not self.is_sqlite:
                # By default each statement would have a view of its own.
                await connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @asynccontextmanager
    async def glance(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection for one statement, which is a consistent view by itself.

        Nothing has to be begun or ended around it: two round trips less.
        """
        async with self._turns, self._glancing.connect() as connection:
            yield connection

    async def recall(
        self,
        key: Hashable,
        read: Callable[[AsyncConnection], Awaitable[Thing]],
        tables: Collection[str] = (),
    ) -> Thing:
        """Return what *read* has found, as long as nothing it looks at has changed.

        That is who somebody is and what they may do, always, and these *tables*.
        """

        async def look() -> Thing:
            async with self.glance() as connection:
                return await read(connection)

        return await self.kept.recall(key, look, tables)

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()
        await self._spared.dispose()
        await self._glancing.dispose()


def _check_still_open(connection: Any, record: Any, proxy: Any) -> None:
    """Notice that the server has hung up, without asking it anything.

    It says nothing to a connection at rest but goodbye, so something to read means
    that it has restarted: the connections of before are of no more use.
    """
    del record, proxy
    watch = polling.poll()
    watch.register(connection.driver_connection.fileno(), polling.POLLIN)
    if watch.poll(0):
        raise InvalidatePoolError


def _prepare_sqlite(connection: Any, record: Any) -> None:
    del record
    # The driver's own transaction handling would begin lazily and deferred.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "busy_timeout=30000",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    write = connection.get_execution_options().get("backendai_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
