"""Following what a session prints, of which only ever the last part is asked."""

from __future__ import annotations

from typing import Final

_ANCHOR: Final = 4096


def find_news(before: str, now: str) -> str:
    """Return what *now*, the end of a log, has beyond *before*, an earlier end.

    Where so much has been printed in between that the two do not overlap, that is all
    of it.
    """
    if now.startswith(before):
        return now[len(before) :]
    anchor = before[-_ANCHOR:]
    place = now.find(anchor)
    return now if place < 0 else now[place + len(anchor) :]
