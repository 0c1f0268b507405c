"""Moments, as the API writes them."""

from __future__ import annotations

from datetime import datetime


def tell_time(moment: datetime) -> str:
    """Write a time in a sentence, to the minute; pages put the reader's own for it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def format_time(moment: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC, to the millisecond."""
    if moment is None:
        return None
    # Times are in UTC everywhere, so the offset is always these six characters.
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"
