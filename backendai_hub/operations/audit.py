"""Reading acts: one's own, one's domain's, or all; and checking the chain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec

from backendai_hub.api.audit import (
    AuditEntry,
    AuditPage,
    AuditQuery,
    AuditReport,
    ExportQuery,
)
from backendai_hub.core.access import Action, Principal, Reach, reach
from backendai_hub.core.audit import Act, ChainCheck, Entry, Result
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    UnavailableError,
)
from backendai_hub.db import audit, chain
from backendai_hub.db.audit import ActFilter
from backendai_hub.operations.audit_heads import HeadFile
from backendai_hub.operations.audit_notes import note
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE = 200
MOST_PER_EXPORT = 100_000
_CHUNK = 1000
_CHECKED_AT_ONCE = 5000
_FORMATS = ("csv", "jsonl")


# --- reading ---------------------------------------------------------------------


async def list_acts(
    platform: Platform, principal: Principal, query: AuditQuery
) -> AuditPage:
    """Return one page of the acts the caller may see, the newest first."""
    _check_limit(query.limit, MOST_PER_PAGE)
    wanted = _read_filter(principal, query)
    found = await _load(platform, principal, wanted, query.limit + 1)
    page = found[: query.limit]
    more = len(found) > query.limit
    return AuditPage(items=page, next=str(page[-1].seq) if more else None)


async def export_acts(
    platform: Platform, principal: Principal, query: ExportQuery
) -> AsyncIterator[list[AuditEntry]]:
    """Yield the acts the caller may see, some at a time; that is an act, too."""
    if query.format not in _FORMATS:
        raise InvalidRequestError(
            f"format: {query.format[:32]!r} is not one of {', '.join(_FORMATS)}"
        )
    _check_limit(query.limit, MOST_PER_EXPORT)
    wanted = _read_filter(principal, query)
    given = {
        name: value
        for name, value in msgspec.structs.asdict(query).items()
        if value is not None
    }
    await note(
        platform,
        Act(
            action="audit:export", object_kind="audit", object_name="audit", after=given
        ),
    )
    return _export(platform, principal, wanted, query.limit)


async def _export(
    platform: Platform, principal: Principal, wanted: ActFilter, limit: int
) -> AsyncIterator[list[AuditEntry]]:
    left = limit
    while left > 0:
        asked = min(left, _CHUNK)
        found = await _load(platform, principal, wanted, asked)
        if found:
            yield found
        if len(found) < asked:
            return
        left -= len(found)
        wanted = msgspec.structs.replace(wanted, after=found[-1].seq)


async def _load(
    platform: Platform, principal: Principal, wanted: ActFilter, limit: int
) -> list[AuditEntry]:
    async with platform.database.glance() as connection:
        found = await audit.list_acts(connection, wanted, limit)
    extent = reach(principal, Action.READ_AUDIT)
    return [_present(entry, principal, extent) for entry in found]


def _present(
    entry: AuditEntry, principal: Principal, extent: Reach | None
) -> AuditEntry:
    """Leave out what a row tells of others than those it is shown to."""
    if extent is Reach.ALL:
        return entry
    if entry.actor_id != principal.id and entry.owner_id == principal.id:
        # What somebody else did to one's own things: not where they sat.
        return msgspec.structs.replace(entry, address="")
    if extent is Reach.DOMAIN and entry.domain_id == principal.domain_id:
        return msgspec.structs.replace(
            entry,
            before=_hide_other_domain(entry, entry.before),
            after=_hide_other_domain(entry, entry.after),
        )
    return entry


def _hide_other_domain(
    entry: AuditEntry, document: dict[str, object] | None
) -> dict[str, object] | None:
    """Hide where somebody went who has left the domain, or came from."""
    if document is None or document.get("domain") in {None, entry.domain}:
        return document
    hidden = {"domain", "project"} & set(document)
    return {**document, **dict.fromkeys(hidden, "(another domain)")}


def _check_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidRequestError(f"limit: {limit} is not between 1 and {most}")


def _read_filter(principal: Principal, query: AuditQuery | ExportQuery) -> ActFilter:
    extent = reach(principal, Action.READ_AUDIT)
    return ActFilter(
        person_id=None if extent is Reach.ALL else principal.id,
        domain_id=principal.domain_id if extent is Reach.DOMAIN else None,
        actors=_words(query.actor),
        actions=_words(query.action),
        object_kinds=_words(query.object_kind),
        object=query.object,
        results=_read_results(query.result),
        since=_read_moment("since", query.since),
        until=_read_moment("until", query.until),
        search=(query.search or "")[:256],
        after=_read_cursor(query.after),
    )


def _words(text: str | None) -> list[str]:
    return [] if text is None else [word.strip() for word in text.split(",")][:100]


def _read_results(text: str | None) -> list[str]:
    words = _words(text)
    for word in words:
        if word not in set(Result):
            raise InvalidRequestError(
                f"result: {word[:32]!r} is not one of {', '.join(Result)}"
            )
    return words


def _read_moment(field: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    # A '+' that is not quoted arrives as a blank.
    day, letter, hour = text.strip().partition("T")
    try:
        moment = datetime.fromisoformat(day + letter + hour.replace(" ", "+"))
    except ValueError:
        raise InvalidRequestError(
            f"{field}: {text[:32]!r} is no date or time, such as 2026-01-31 or"
            " 2026-01-31T12:00:00Z"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _read_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise MalformedRequestError(
            "after: not a cursor of this list; leave it out for the first page"
        )
    return int(text)


# --- checking --------------------------------------------------------------------


async def verify_audit(platform: Platform, principal: Principal) -> AuditReport:
    """Follow the chain from its first row to its head; that is an act, too."""
    if platform.checking_audit.locked():
        raise UnavailableError(
            "the audit is being checked already; ask again in a minute", retry_after=60
        )
    async with platform.checking_audit:
        report = await check_chain(platform)
    await note(
        platform,
        Act(
            action=Action.VERIFY_AUDIT,
            object_kind="audit",
            object_name="audit",
            after={"ok": report.ok, "rows": report.rows, "breaks": report.found},
        ),
    )
    return report


async def check_chain(platform: Platform) -> AuditReport:
    """Check every row, the head, and what was exported of it before."""
    began = time.monotonic()
    key = platform.database.audit_key
    if key is None:
        raise chain.NoAuditKeyError("the audit cannot be checked without its key")
    path = platform.settings.audit_heads
    # Read before the rows: what was exported by then has to be among them.
    exported, unreadable = (
        await asyncio.to_thread(HeadFile(path).read) if path else ({}, 0)
    )
    check = ChainCheck(key, exported)
    async with platform.database.read() as connection:
        last = 0
        while rows := await chain.read_rows(connection, last, _CHECKED_AT_ONCE):
            last = rows[-1][0].seq
            await asyncio.to_thread(_follow, check, rows)
        head = await chain.read_head(connection)
    breaks = check.end(head)
    return AuditReport(
        ok=not breaks and not unreadable,
        rows=check.rows,
        breaks=breaks,
        found=check.found,
        head=head,
        exported=len(exported),
        unreadable=unreadable,
        seconds=round(time.monotonic() - began, 3),
    )


def _follow(check: ChainCheck, rows: list[tuple[Entry, str]]) -> None:
    for entry, stored in rows:
        check.follow(entry, stored)
