"""Says the service's English sentences in another language, as the pages do.

This is what ``packages/ui/src/phrases/book.ts`` is to the pages, with the same books: a
sentence is said by the *template* it was made from, ``{slot}: asks {amount}``, and so
is what stands in its places. A table of examples holds both to the same words.

No text is ever run as a pattern: a template is a row of literals that are looked for
one after the other, so its cost grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

Word = Callable[[str], str | None]
"""How a name or an amount is written in the reader's language; None as it is."""

# Places in which one word is the service's; in all others it is a name.
_WORDED: Final = re.compile(
    r"(?:kind|noun|role|status|state|stop|slot|type|what|words|why|said)[0-9]*"
)
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_PLACE: Final = re.compile(r"\{(\w*)\}", re.ASCII)
_AMOUNT: Final = re.compile(r"[0-9][0-9.]*(?: (?:[KMGTPE]iB|bytes))?")
_LONGEST_AMOUNT: Final = 24
# Longer texts are logs, not sentences.
_LONGEST: Final = 2000
_DEEPEST: Final = 5
# How many parts of one sentence are looked up; each costs a walk through the book.
_MOST_LOOKUPS: Final = 60
_MOST_PARTS: Final = 16
# A template with fewer letters says little; what stands in it is known, or short.
_LIGHT_NAMED: Final = 9
_LIGHT_NAMELESS: Final = 12
# What has more words is a sentence, and no name.
_FEW_WORDS: Final = 4


class Piece(NamedTuple):
    """A part of what is said; *english* where nobody has translated it."""

    text: str
    english: bool = False


Pieces = list[Piece]


class Template:
    """A sentence with places, and what it is in the other language."""

    def __init__(self, english: str, translation: str) -> None:
        parts = _PLACE.split(english)
        self.literals: Final = parts[::2]
        self.places: Final = parts[1::2]
        said = enumerate(_PLACE.split(translation))
        self.said: Final[list[str | int]] = [
            self.places.index(part) if at % 2 else part for at, part in said
        ]
        letters = "".join(self.literals)
        self.length: Final = len(letters)
        least = _LIGHT_NAMED if self.literals[0] else _LIGHT_NAMELESS
        self.is_light: Final = sum(map(str.isalpha, letters)) < least
        """Whether it says so little that only a known sentence can stand in it."""

    def is_rest(self, at: int) -> bool:
        """Tell whether the place *at* holds all that comes behind ``main: ``."""
        return at == len(self.literals) - 2 and self.literals[at].endswith(": ")

    def match(self, text: str) -> list[str] | None:
        """Return what stands in the places if it says *text*; the shortest that can."""
        head, tail = self.literals[0], self.literals[-1]
        end = len(text) - len(tail)
        fits = text.startswith(head) and text.endswith(tail)
        if end < len(head) or not fits:
            return None
        values = []
        start = len(head)
        for following, literal in enumerate(self.literals[1:-1], 2):
            at = text.find(literal, start)
            if at < 0 or at + len(literal) > end:
                return None
            if literal == " ":
                last = following == len(self.literals) - 1
                until = end if last else text.find(self.literals[following], at + 1)
                at = _last_blank(text, start, at, end if until < 0 else until)
            values.append(text[start:at])
            start = at + len(literal)
        return [*values, text[start:end]]


class Book:
    """The sentences of the service in one language."""

    def __init__(self, phrases: Mapping[str, str]) -> None:
        self._whole: dict[str, str] = {}
        self._shelves: dict[str, list[Template]] = {}
        for english, said in phrases.items():
            template = Template(english, said)
            if template.places:
                shelf = _shelf_of(template.literals[0])
                self._shelves.setdefault(shelf, []).append(template)
            else:
                self._whole[english] = said
        for templates in self._shelves.values():
            templates.sort(key=lambda template: -template.length)

    def say(self, text: str, word: Word) -> str:
        """Say *text*, as far as somebody has translated it."""
        reading = _Reading(self, word)
        too_long = len(text) > _LONGEST
        pieces = reading.leave(text) if too_long else reading.say(text, 0)
        return "".join(piece.text for piece in pieces)

    def exactly(self, text: str) -> Pieces | None:
        """Say a sentence without places."""
        said = self._whole.get(text)
        return None if said is None else [Piece(said)]

    def find(self, text: str, *, strict: bool) -> tuple[Template, list[str]] | None:
        """Find the template that says most of *text*, and what stands in its places."""
        best: tuple[Template, list[str]] | None = None
        for shelf in dict.fromkeys(("", _shelf_of(text))):
            for template in self._shelves.get(shelf, ()):
                if best and best[0].length >= template.length:
                    break
                values = template.match(text)
                if values and not (strict and any("; " in value for value in values)):
                    best = template, values
                    break
        return best


