"""Routes of the audit: reading it, taking it away, and checking its chain."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any, Final

import msgspec
from tornado.iostream import StreamClosedError

from backendai_hub.api.audit import (
    AuditEntry,
    AuditPage,
    AuditQuery,
    AuditReport,
    ExportQuery,
)
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import audit as verbs

COLUMNS: Final = AuditEntry.__struct_fields__
_FORMULA: Final = tuple("=+-@\t\r\n＝＋－＠")
_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
}


class AuditHandler(APIHandler):
    """The acts that the caller may see."""

    path = "api/audit"

    @operation(Action.READ_AUDIT, query=AuditQuery)
    async def get(self) -> AuditPage:
        """List who did what, the newest first, a page at a time."""
        query = self.decode_query(AuditQuery)
        return await verbs.list_acts(self.platform, self.principal, query)


class AuditExportHandler(APIHandler):
    """The acts that the caller may see, to take away."""

    path = "api/audit/export"

    @operation(Action.READ_AUDIT, query=ExportQuery)
    async def get(self) -> None:
        """Send acts as CSV or as lines of JSON, the newest first."""
        query = self.decode_query(ExportQuery)
        chunks = await verbs.export_acts(self.platform, self.principal, query)
        self.set_header("Content-Type", _TYPES[query.format])
        self.set_header(
            "Content-Disposition", f'attachment; filename="audit.{query.format}"'
        )
        write: Callable[[list[AuditEntry]], str] = _jsonl
        if query.format == "csv":
            write = _csv
            self.write(_csv_row(list(COLUMNS)))
        try:
            async for chunk in chunks:
                self.write(write(chunk))
                await self.flush()
        except StreamClosedError:
            return


class AuditVerifyHandler(APIHandler):
    """The check of the chain."""

    path = "api/audit/verify"

    @operation(Action.VERIFY_AUDIT)
    async def post(self) -> AuditReport:
        """Check that no act was altered, removed or put in since it was written."""
        return await verbs.verify_audit(self.platform, self.principal)


def _jsonl(entries: list[AuditEntry]) -> str:
    return "".join(f"{msgspec.json.encode(entry).decode()}\n" for entry in entries)


def _csv(entries: list[AuditEntry]) -> str:
    return "".join(
        _csv_row([_cell(getattr(entry, name)) for name in COLUMNS]) for entry in entries
    )


def _csv_row(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> str:
    """Write a cell that a spreadsheet shows and does not calculate."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return msgspec.json.encode(value, order="sorted").decode()
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
