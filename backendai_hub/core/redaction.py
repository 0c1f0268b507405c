"""What may be written of an act: no secret, no control character, nothing huge.

Secrets are left out where acts are made. This is the second fence: whatever an
operation puts into an act, the value of a field that is named like a secret is not
written, and of long texts (a script may hold a token) only how long they are and a
fingerprint, by which one sees that they changed.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "(secret)"
"""What is written for a secret's value."""
MOST_TEXT: Final = 1024
MOST_ITEMS: Final = 1000
_MOST_DEPTH: Final = 16

_SECRET_WORDS: Final = frozenset(
    {
        "authorization",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "environ",
        "environment",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "secret",
        "secrets",
        "token",
        "tokens",
    }
)
_JOINED: Final = ("apikey", "accesstoken", "authtoken", "privatekey", "secretkey")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_USERINFO: Final = re.compile(r"(?<=://)[^/\s@]+@")
_BIDI: Final = frozenset(
    map(chr, (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
"""What turns the order of shown text around."""
_EXACT: Final = 1 << 53


def is_secret(name: str) -> bool:
    """Tell whether a field is named like something that is a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    joined = "".join(words)
    return bool(_SECRET_WORDS & set(words)) or any(j in joined for j in _JOINED)


def clean_text(text: str, most: int = MOST_TEXT) -> str:
    """Return *text* as one line: no control characters, no login in a URL."""
    plain = text.isascii() and text.isprintable()
    shown = text if plain else "".join(map(_visible, text))
    if "://" in shown:
        shown = _USERINFO.sub("…@", shown)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
    return "\N{REPLACEMENT CHARACTER}" if hidden or character in _BIDI else character


def redact(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what may be written of a document; equal on both kinds of database."""
    if document is None:
        return None
    return _mapping(document, 0)


def _mapping(document: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    items = list(document.items())[:MOST_ITEMS]
    return {
        clean_text(str(name), 256): _value(str(name), value, depth)
        for name, value in items
    }


def _value(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if is_secret(name) or depth >= _MOST_DEPTH:
        return HIDDEN
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return _mapping(value, depth + 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_value(name, v, depth + 1) for v in list(value)[:MOST_ITEMS]]
    return _text(str(value))


def _number(value: float) -> Any:
    """Return a number that JSON documents give back as it went in."""
    if not math.isfinite(value) or abs(value) > _EXACT:
        return str(value)
    return int(value) if value == int(value) else float(value)


def _text(text: str) -> str:
    if len(text) <= MOST_TEXT and "\n" not in text:
        return clean_text(text)
    fingerprint = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"({len(text)} characters, sha256 {fingerprint})"
