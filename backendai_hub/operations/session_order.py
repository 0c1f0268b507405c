"""In which order sessions are listed, and where a page of such a list ends."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from backendai_hub.core.errors import InvalidRequestError, MalformedRequestError
from backendai_hub.core.ids import is_id
from backendai_hub.core.sessions import Session

Key = datetime | int | str


def _read_moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() != timedelta(0):
        raise ValueError(text)
    return moment


_READERS: Final[dict[str, Callable[[str], Key]]] = {
    "created_at": _read_moment,
    "name": str,
    "owner": str,
    "priority": int,
    "status": str,
}


def check_order(order: str) -> None:
    """Refuse an order that sessions cannot be listed in."""
    if order.removeprefix("-") not in _READERS:
        choices = ", ".join(sorted(_READERS))
        raise InvalidRequestError(
            f"order: {order[:32]!r} is none of {choices}, with or without '-'"
        )


def encode_cursor(order: str, last: Session) -> str:
    """Write down where a page that ends with *last* ends."""
    text = f"{getattr(last, order.removeprefix('-'))}|{last.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(order: str, cursor: str) -> tuple[Key, str]:
    """Read where the page before ended: what is sorted by, and the session's id."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        decoded = base64.urlsafe_b64decode(padded).decode()
        text, session_id = decoded.rsplit("|", 1)
        key = _READERS[order.removeprefix("-")](text)
        known = is_id(session_id)
        # SQLite has no greater numbers, and text has no such letter in PostgreSQL.
        known = known and not (isinstance(key, int) and abs(key) >= 1 << 63)
        known = known and "\0" not in text
    except (ValueError, binascii.Error):
        known = False
    if not known:
        raise MalformedRequestError(
            "after: not a cursor of this list; leave it out for the first page"
        )
    return key, session_id
