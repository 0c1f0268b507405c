"""Paths as people write them, turned into names that are safe to pass to the kernel.

*Parts* are the names of a path from a root down, as the operating system spells them
(bytes that are no text are surrogates, as :func:`os.fsdecode` makes them). The root
itself is ``()``.

What is *shown* of a name is text that any document can carry: a byte that is no text
stands as one character of U+10FF80 to U+10FFFF, and those characters themselves as
their four bytes. :func:`read_path` takes what :func:`show_name` gave.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from backendai_hub.core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

Parts = tuple[str, ...]

MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 4096
MAX_DEPTH: Final = 256
_BASE: Final = 0x10FF00
_SHOWN_BYTES: Final = re.compile("[\U0010ff80-\U0010ffff]")
_NOT_TEXT: Final = re.compile("[\ud800-\udfff\U0010ff80-\U0010ffff]")
_LONGEST_SHOWN: Final = 120


def read_path(text: str) -> Parts:
    """Turn a path that somebody wrote into parts; ``/`` and empty text are the root.

    Slashes before, after and in pairs count for nothing. What could mean another
    place than it says is refused: ``.`` and ``..``, NUL, a second spelling of a name.
    """
    parts = tuple(_read_name(name, text) for name in text.split("/") if name)
    check_depth(parts)
    return parts


def read_name(text: str) -> str:
    """Turn one name that somebody wrote into a part."""
    if not text:
        raise InvalidRequestError("a name is missing")
    return _read_name(text, text)


def show_name(name: str) -> str:
    """Spell *name* so that every document can carry it; names of text stay as is."""
    if not _NOT_TEXT.search(name):
        return name
    return "".join(_show_character(character) for character in name)


def show_path(parts: Sequence[str]) -> str:
    """Spell *parts* as a path, as :func:`read_path` reads it."""
    return "/".join(show_name(name) for name in parts)


def quote(parts: Sequence[str]) -> str:
    """Write *parts* for a message: escaped, not too long, the root in words."""
    if not parts:
        return "the folder itself"
    shown = show_path(parts)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:40]}…{shown[-79:]}"
    return repr(shown)


def check_name(name: str) -> None:
    """Refuse a part that is not one plain name, whoever made it."""
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise InvalidRequestError(f"{name[:80]!r} is not the name of a file")
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise InvalidRequestError(
            f"the name {name[:40]!r}… has more than {MAX_NAME_BYTES} bytes; shorten it"
        )


def check_depth(parts: Sequence[str]) -> None:
    """Refuse parts that no path of the operating system could spell."""
    if len(parts) > MAX_DEPTH:
        raise InvalidRequestError(
            f"the path is {len(parts)} folders deep; at most {MAX_DEPTH} are allowed"
        )
    length = sum(len(os.fsencode(name)) + 1 for name in parts)
    if length > MAX_PATH_BYTES:
        raise InvalidRequestError(
            f"the path has {length} bytes; at most {MAX_PATH_BYTES} are allowed"
        )


def _read_name(text: str, path: str) -> str:
    try:
        name = os.fsdecode(b"".join(_read_character(c) for c in _pieces(text)))
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"the path {path[:80]!r} has a character that is no text"
        ) from None
    if name in {".", ".."}:
        raise InvalidRequestError(
            f"the path {path[:80]!r} contains {name!r}; write it without"
        )
    if "\0" in name:
        raise InvalidRequestError(f"the path {path[:80]!r} contains a NUL character")
    if show_name(name) != text:
        raise InvalidRequestError(
            f"the path {path[:80]!r} spells a name in another way"
        )
    check_name(name)
    return name


def _pieces(text: str) -> Sequence[str]:
    return text if _SHOWN_BYTES.search(text) else (text,)


def _read_character(text: str) -> bytes:
    if _SHOWN_BYTES.fullmatch(text):
        return bytes((ord(text) - _BASE,))
    return text.encode()


def _show_character(character: str) -> str:
    if not _NOT_TEXT.fullmatch(character):
        return character
    return "".join(chr(_BASE + byte) for byte in os.fsencode(character))
