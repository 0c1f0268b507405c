"""What commands print: tables for people, tab-separated lines or JSON for programs.

Whatever comes from a server is only text here: characters that would steer a terminal
are written as what they are.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

_STEERING = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def show_plain(text: str) -> str:
    """Write *text* so that it cannot steer a terminal, on one line."""
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii")
        if unicodedata.category(c) in _STEERING
        else c
        for c in text
    )


def show_value(value: Any) -> str:
    """Write a value of an answer as people do."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict():
            return show_plain(
                " ".join(f"{k}={show_value(v)}" for k, v in value.items())
            )
        case list() | tuple():
            return show_plain(",".join(map(show_value, value)))
        case _:
            return show_plain(str(value))


class Output:
    """Standard output, for a person or a program."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.is_terminal = sys.stdout.isatty()

    def show_list(self, items: Sequence[Any], columns: Sequence[str]) -> None:
        """Print items: a table, lines without a head, or a JSON array."""
        if self.as_json:
            self._json(items)
            return
        rows = [[show_value(r.get(c)) for c in columns] for r in map(_document, items)]
        if not self.is_terminal:
            for row in rows:
                click.echo("\t".join(row))
        elif rows:
            self._table([c.replace("_", " ") for c in columns], rows)
        else:
            click.echo("nothing there", err=True)

    def show_one(self, item: Any) -> None:
        """Print all fields of one item."""
        if self.as_json:
            self._json(item)
            return
        document = _document(item)
        width = max((len(name) for name in document), default=0)
        for name, value in document.items():
            shown = show_value(value)
            if self.is_terminal:
                head = click.style(f"{name.replace('_', ' '):<{width}}", dim=True)
                click.echo(f"{head}  {shown}")
            else:
                click.echo(f"{name}\t{shown}")

    def say(self, text: str, item: Any = None) -> None:
        """Tell in a sentence what was done; programs get *item* instead."""
        if self.as_json:
            self._json(item)
        else:
            click.echo(show_plain(text))

    def note(self, text: str) -> None:
        """Tell a person something beside the answer."""
        click.echo(show_plain(text), err=True)

    def _json(self, document: Any) -> None:
        raw = msgspec.json.encode(document)
        indented = msgspec.json.format(raw, indent=2) if self.is_terminal else raw
        click.echo(indented.decode())

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only terminals need it
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in head:
            table.add_column(Text(name), overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        Console(markup=False, highlight=False, emoji=False).print(table)


def _document(item: Any) -> Mapping[str, Any]:
    document: Mapping[str, Any] = (
        item if isinstance(item, Mapping) else msgspec.to_builtins(item)
    )
    return document
