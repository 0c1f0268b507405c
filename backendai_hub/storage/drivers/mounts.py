"""What is mounted where."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mounts")


def find_mount(path: str, table: Path = _MOUNTS) -> tuple[str, str]:
    """Return the kind and the device of the filesystem that *path* lies on."""
    best, found = "", ("an unknown filesystem", "")
    real = Path(path).resolve()
    for line in table.read_text("utf-8", "replace").splitlines():
        device, where, kind, *_ = line.split()
        # Blanks and the like are written in octal digits.
        where = where.encode().decode("unicode_escape").encode("latin-1").decode()
        # What was mounted last on the same point hides what is below.
        if real.is_relative_to(where) and len(where) >= len(best):
            best, found = where, (kind, device)
    return found
