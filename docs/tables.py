"""Writes the tables that the documentation takes from the code.

``python docs/tables.py`` writes them to ``docs/source/reference/generated``;
``--check`` only tells whether what is there is what would be written.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from backendai_hub.cli import main as command_line
from backendai_hub.commandline.asking import COMMON
from backendai_hub.core import errors
from backendai_hub.core.access import MATRIX, RESOURCE_OF, Caller
from backendai_hub.core.events import EventKind
from backendai_hub.core.fields import Rank, defaults_of, fields_of
from backendai_hub.core.nouns import NOUNS
from backendai_hub.core.sessions import (
    DEADLINES,
    OCCUPYING,
    TERMINAL,
    TRANSITIONS,
    WAITING_WORDS,
    SessionStatus,
)

ROOT: Final = Path(__file__).resolve().parent.parent
GENERATED: Final = ROOT / "docs" / "source" / "reference" / "generated"
OPENAPI: Final = ROOT / "labextension" / "packages" / "api" / "openapi.json"


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def session_states() -> str:
    """Show every state of a session: what follows, how long, what is held."""

    def rows() -> Iterator[Sequence[str]]:
        for status in SessionStatus:
            seconds = DEADLINES.get(status)
            follows = [s for s in SessionStatus if s in TRANSITIONS[status]]
            yield (
                f"`{status}`",
                WAITING_WORDS.get(status, "") or _meaning(status),
                ", ".join(f"`{s}`" for s in follows) or "nothing",
                f"{seconds:g} s" if seconds else "–",
                "yes" if status in OCCUPYING else "no",
            )

    return format_table(
        ("State", "Meaning", "May become", "Deadline", "Holds resources"), rows()
    )


def _meaning(status: SessionStatus) -> str:
    if status is SessionStatus.RUNNING:
        return "JupyterLab answers"
    assert status in TERMINAL, status
    return {
        SessionStatus.TERMINATED: "ended: stopped by somebody, or by itself and well",
        SessionStatus.ERROR: "ended with a reason that says what went wrong",
        SessionStatus.CANCELLED: "taken from the queue before it was placed",
    }[status]


def access_matrix() -> str:
    """Show which caller may do which action, and to whose objects."""
    head = ["Action", "Resource", *Caller]
    rows = [
        [
            f"`{action}`",
            str(RESOURCE_OF[action] or "–"),
            *(str(reaches.get(caller, "–")) for caller in Caller),
        ]
        for action, reaches in MATRIX.items()
    ]
    return format_table(head, rows)


def error_codes() -> str:
    """Show every code that a refusal can carry."""
    found = [
        cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, errors.HubError)
    ]
    found.sort(key=lambda cls: (cls.status, cls.code))
    rows = [(f"`{cls.code}`", str(cls.status), cls.title) for cls in found]
    return format_table(("Code", "Status", "Title"), rows)


def event_kinds() -> str:
    """List the public names of events."""
    return "".join(f"- `{kind}`\n" for kind in EventKind)


def api_routes() -> str:
    """Show the routes of the API, as the committed description has them."""
    described: Mapping[str, Any] = json.loads(OPENAPI.read_text("utf-8"))
    rows = [
        (
            f"`{method.upper()}`",
            f"`{path}`",
            operation["summary"].replace("``", "`"),
            f"`{operation['x-action']}`",
        )
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    return format_table(("Method", "Path", "Does", "Action"), rows)


def commands() -> str:
    """Describe every ``backendai`` command and its options, but those of all."""
    top = click.Context(command_line, info_name="backendai")
    parts = []
    for words, command in _walk(command_line, top, "backendai"):
        rows = [
            (f"`{option}`", text)
            for parameter in command.params
            if isinstance(parameter, click.Option) and parameter not in COMMON
            for option, text in [_describe(parameter, top)]
        ]
        table = format_table(("Option", "Meaning"), rows) if rows else ""
        said = inspect.cleandoc(command.help or "").replace("``", "`")
        parts.append(f"## `{words}`\n\n{said}\n\n{table}")
    return "\n".join(parts)


def _walk(
    group: click.Group, context: click.Context, words: str
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with the words that call it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _walk(command, context, f"{words} {name}")
            continue
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        given = [str(a.human_readable_name).upper() for a in arguments]
        yield " ".join([words, name, *given]), command


def _describe(option: click.Option, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    assert record is not None, option.name
    words, text = record
    return words.replace("|", r"\|"), " ".join(text.split())


def nouns() -> str:
    """Describe every noun and each of its fields."""
    parts = []
    for noun in NOUNS:
        defaults = defaults_of(noun.shown)
        rows = [
            (
                f"`{name}`",
                type(declared.kind).__name__.lower(),
                f"`{_default(defaults[name])}`" if name in defaults else "required",
                ("fixed, " if declared.once else "") + _givers(declared.by),
                declared.help,
            )
            for name, declared in fields_of(noun.shown).items()
        ]
        parts.append(
            f"## {noun.name.replace('-', ' ').capitalize()}\n\n"
            f"{inspect.getdoc(noun.shown)}\n\n`api/{noun.plural}`; filters:"
            f" {', '.join(f'`{f}`' for f in noun.filters)}; sorted by"
            f" {', '.join(f'`{s}`' for s in noun.sorts)}.\n\n"
            + format_table(("Field", "Kind", "Default", "Given by", "Meaning"), rows)
        )
    return "\n".join(parts)


def _default(value: Any) -> str:
    document = msgspec.to_builtins(value)
    text = msgspec.json.encode(document).decode()
    return text if len(text) <= 40 else "…"


def _givers(rank: Rank) -> str:
    return "any of them" if rank is Rank.ANYBODY else str(rank)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "session-states.md": session_states,
    "access-matrix.md": access_matrix,
    "error-codes.md": error_codes,
    "event-kinds.md": event_kinds,
    "api-routes.md": api_routes,
    "commands.md": commands,
    "nouns.md": nouns,
}


def find_stale() -> list[str]:
    """List the tables that are not as the code says."""
    return [
        name
        for name, build in TABLES.items()
        if not (GENERATED / name).is_file()
        or (GENERATED / name).read_text("utf-8") != build()
    ]


def main() -> None:
    """Run from the command line."""
    if "--check" in sys.argv[1:]:
        stale = find_stale()
        if stale:
            sys.exit(f"run `python docs/tables.py`; not up to date: {', '.join(stale)}")
        return
    GENERATED.mkdir(parents=True, exist_ok=True)
    for name, build in TABLES.items():
        (GENERATED / name).write_text(build(), "utf-8")


if __name__ == "__main__":
    main()
