"""Refusals on the wire: RFC 9457 problem documents."""

from __future__ import annotations

from typing import Any

import msgspec

from backendai_hub.core.errors import HubError

CONTENT_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One refusal. ``detail`` says what, how much, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str | None = None
    fields: dict[str, Any] = {}


def describe(error: HubError, request_id: str | None = None) -> Problem:
    """Turn an error into the document that is sent."""
    return Problem(
        type=f"about:blank#{error.code}",
        title=error.title,
        status=error.status,
        detail=error.message,
        code=error.code,
        request_id=request_id,
        fields=error.fields,
    )
