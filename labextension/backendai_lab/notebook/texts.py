"""What the notebook's tables and widgets say, in each language."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

LANGUAGES: Final = ("en", "ko", "ja", "th")


def choose_language(environ: Mapping[str, str] = os.environ) -> str:
    """Return the language that the environment asks for, if we speak it."""
    for name in ("BACKENDAI_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        language = environ.get(name, "").lower().replace("-", "_").split("_")[0]
        if language in LANGUAGES:
            return language
    return "en"


@cache
def load_texts(language: str) -> dict[str, str]:
    """Read one catalogue. Raises ``LookupError`` for a language we do not speak."""
    if language not in LANGUAGES:
        raise LookupError(f"{language!r} is none of {', '.join(LANGUAGES)}")
    file = files(__package__).joinpath(f"texts/{language}.json")
    texts: dict[str, str] = json.loads(file.read_text("utf-8"))
    return texts


class Words:
    """Says things in the language that is chosen at the moment."""

    def __init__(self, language: str | None = None) -> None:
        self.language = language or choose_language()

    def __call__(self, key: str, /, **fields: object) -> str:
        """Say *key*, with *fields* in their places."""
        return load_texts(self.language)[key].format(**fields)
