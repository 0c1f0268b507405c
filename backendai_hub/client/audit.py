"""The client's part about the audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from backendai_hub.api.audit import AuditEntry, AuditPage, AuditReport
from backendai_hub.client.tenancy import Part


class Audit(Part):
    """Who did what: read it, take it away, and check that it is whole."""

    async def list(
        self, /, *, page_size: int | None = None, **filters: Any
    ) -> AsyncIterator[AuditEntry]:
        """Yield acts, the newest first, page after page, as they are asked for.

        Filters are actor, action, object_kind, object, result, since, until, search.
        """
        after: str | None = None
        while True:
            page = await self._transport.get(
                "audit",
                AuditPage,
                params={**filters, "limit": page_size, "after": after},
                act_for=self._act_for,
            )
            for entry in page.items:
                yield entry
            after = page.next
            if after is None:
                return

    def export(self, /, *, format: str = "csv", **filters: Any) -> AsyncIterator[bytes]:  # noqa: A002 - the parameter's name
        """Yield all acts as ``csv`` or ``jsonl``, in parts as they arrive."""
        return self._transport.download(
            "audit/export",
            params={"format": format, **filters},
            act_for=self._act_for,
        )

    async def verify(self) -> AuditReport:
        """Check that no act was altered, removed or put in since it was written."""
        return await self._transport.post(
            "audit/verify", {}, AuditReport, act_for=self._act_for
        )