class _Reading:
    """One sentence on its way through the book."""

    def __init__(self, book: Book, word: Word) -> None:
        self._book = book
        self._word = word
        self._lookups = _MOST_LOOKUPS

    def say(self, text: str, depth: int) -> Pieces:
        return self._translate(text, depth) or self.leave(text)

    def leave(self, text: str) -> Pieces:
        """Leave it as it is, but for what every reader calls by another name."""
        said = self._word(text)
        return [Piece(text, _is_english(text)) if said is None else Piece(said)]

    def _translate(self, text: str, depth: int) -> Pieces | None:
        known = self._book.exactly(text)
        if known:
            return known
        if self._lookups <= 0 or depth > _DEEPEST or " " not in text:
            return None
        return _best(
            [
                partial(self._with_bracket, text, depth, strict=True),
                partial(self._fill, text, depth, strict=True),
                partial(self._divide, text, "; ", depth),
                partial(self._fill, text, depth, strict=False),
                partial(self._divide, text, ", ", depth),
                partial(self._around_colon, text, depth),
                partial(self._with_bracket, text, depth, strict=False),
            ]
        )

    def _fill(self, text: str, depth: int, *, strict: bool) -> Pieces | None:
        if self._lookups <= 0:
            return None
        self._lookups -= 1
        found = self._book.find(text, strict=strict)
        if found is None:
            return None
        template, values = found
        said = [
            self._value(value, depth + 1, is_word=bool(_WORDED.fullmatch(place)))
            for value, place in zip(values, template.places, strict=True)
        ]
        if template.is_light and any(
            _left_in(pieces) and not template.is_rest(at)
            for at, pieces in enumerate(said)
        ):
            return None
        filled = (
            [Piece(part)] if isinstance(part, str) else said[part]
            for part in template.said
        )
        return [piece for pieces in filled for piece in pieces]

    def _value(self, text: str, depth: int, *, is_word: bool = False) -> Pieces:
        """Say what stands in a place: most often a name, which is not translated."""
        is_name = _QUOTED.fullmatch(text) or not (is_word or " " in text)
        said = None if is_name else self._translate(text, depth)
        if said:
            return said
        is_list = all(len(e.split(" ")) <= _FEW_WORDS for e in text.split(", "))
        return [Piece(self._word(text) or text)] if is_list else self.leave(text)

    def _divide(self, text: str, by: str, depth: int) -> Pieces | None:
        """Say sentences that are put together, as many at once as make one."""
        parts = text.split(by)
        if not 2 <= len(parts) <= _MOST_PARTS:
            return None
        said: Pieces = []
        known, start = False, 0
        while start < len(parts):
            pieces, after = self._longest(parts, start, by, depth)
            known = known or pieces is not None
            if pieces is None:
                other = self.say if by == "; " else self._value
                pieces = other(parts[start], depth + 1)
            said += [Piece(by), *pieces] if start else pieces
            start = after
        return said if known else None

    def _longest(
        self, parts: Sequence[str], start: int, by: str, depth: int
    ) -> tuple[Pieces | None, int]:
        for after in range(len(parts), start, -1):
            if after - start < len(parts):
                text = by.join(parts[start:after])
                pieces = self._book.exactly(text)
                if pieces is None and " " in text:
                    pieces = self._fill(text, depth + 1, strict=True)
                if pieces is not None:
                    return pieces, after
        return None, start + 1

    def _around_colon(self, text: str, depth: int) -> Pieces | None:
        """Say ``labels: {sentence}``, or ``{sentence}: what somebody has written``."""
        head, colon, rest = text.partition(": ")
        if not head or not colon:
            return None
        said = self._translate(rest, depth + 1)
        if said is not None:
            return [*self._value(head, depth + 1), Piece(colon), *said]
        named = self._translate(head, depth + 1)
        return named and [*named, Piece(colon), *self._value(rest, depth + 1)]

    def _with_bracket(self, text: str, depth: int, *, strict: bool) -> Pieces | None:
        """Say ``{sentence} ({sentence})``; a name may end in a bracket, too."""
        head, bracket, inside = text.rpartition(" (")
        if not head or not text.endswith(")"):
            return None
        inside = inside[:-1]
        why = self._translate(inside, depth + 1)
        if strict and not why:
            return None
        said = self._translate(head, depth + 1)
        if not said:
            return None
        why = why or self._value(inside, depth + 1)
        return [*said, Piece(bracket), *why, Piece(")")]


def _best(ways: Sequence[Callable[[], Pieces | None]]) -> Pieces | None:
    """Take the first that leaves nothing in English, or the one that leaves least."""
    best: Pieces | None = None
    for way in ways:
        said = way()
        if said and (best is None or _left_in(said) < _left_in(best)):
            best = said
        if best is not None and not _left_in(best):
            break
    return best


_TWO_WORDS: Final = re.compile(r"[^\W\d_] +[^\W\d_]")


def _is_english(text: str) -> bool:
    """Tell whether it is more than a name."""
    return bool(_TWO_WORDS.search(text)) and not _QUOTED.fullmatch(text)


def _left_in(pieces: Pieces) -> int:
    return sum(len(piece.text) for piece in pieces if piece.english)


def _shelf_of(text: str) -> str:
    return "" if len(text) < 3 else text[:3]


def _is_amount(text: str) -> bool:
    return len(text) < _LONGEST_AMOUNT and bool(_AMOUNT.fullmatch(text))


def _last_blank(text: str, start: int, first: int, until: int) -> int:
    """Where ``mem 64 GiB`` and ``64 GiB mem`` are two: at the amount."""
    at = text.rfind(" ", 0, until)
    while at > first:
        if _is_amount(text[at + 1 : until]) or _is_amount(text[start:at]):
            return at
        at = text.rfind(" ", 0, at)
    return first
