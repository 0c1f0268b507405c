"""Where a page of a list ended, as text that goes into an address."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

import msgspec

from backendai_hub.core.errors import MalformedRequestError

T = TypeVar("T", bound=tuple[Any, ...])


def write_cursor(*values: str | int) -> str:
    """Write down what the last entry of a page is sorted by."""
    return base64.urlsafe_b64encode(msgspec.json.encode(values)).decode().rstrip("=")


def read_cursor(text: str, kind: type[T]) -> T:
    """Read the values, of these types, that a cursor was written from.

    Raises :class:`MalformedRequestError` for anything else, and for what no column of
    a database can be compared with.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        raw = base64.urlsafe_b64decode(padded)
        values: T | None = msgspec.json.decode(raw, type=kind)
    except (ValueError, binascii.Error, msgspec.DecodeError):
        values = None
    if values is None or any(_is_beyond(value) for value in values):
        raise MalformedRequestError(
            "after: not a cursor of this list; leave it out for the first page"
        )
    return values


def _is_beyond(value: str | int) -> bool:
    return "\0" in value if isinstance(value, str) else abs(value) >= 1 << 63
