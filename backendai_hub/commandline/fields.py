"""Fields of nouns as options: every kind of field is written in one way.

| Kind | Written |
| --- | --- |
| amounts | ``--slots cpu=8,mem=32g``, or the option once for each |
| lists | ``a,b``, or the option once for each; ``''`` is an empty list |
| hosts | ``--allowed-vfolder-hosts nfs=mount-in-session+upload-file`` |
| documents | JSON, or ``@file`` |
| longer texts and secrets | the name of a file; ``-`` is standard input |
| what may be without a value | ``none`` |
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from backendai_hub.commandline.names import find_names
from backendai_hub.core.fields import (
    Choice,
    Document,
    Field,
    Flag,
    Hosts,
    Kind,
    Moment,
    Networks,
    Number,
    Numbers,
    Page,
    Reference,
    Slots,
    Words,
    defaults_of,
    fields_of,
)
from backendai_hub.core.nouns import Noun

NONE: Final = "none"
NOTHING: Final = object()
"""The value that ``none`` stands for; None itself says that nothing was given."""
_MANY: Final = (Slots, Hosts, Words, Numbers, Networks)
_LONGEST_FILE: Final = 1 << 20


class KindType(click.ParamType[Any]):
    """How one kind of field is read from the command line."""

    name = "text"

    def __init__(self, field: str, kind: Kind) -> None:
        self.field = field
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Show what goes there."""
        del param, ctx
        if isinstance(self.kind, Choice):
            return f"[{'|'.join(self.kind.of)}]"
        if isinstance(self.kind, Reference):
            return self.kind.noun.upper()
        return _METAVARS.get(type(self.kind), "TEXT")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return what a request holds; the service checks the rest."""
        if not isinstance(value, str):
            return value
        try:
            read = read_text(self.kind, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return NOTHING if read is None else read

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer the words of a choice, and names of what is referred to."""
        del ctx, param
        if isinstance(self.kind, Choice):
            words: Iterable[str] = self.kind.of
        elif isinstance(self.kind, Reference):
            words = find_names(self.kind.noun, incomplete)
        else:
            words = ()
        return [
            click.shell_completion.CompletionItem(word)
            for word in words
            if word.startswith(incomplete)
        ]


def read_text(kind: Kind, text: str) -> Any:
    """Return what *text* means for a field of *kind*; raises ``ValueError``."""
    if getattr(kind, "optional", False) and text == NONE:
        return None
    read = _READERS.get(type(kind))
    return text if read is None else read(text)


def _split(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _read_pairs(text: str) -> dict[str, str]:
    found = {}
    for pair in _split(text):
        name, equals, amount = pair.partition("=")
        if not (equals and name.strip() and amount.strip()):
            raise ValueError(f"{pair!r} is not NAME=VALUE, such as cpu=8")
        if name.strip() in found:
            raise ValueError(f"{name.strip()!r} is given twice")
        found[name.strip()] = amount.strip()
    return found


def _read_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _read_flag(text: str) -> bool:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False}
    try:
        return {**words, "0": False}[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither yes nor no") from None


def _read_file(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(_LONGEST_FILE)
        with Path(name).open(encoding="utf-8") as file:
            return file.read(_LONGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: {error}") from None


def _read_document(text: str) -> Any:
    raw = _read_file(text[1:]) if text.startswith("@") else text
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no JSON: {error}") from None


def _read_hosts(text: str) -> dict[str, list[str]]:
    return {host: words.split("+") for host, words in _read_pairs(text).items()}


def _read_numbers(text: str) -> list[int]:
    return [_read_number(word) for word in _split(text)]


_READERS: Final[Mapping[type[Kind], Callable[[str], Any]]] = {
    Slots: _read_pairs,
    Hosts: _read_hosts,
    Words: _split,
    Networks: _split,
    Numbers: _read_numbers,
    Number: _read_number,
    Flag: _read_flag,
    Page: _read_file,
    Document: _read_document,
}
_METAVARS: Final[Mapping[type[Kind], str]] = {
    Slots: "SLOT=AMOUNT",
    Hosts: "HOST=PERMISSION+…",
    Moment: "TIME",
    Number: "NUMBER",
    Numbers: "NUMBER",
    Page: "FILE",
    Document: "JSON",
}


def make_options(noun: Noun, *, change: bool) -> list[click.Option]:
    """Make an option for each field that may be set, beside the name of a new item."""
    options = []
    for name, declared in fields_of(noun.shown).items():
        if (change and declared.once) or (not change and name == "name"):
            continue
        needed = not change and name not in defaults_of(noun.shown)
        options.append(_make_option(noun, name, declared, needed=needed))
    return options


def _make_option(
    noun: Noun, name: str, declared: Field, *, needed: bool
) -> click.Option:
    words = name.replace("_", "-")
    text = declared.help
    if isinstance(declared.kind, Flag):
        return click.Option([f"--{words}/--no-{words}", name], default=None, help=text)
    many = isinstance(declared.kind, _MANY)
    spellings = [f"--{words}"]
    if name in {"total_resource_slots", "resource_slots"}:
        spellings.append("--slots")
    if getattr(declared.kind, "optional", False):
        text += f" '{NONE}' takes it away."
    return click.Option(
        [*spellings, name],
        type=KindType(name, declared.kind),
        multiple=many,
        # Whose a new key is goes without saying.
        required=needed and not (noun.name == "keypair" and name == "user"),
        help=text,
    )


def gather_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given; options given several times are put together.

    Raises :class:`click.UsageError` for an amount given twice.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == ():
            continue
        if isinstance(value, tuple):
            found[name] = _put_together(name, value)
        else:
            found[name] = None if value is NOTHING else value
    return found


def _put_together(name: str, parts: tuple[Any, ...]) -> Any:
    if not isinstance(parts[0], dict):
        return [word for part in parts for word in part]
    together: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key in together:
                raise click.UsageError(f"--{name.replace('_', '-')}: {key!r} twice")
            together[key] = value
    return together


def read_row(noun: Noun, row: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a row of a table; empty cells are left out."""
    declared = fields_of(noun.shown)
    found = {}
    for name, text in row.items():
        if name not in declared:
            raise click.UsageError(
                f"there is no field {name!r}; the first line of the table names fields:"
                f" {', '.join(declared)}"
            )
        if text:
            try:
                found[name] = read_text(declared[name].kind, text)
            except ValueError as error:
                raise click.UsageError(f"{name}: {error}") from None
    return found
