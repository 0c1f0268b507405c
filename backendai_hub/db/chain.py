"""Writing acts: each gets the next number and a hash over the row before it.

The rows of a transaction are its last statements. There is one *head*, which whoever
adds rows holds until the commit; on PostgreSQL events take their lock first, always,
so that two writers never wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.audit import GENESIS, Act, Asking, Entry, Head, chain
from backendai_hub.core.errors import HubError
from backendai_hub.core.ids import is_id
from backendai_hub.core.redaction import clean_text, redact
from backendai_hub.db.tables import AuditHeadRow, AuditRow

ASKING: ContextVar[Asking | None] = ContextVar("ASKING", default=None)
"""The request that is being carried out; none: the platform acts by itself."""

_HEAD: Final = 1
SYSTEM: Final = "system"
"""Who acts when nobody asks."""


class NoAuditKeyError(HubError):
    """Acts cannot be written: the database was opened without the chain's key."""

    code = "no-audit-key"
    title = "The key of the audit is missing"


_HELD: Final = (
    select(AuditHeadRow.seq, AuditHeadRow.hash)
    .where(AuditHeadRow.id == _HEAD)
    .with_for_update()
)
_WRITTEN: Final = insert(AuditRow)
_MOVED: Final = (
    update(AuditHeadRow)
    .where(AuditHeadRow.id == _HEAD)
    .values(seq=bindparam("to_seq"), hash=bindparam("to_hash"))
)


async def append(
    connection: AsyncConnection, key: bytes, acts: Sequence[Act], now: datetime
) -> None:
    """Write *acts* behind the newest row, in the caller's transaction."""
    head = await _hold_head(connection)
    asking = ASKING.get()
    rows: list[dict[str, Any]] = []
    for act in acts:
        entry = make_entry(act, asking, seq=head.seq + 1, at=now)
        head = Head(seq=entry.seq, hash=chain(key, head.hash, entry))
        rows.append({**msgspec.structs.asdict(entry), "hash": head.hash})
    await connection.execute(_WRITTEN, rows)
    await connection.execute(_MOVED, {"to_seq": head.seq, "to_hash": head.hash})


async def _hold_head(connection: AsyncConnection) -> Head:
    """Read the head and keep others from moving it; the first writer makes it."""
    found = (await connection.execute(_HELD)).first()
    if found is None:
        await _make_head(connection)
        found = (await connection.execute(_HELD)).one()
    return Head(seq=found.seq, hash=found.hash)


async def _make_head(connection: AsyncConnection) -> None:
    """Begin at the last row there is. If a head was taken away, exported heads tell."""
    build = postgresql.insert if _is_postgresql(connection) else sqlite.insert
    last = (
        await connection.execute(
            select(AuditRow.seq, AuditRow.hash).order_by(AuditRow.seq.desc()).limit(1)
        )
    ).first()
    seq, hashed = (0, GENESIS) if last is None else (last.seq, last.hash)
    await connection.execute(
        build(AuditHeadRow)
        .values(id=_HEAD, seq=seq, hash=hashed)
        .on_conflict_do_nothing()
    )


def _is_postgresql(connection: AsyncConnection) -> bool:
    return connection.dialect.name == "postgresql"


def make_entry(act: Act, asking: Asking | None, *, seq: int, at: datetime) -> Entry:
    """Make the row of an act: cleaned, clipped, and with the request it came with."""
    if asking is None:
        asking = Asking(
            request_id="",
            address="",
            elapsed=_no_time,
            actor=SYSTEM,
            credential=SYSTEM,
        )
    return Entry(
        seq=seq,
        at=at,
        request_id=clean_text(asking.request_id, 32),
        actor=clean_text(_given(act.actor, asking.actor), 256),
        actor_id=asking.actor_id if act.actor is None else act.actor_id,
        acted_as=clean_text(asking.acted_as, 256) if act.actor is None else "",
        credential=clean_text(_given(act.credential, asking.credential), 32),
        address=clean_text(_given(act.address, asking.address), 64),
        action=clean_text(act.action, 64),
        object_kind=clean_text(act.object_kind, 32),
        object_id=act.object_id if act.object_id and is_id(act.object_id) else None,
        object_name=clean_text(act.object_name, 512),
        domain_id=act.domain_id or asking.domain_id,
        owner_id=act.owner_id or asking.acted_as_id,
        before=redact(act.before),
        after=redact(act.after),
        result=str(act.result),
        code=clean_text(act.code, 64),
        message=clean_text(act.message),
        duration_ms=round(max(0.0, asking.elapsed()) * 1000, 3),
    )


def _no_time() -> float:
    return 0.0


def _given(own: str | None, usual: str) -> str:
    return usual if own is None else own


# --- reading it back -----------------------------------------------------------------


async def read_head(connection: AsyncConnection) -> Head | None:
    """Read the newest row's number and hash, as the writers keep it."""
    found = (
        await connection.execute(
            select(AuditHeadRow.seq, AuditHeadRow.hash).where(AuditHeadRow.id == _HEAD)
        )
    ).first()
    return None if found is None else Head(seq=found.seq, hash=found.hash)


_COLUMNS: Final = [getattr(AuditRow, name) for name in Entry.__struct_fields__]


async def read_rows(
    connection: AsyncConnection, after: int, limit: int
) -> list[tuple[Entry, str]]:
    """Read rows behind number *after* in their order, each with its stored hash."""
    found = await connection.execute(
        select(*_COLUMNS, AuditRow.hash)
        .where(AuditRow.seq > after)
        .order_by(AuditRow.seq)
        .limit(limit)
    )
    return [(Entry(*row[:-1]), row[-1]) for row in found]
