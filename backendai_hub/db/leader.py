"""One hub service per database, and nothing from the one that was before.

What a service keeps in memory (who people are, how often they have asked, who waits
for news) is right only as long as nobody else changes the database behind it. On
SQLite the lock of the data folder sees to that; PostgreSQL is shared by a network.
There, three things together do it:

- The *right to serve* is an advisory lock, which ends with the connection that holds
  it. Others stand by and try to get it.
- Whoever holds it speaks on that connection every other second. One that is *silent*
  (its process is stopped, its machine is gone but the network does not say so) has all
  its connections ended by those who stand by. Silence is judged by their own clocks.
- Each leadership has a number, the *epoch*, and every transaction that writes holds
  the row it stands in until its commit (:meth:`.engine.Transaction.confirm`). So what
  a predecessor still wants to write when it wakes up is refused.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import ConflictError
from backendai_hub.db.engine import LABEL, LEADER, Database
from backendai_hub.db.tables import VersionRow

log = logging.getLogger("backendai_hub.db.leader")

BEAT_SECONDS: Final = 2.0
"""How often the leader shows that it lives."""
PATIENCE_SECONDS: Final = 8.0
"""How long it may be silent."""

_LOCK: Final = 0x6261_696C
_TRY: Final = text("SELECT pg_try_advisory_lock(:key)").bindparams(key=_LOCK)
_LET_GO: Final = text("SELECT pg_advisory_unlock(:key)").bindparams(key=_LOCK)
_LOOK: Final = text(
    "SELECT a.pid, a.application_name, a.state_change FROM pg_locks l"
    " JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objid = :key"
    " AND l.classid = 0 AND l.objsubid = 1 AND l.database ="
    " (SELECT oid FROM pg_database WHERE datname = current_database())"
).bindparams(key=_LOCK)
_END: Final = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND (pid = :pid OR application_name = :label)"
)
_END_WRITERS: Final = text(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'relation'"
    " AND relation = 'versions'::regclass AND mode = 'RowShareLock'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND pid <> pg_backend_pid()"
)
_HURRY: Final = text("SET lock_timeout = '1s'")


class AnotherServiceError(ConflictError):
    """Another hub service works on this database."""

    code = "another-service"
    title = "Another hub service works on this database"


class _Holder(NamedTuple):
    """Who holds the right to serve, and when they last said something."""

    pid: int
    label: str
    spoke: object


class Leadership:
    """The right to serve a database, held until it is closed or lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: AsyncConnection | None = None
        self._seen: _Holder | None = None
        self._seen_since = 0.0

    async def take(
        self,
        *,
        tries: int | None = None,
        pause: float = 1.0,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """Take it, standing by until whoever has it ends or falls silent.

        With *tries*, raises :class:`AnotherServiceError` if somebody else keeps it.
        """
        if self._database.is_sqlite:
            return
        attempt = 0
        while not await self._try(forgiving=attempt > 0):
            attempt += 1
            if attempt == tries:
                raise AnotherServiceError(
                    "another hub service works on this database; stop it first, or give"
                    " this one a database of its own"
                )
            if attempt == 1:
                log.info("another hub service serves this database; standing by")
            with suppress(DBAPIError):
                await self._depose(patience)
            await asyncio.sleep(pause)

    async def begin(self) -> None:
        """Begin a new epoch: from now on, nobody's writes count but this service's.

        The tables have to be there. A transaction that a predecessor has left open in
        its last step is ended.
        """
        if self._connection is None:
            return
        row = insert(VersionRow).values(name=LEADER, value=1)
        row = row.on_conflict_do_update(
            index_elements=[VersionRow.name], set_={"value": VersionRow.value + 1}
        )
        await self._connection.execute(_HURRY)
        while True:
            try:
                epoch = await self._connection.scalar(row.returning(VersionRow.value))
                break
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", "") != "55P03":  # not the timeout
                    raise
                await self._connection.execute(_END_WRITERS)
        self._database.epoch = int(epoch or 0)

    async def _try(self, *, forgiving: bool = False) -> bool:
        """Try to get the right; *forgiving*, a database that is away is no error."""
        try:
            return await self._ask()
        except DBAPIError:
            if forgiving:
                return False
            raise

    async def _ask(self) -> bool:
        connection = await self._database.engine.connect()
        try:
            # Outside of any transaction: the lock belongs to the connection.
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            if await connection.scalar(_TRY):
                self._connection = connection
                return True
        except BaseException:
            await connection.close()
            raise
        await connection.close()
        return False

    async def _depose(self, patience: float) -> None:
        """End the connections of a holder who has been silent for too long."""
        async with self._database.glance() as connection:
            row = (await connection.execute(_LOOK)).first()
            holder = None if row is None else _Holder(*row)
            clock = asyncio.get_running_loop().time()
            if holder is None or holder != self._seen:
                self._seen, self._seen_since = holder, clock
                return
            if clock - self._seen_since < patience:
                return
            log.warning("the leading hub service is silent; taking over from it")
            label = holder.label if holder.label.startswith(LABEL) else None
            await connection.execute(_END, {"pid": holder.pid, "label": label})

    async def keep(self, *, pause: float = BEAT_SECONDS) -> None:
        """Return when it has been lost to another service; else never."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._database.overtaken.wait()
                return
            if self._database.is_sqlite:
                continue
            try:
                if not await self._holds():
                    return
            except DBAPIError:
                await self._drop()  # the database is away: nobody has it now

    async def _holds(self) -> bool:
        if self._connection is not None:
            await self._connection.scalar(text("SELECT 1"))
            return True
        return await self._try() and await self._is_present()

    async def _is_present(self) -> bool:
        """Tell whether nobody else has led since this service began to."""
        if self._connection is None or self._database.epoch is None:
            return True
        found = await self._connection.scalar(
            select(VersionRow.value).where(VersionRow.name == LEADER)
        )
        return bool(found == self._database.epoch)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                await connection.invalidate()
                await connection.close()

    async def close(self) -> None:
        """Give it up; a successor need not wait for the connection to be gone."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(DBAPIError):
            await connection.execute(_LET_GO)
        with suppress(DBAPIError):
            await connection.invalidate()
            await connection.close()
