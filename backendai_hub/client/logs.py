"""Following what a session prints, of which only ever the last part is asked."""

from __future__ import annotations

from typing import Final

_FIRST_LOOK: Final = 256


def find_news(before: str, now: str) -> str:
    """Return what *now*, the end of a log, has beyond *before*, an earlier end.

    Where so much has been printed in between that the two do not overlap, that is all
    of it.
    """
    if now.startswith(before):
        return now[len(before) :]
    first = now[: now.find("\n") + 1] or now
    place = before.find(first) if first else -1
    while place >= 0:
        beginning = before[place : place + _FIRST_LOOK]
        if now.startswith(beginning) and now.startswith(before[place:]):
            return now[len(before) - place :]
        place = before.find(first, place + 1)
    return now
