"""One hub service per database.

What a service keeps in memory (who people are, how often they have asked, who waits
for news) is right only as long as nobody else changes the database behind it. On
SQLite the lock of the data folder sees to that; PostgreSQL is shared by a network, so
there the right to serve is an advisory lock, which ends with the connection that
holds it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import ConflictError
from backendai_hub.db.engine import Database

_LOCK: Final = 0x6261_696C
_TRY: Final = text("SELECT pg_try_advisory_lock(:key)").bindparams(key=_LOCK)

_LET_GO: Final = text("SELECT pg_advisory_unlock(:key)").bindparams(key=_LOCK)


class AnotherServiceError(ConflictError):
    """Another hub service works on this database."""

    code = "another-service"
    title = "Another hub service works on this database"


class Leadership:
    """The right to serve a database, held until it is closed or lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: AsyncConnection | None = None

    async def take(self, *, tries: int = 30, pause: float = 1.0) -> None:
        """Take it, waiting a while for a predecessor whose connection is dying.

        Raises :class:`AnotherServiceError` if somebody else keeps it.
        """
        if self._database.is_sqlite:
            return
        for attempt in range(tries):
            if attempt:
                await asyncio.sleep(pause)
            if await self._try():
                return
        raise AnotherServiceError(
            "another hub service works on this database; stop it first, or give this"
            " one a database of its own"
        )

    async def _try(self) -> bool:
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

    async def keep(self, *, pause: float = 5.0) -> None:
        """Return when it has been lost to another service; else never."""
        while True:
            await asyncio.sleep(pause)
            if self._database.is_sqlite:
                continue
            try:
                if not await self._holds():
                    return
            except DBAPIError:
                await self._drop()  # the database is away: nobody has it now

    async def _holds(self) -> bool:
        if self._connection is None:
            return await self._try()
        await self._connection.scalar(text("SELECT 1"))
        return True

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
