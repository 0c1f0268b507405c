"""Files over HTTP: what ranges, conditions and names in headers mean.

A *tag* names one state of a file's content; headers carry it in quotes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote

import msgspec

from backendai_hub.core.errors import InvalidRequestError

MOST_TEXT: Final = 1 << 20
"""So many bytes a file has at most that is edited as text."""

_RANGE: Final = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})", re.ASCII)
_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9 ._()+@-]+", re.ASCII)
_KEPT: Final = "!#$&+-.^_`|~"


class BadRangeError(InvalidRequestError):
    """No byte of the file lies in the range; ``size`` is how many it has."""

    code = "range"
    title = "The file has nothing there"
    status = 416


class ByteRange(msgspec.Struct, frozen=True):
    """A part of a file, up to before ``end``."""

    start: int
    end: int


def read_range(given: str | None, size: int) -> ByteRange | None:
    """Read a header ``Range``; None: the whole file is to be sent.

    Several ranges at once and units we do not know are answered with the whole, as
    HTTP allows. Raises :class:`BadRangeError`.
    """
    found = None if given is None else _RANGE.fullmatch(given.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None  # is none by its own grammar
    if start >= size or start == end:
        raise BadRangeError(f"Range: the file has {size} bytes", size=size)
    return ByteRange(start, end)


def names_tag(given: str | None, tag: str, *, weakly: bool = False) -> bool:
    """Tell whether ``If-Match`` or ``If-None-Match`` names *tag*; ``*`` names any."""
    if given is None:
        return False
    if given.strip() == "*":
        return True
    return any(
        name == tag and (weakly or not weak) for weak, name in _TAG.findall(given)
    )


ANY_TAG: Final = '"*"'
"""Whatever there is, but something; the quotes are in no tag."""


def read_only_tag(given: str | None) -> str | None:
    """Return the one tag that ``If-Match`` names, or ``ANY_TAG``; None without one."""
    if given is None:
        return None
    if given.strip() == "*":
        return ANY_TAG
    found = _TAG.fullmatch(given.strip())
    if found is None or found[1]:
        raise InvalidRequestError(
            "If-Match: name the one tag that the file had when you read it"
        )
    return found[2]


def is_unchanged_since(given: str, tag: str, modified: datetime) -> bool:
    """Tell whether ``If-Range``, a tag or a time, is of the present content.

    Times count only if they are exactly that of the last change.
    """
    if '"' in given:
        return names_tag(given, tag)
    try:
        moment = parsedate_to_datetime(given)
    except (ValueError, OverflowError):
        return False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment == modified.replace(microsecond=0)


def disposition(name: str) -> str:
    """Write the header that tells a browser to save a file, and what to call it.

    Whatever the name is, nothing of it can end the header or its quotes.
    """
    if _PLAIN_NAME.fullmatch(name):
        return f'attachment; filename="{name}"'
    plain = "".join(c if _PLAIN_NAME.fullmatch(c) else "_" for c in name)
    spelled = quote(name.encode("utf-8", "replace"), safe=_KEPT)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{spelled}"
