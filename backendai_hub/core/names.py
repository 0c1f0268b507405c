"""Names people choose: what may be one, and when two are the same.

Names are labels, never identities, and may be written in any script. Two spellings
that a person could take for one another are the same name: they are compared by
:func:`fold`, after Unicode's NFKC and without regard to case.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.ids import is_id

RESERVED: Final = frozenset({"all", "any", "bulk", "me", "new", "none", "null", "self"})
"""Words that have a meaning of their own where a name may stand."""

_SLUG = re.compile(r"\w([\w.-]*\w)?")
_LOOKALIKE: Final = ("LATIN", "CYRILLIC", "GREEK")


def fold(name: str) -> str:
    """Return the form in which names are compared."""
    once = unicodedata.normalize("NFKC", name).strip().casefold()
    return unicodedata.normalize("NFKC", once)


def read_slug(field: str, given: str, most: int) -> str:
    """Return *given* in its normal form; raises :class:`InvalidRequestError`.

    A slug is made of letters, digits, ``_``, ``-`` and ``.`` of any script, begins and
    ends with a letter or digit, and is no reserved word and no id.
    """
    name = unicodedata.normalize("NFKC", given).strip()
    shown = repr(name[:64])
    if not 1 <= len(name) <= most:
        raise InvalidRequestError(f"{field}: a name has 1 to {most} characters")
    if _SLUG.fullmatch(name) is None:
        raise InvalidRequestError(
            f"{field}: {shown} will not do; use letters, digits, '-', '_' and '.',"
            " beginning and ending with a letter or digit"
        )
    if fold(name) in RESERVED or is_id(fold(name)):
        raise InvalidRequestError(f"{field}: {shown} is reserved; choose another name")
    scripts = {_script(character) for character in name} & set(_LOOKALIKE)
    if len(scripts) > 1:
        raise InvalidRequestError(
            f"{field}: {shown} mixes {' and '.join(sorted(scripts)).title()} letters,"
            " which look alike; use one of them"
        )
    return name


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0]


def read_line(field: str, given: str, most: int) -> str:
    """Return one line of text; control characters and too much of it are refused."""
    text = unicodedata.normalize("NFC", given).strip()
    if len(text) > most:
        raise InvalidRequestError(
            f"{field}: {len(text)} characters; the most is {most}"
        )
    for character in text:
        # Also what changes the direction of the text around it.
        if unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}:
            raise InvalidRequestError(
                f"{field}: holds the control character U+{ord(character):04X}"
            )
    return text


def suggest(wrong: str, known: Iterable[str]) -> str:
    """Return a hint naming what was probably meant, or nothing."""
    close = get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
