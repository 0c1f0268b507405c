"""What the service says in sentences, in the language of whoever reads them.

Names of resources, states, times and lengths of time are written as the pages write
them (``packages/ui/src/wording.ts``); the rest is said by the phrase book.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import Final

from backendai_hub.core.sessions import SessionStatus
from backendai_lab.notebook.book import Book
from backendai_lab.notebook.texts import Words

# Names of slots as requests write them: `cpu`, `cuda.device:1g.10gb-mig`.
_SLOT: Final = re.compile(
    r"(?<![\w.:/-])(?:cpu|mem"
    r"|[a-z][a-z0-9-]*\.(?:device|shares)(?::[a-z0-9.-]*[a-z0-9])?)(?![\w/-])",
    re.ASCII,
)
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]"
    r"([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)(?: UTC|Z)"
)
_DURATION: Final = re.compile(r"[0-9]+ (?:d|h|min|s)(?: [0-9]+ (?:h|min|s))*")
_STEP: Final = re.compile(r"([0-9]+) (d|h|min|s)")
# A state, or the name of a session with its state: `train (ERROR)`.
_STATUS: Final = re.compile(r"[\w.-]+ \([A-Z]+\)|[A-Z]+", re.ASCII)
_LAST_WORD: Final = re.compile(r"[A-Z]+(?=\)?\Z)")
_VENDORS: Final = {"cuda": "NVIDIA", "rocm": "AMD", "fake": "Fake"}


def title_slot(slot: str, say: Words) -> str:
    """Name a resource as the pages do: ``CPU``, ``NVIDIA GPU``."""
    if slot in {"cpu", "mem"}:
        return say(f"slot.{slot}")
    family, _, detail = slot.partition(":")
    vendor = family.split(".")[0]
    named = " ".join(
        filter(None, [_VENDORS.get(vendor, vendor), detail.removesuffix("-mig")])
    )
    kind = "shares" if slot.endswith(".shares") else "device"
    return say(f"slot.{kind}", vendor=named)


def quote(text: str, say: Words) -> str:
    """Say a sentence of the service in the language of *say*, as far as it is known."""
    return _MOMENT.sub(_word_moment, _quote(text, say.language))


def show_time(iso: str) -> str:
    """Write a moment by the clock of whoever runs the notebook."""
    moment = datetime.fromisoformat(iso).astimezone()
    today = datetime.now(UTC).astimezone().date()
    return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d %H:%M")


@lru_cache(maxsize=1000)
def _quote(text: str, language: str) -> str:
    say = Words(language)
    book = load_book(language)
    said = text if book is None else book.say(text, partial(_word_value, say=say))
    return _SLOT.sub(lambda found: _title_within(found, say), said)


@cache
def load_book(language: str) -> Book | None:
    """Read the phrase book of *language*; English needs none."""
    file = files(__package__).joinpath(f"phrases/{language}.json")
    return Book(json.loads(file.read_text("utf-8"))) if file.is_file() else None


def _title_within(found: re.Match[str], say: Words) -> str:
    """Name a resource, in the middle of a sentence with a small letter."""
    title = title_slot(found[0], say)
    is_plain = title[:1].isupper() and title[1:2].islower() and "." not in found[0]
    return title[0].lower() + title[1:] if found.start() and is_plain else title


def _word_moment(found: re.Match[str]) -> str:
    try:
        return show_time(f"{found[1]}T{found[2]}+00:00")
    except ValueError:  # somebody has written a day that is none
        return found[0]


def _word_value(text: str, say: Words) -> str | None:
    """Write a value of a sentence, or return None if it is the service's word."""
    if _STATUS.fullmatch(text):
        return _LAST_WORD.sub(lambda found: _word_status(found[0], say), text)
    if _DURATION.fullmatch(text):
        return _STEP.sub(lambda step: say(f"unit.{step[2]}", count=step[1]), text)
    return None if _is_sentence(text) else text


def _word_status(status: str, say: Words) -> str:
    return say(status) if status in SessionStatus.__members__ else status


def _is_sentence(text: str) -> bool:
    """Tell whether letters are left when names of slots and times are taken out."""
    return any(map(str.isalpha, _MOMENT.sub("", _SLOT.sub("", text))))
