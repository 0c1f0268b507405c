"""How long something lasts, in words."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def describe_duration(seconds: int) -> str:
    """Write *seconds* in a sentence: ``1 h``, ``1 h 30 min``, ``45 s``."""
    parts = []
    for unit, length in _UNITS:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"
