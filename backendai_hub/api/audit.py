"""What is read of the audit."""

from __future__ import annotations

from typing import Any

import msgspec

from backendai_hub.core.audit import Break, Head


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which acts, the newest first. Several values are separated by commas.

    ``actor`` is who asked, or for whom; ``action`` may end with ``*``; ``object`` is a
    name or an id; ``since`` is included, ``until`` is not.
    """

    limit: int = 50
    after: str | None = None
    actor: str | None = None
    action: str | None = None
    object_kind: str | None = None
    object: str | None = None
    result: str | None = None
    since: str | None = None
    until: str | None = None
    search: str | None = None


class ExportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """As for the list; ``format`` is ``csv`` or ``jsonl``."""

    format: str = "csv"
    limit: int = 100_000
    after: str | None = None
    actor: str | None = None
    action: str | None = None
    object_kind: str | None = None
    object: str | None = None
    result: str | None = None
    since: str | None = None
    until: str | None = None
    search: str | None = None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One act. ``domain`` is the name of its domain as long as there is one."""

    seq: int
    at: str
    actor: str
    actor_id: str | None
    acted_as: str
    credential: str
    address: str
    action: str
    object_kind: str
    object_name: str
    object_id: str | None
    domain: str | None
    domain_id: str | None
    owner_id: str | None
    result: str
    code: str
    message: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str
    duration_ms: float
    hash: str


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page; ``next`` is the cursor of the following page."""

    items: list[AuditEntry]
    next: str | None = None


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chain holds. ``breaks`` are the first thousand of ``found``.

    ``exported`` heads from outside of the database were compared, too; ``unreadable``
    lines of them could not be read.
    """

    ok: bool
    rows: int
    breaks: list[Break]
    found: int
    head: Head | None
    exported: int
    unreadable: int
    seconds: float
