"""Reading acts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.audit import AuditEntry
from backendai_hub.core.times import format_time
from backendai_hub.db.tables import AuditRow, DomainRow


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed which fields of an object, and when."""

    actor: str
    fields: list[str]
    at: str


async def list_changes(
    connection: AsyncConnection, object_id: str, revision: int, limit: int = 5
) -> list[Change]:
    """List what was done to an object after *revision*, the newest first."""
    rows = await connection.execute(
        select(AuditRow.actor, AuditRow.at, AuditRow.after)
        .where(AuditRow.object_id == object_id, AuditRow.result == "success")
        .order_by(AuditRow.seq.desc())
        .limit(limit)
    )
    return [
        Change(
            actor=actor,
            fields=[name for name in after if name != "revision"],
            at=format_time(at) or "",
        )
        for actor, at, after in rows
        if after and int(after.get("revision", 0)) > revision
    ]


class ActFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which acts: those somebody may see, and of these what is asked for.

    With ``person_id`` only what they did or what is theirs, and with ``domain_id``
    besides what belongs to that domain. ``after`` is the number of the row before
    the first one, the newest being first.
    """

    person_id: str | None = None
    domain_id: str | None = None
    actors: list[str] = []
    actions: list[str] = []
    object_kinds: list[str] = []
    object: str | None = None
    results: list[str] = []
    since: datetime | None = None
    until: datetime | None = None
    search: str = ""
    after: int | None = None


_SHOWN = [n for n in AuditEntry.__struct_fields__ if n not in {"at", "domain"}]


async def list_acts(
    connection: AsyncConnection, wanted: ActFilter, limit: int
) -> list[AuditEntry]:
    """List acts, the newest first."""
    rows = await connection.execute(
        select(
            *(getattr(AuditRow, name) for name in _SHOWN),
            AuditRow.at,
            DomainRow.name.label("domain"),
        )
        .outerjoin(DomainRow, DomainRow.id == AuditRow.domain_id)
        .where(*_conditions(wanted))
        .order_by(AuditRow.seq.desc())
        .limit(limit)
    )
    return [
        AuditEntry(**{**row, "at": format_time(row["at"]) or ""})
        for row in rows.mappings()
    ]


def _conditions(wanted: ActFilter) -> list[ColumnElement[bool]]:
    return [*_sight(wanted), *_words(wanted), *_bounds(wanted)]


def _sight(wanted: ActFilter) -> list[ColumnElement[bool]]:
    row = AuditRow
    if wanted.person_id is None:
        return []
    seen = [row.actor_id == wanted.person_id, row.owner_id == wanted.person_id]
    if wanted.domain_id is not None:
        seen.append(row.domain_id == wanted.domain_id)
    return [or_(*seen)]


def _words(wanted: ActFilter) -> list[ColumnElement[bool]]:
    row = AuditRow
    found: list[ColumnElement[bool]] = []
    if wanted.actors:
        found.append(row.actor.in_(wanted.actors) | row.acted_as.in_(wanted.actors))
    if wanted.actions:
        found.append(or_(*map(_match_action, wanted.actions)))
    if wanted.object_kinds:
        found.append(row.object_kind.in_(wanted.object_kinds))
    if wanted.object is not None:
        found.append(
            (row.object_name == wanted.object) | (row.object_id == wanted.object)
        )
    if wanted.results:
        found.append(row.result.in_(wanted.results))
    if wanted.search:
        found.append(_match_text(wanted.search))
    return found


def _bounds(wanted: ActFilter) -> list[ColumnElement[bool]]:
    row = AuditRow
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(row.at >= wanted.since)
    if wanted.until is not None:
        found.append(row.at < wanted.until)
    if wanted.after is not None:
        found.append(row.seq < wanted.after)
    return found


def _match_action(word: str) -> ColumnElement[bool]:
    if word.endswith("*"):
        return AuditRow.action.startswith(word[:-1], autoescape=True)
    return AuditRow.action == word


def _match_text(text: str) -> ColumnElement[bool]:
    places: tuple[Any, ...] = (
        AuditRow.actor,
        AuditRow.acted_as,
        AuditRow.action,
        AuditRow.object_name,
        AuditRow.message,
        AuditRow.request_id,
    )
    lowered = text.lower()
    return or_(
        *(func.lower(place).contains(lowered, autoescape=True) for place in places)
    )
