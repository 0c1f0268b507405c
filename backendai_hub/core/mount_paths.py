"""Paths of mounts: inside of folders, and in sessions."""

from __future__ import annotations

import posixpath
from typing import Final

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.names import fold
from backendai_hub.core.vfolders import BREW, BREW_TARGET, is_reserved

HOME: Final = "/home/work"
_LONGEST_PATH: Final = 4096
_LONGEST_TARGET: Final = 4000
"""Less, since it is below something on each node."""
_LONGEST_PART: Final = 255
_DEEPEST: Final = 256
_RESERVED_TARGETS: Final = frozenset(
    {"/", "/home", HOME, "/media", "/mnt", "/srv", "/home/linuxbrew"}
)
_RESERVED_ROOTS: Final = frozenset(
    {
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"),
        *("lost+found", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr"),
        "var",
    }
)
"""What a session's own programs need: nothing is ever mounted here or below."""


def read_subpath(text: str) -> str:
    """Return a path inside a folder in its normal form; ``..`` never leaves it."""
    if "\0" in text or len(text.encode("utf-8", "surrogatepass")) > _LONGEST_PATH:
        raise InvalidRequestError("mounts: subpath: holds a NUL, or is too long")
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise InvalidRequestError(
            f"mounts: {text[:64]!r}: a path inside a folder stays inside; leave out"
            " '..'"
        )
    if len(parts) > _DEEPEST or any(len(p.encode()) > _LONGEST_PART for p in parts):
        raise InvalidRequestError(
            f"mounts: {text[:64]!r}: a part of it is longer than {_LONGEST_PART} bytes,"
            f" or it is more than {_DEEPEST} deep"
        )
    return "/".join(parts)


def read_target(text: str) -> str:
    """Return where something is to appear, as an absolute path in normal form."""
    whole = text if text.startswith("/") else f"{HOME}/{text}"
    if not whole.isprintable():
        raise InvalidRequestError(
            "mounts: target: holds a character that cannot be shown"
        )
    lengths = [len(part.encode()) for part in whole.split("/")]
    if max(lengths) > _LONGEST_PART or len(whole.encode()) > _LONGEST_TARGET:
        raise InvalidRequestError(
            f"mounts: target: {text[:64]!r}: it is longer than {_LONGEST_TARGET} bytes,"
            f" or a part of it is longer than {_LONGEST_PART}"
        )
    if ".." in whole.split("/"):
        raise InvalidRequestError(f"mounts: {text[:64]!r}: a target has no '..'")
    path = posixpath.normpath(whole).replace("//", "/")
    _check_target(path)
    return path


def _check_target(path: str) -> None:
    first = path.split("/")[1]
    inside_home = path.removeprefix(f"{HOME}/").split("/")[0]
    if (
        path in _RESERVED_TARGETS
        or first in _RESERVED_ROOTS
        or (path.startswith(f"{HOME}/") and is_reserved(inside_home))
    ):
        raise InvalidRequestError(
            f"mounts: nothing can be mounted at {path[:128]!r}, which sessions need"
            f" themselves; use a path below {HOME}, or another of its own"
        )


def default_target(name: str) -> str:
    """Return where a folder appears if nothing else is said."""
    return BREW_TARGET if fold(name) == BREW else f"{HOME}/{name}"


def overlap(one: str, other: str) -> bool:
    """Tell whether one of two paths is the other, or inside it."""
    a, b = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return a.startswith(b) or b.startswith(a)
