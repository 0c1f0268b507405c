"""Commands that do many things at once; each ends for itself."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.fields import gather_fields, make_options, read_row
from backendai_hub.core.fields import fields_of
from backendai_hub.core.nouns import Noun

FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
_CSV: Final = click.Option(
    ["--csv", "csv_file"],
    type=FILE,
    help="A table whose first line names fields; one item in each line.",
)
_NUMBERING: Final = (
    click.Option(["--prefix"], help="What numbered names begin with."),
    click.Option(["--count"], type=click.IntRange(1, 1000), help="How many of them."),
    click.Option(
        ["--first"],
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help="The first number.",
    ),
)


def make_bulk(noun: Noun) -> click.Command:
    """Make the command that does many things to items of a noun."""

    async def ask(asking: Asking, *, file: Path) -> None:
        wanted = _read_bulk(file)
        answer = await asking.client.nouns(noun.name).bulk(
            create=wanted.create,
            update={entry.reference: entry.fields for entry in wanted.update},
            purge=wanted.purge,
        )
        show_results(asking, answer)

    argument = click.Argument(["file"], type=FILE)
    text = (
        f"Make, change and remove many {noun.plural.replace('-', ' ')}, as a JSON file"
        ' says: {"create": [{…}], "update": [{"reference": …, "fields": {…}}],'
        ' "purge": […]}. Each ends for itself.'
    )
    return make_command("bulk", ask, [argument], help=text)


class _ChangeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reference: str
    fields: dict[str, Any]


class _BulkFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    create: list[dict[str, Any]] = []
    update: list[_ChangeEntry] = []
    purge: list[str] = []


def _read_bulk(file: Path) -> _BulkFile:
    try:
        return msgspec.json.decode(read_bytes(file), type=_BulkFile)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"{file}: {error}") from None


def make_bulk_add(noun: Noun) -> click.Command:
    """Make the command that makes many items of a noun."""
    options = make_options(noun, change=False)
    for option in options:
        option.required = False

    async def ask(
        asking: Asking,
        *,
        csv_file: Path | None,
        prefix: str | None = None,
        count: int | None = None,
        first: int = 1,
        **given: Any,
    ) -> None:
        common = gather_fields(given)
        rows = [] if csv_file is None else _read_rows(noun, csv_file)
        if prefix is not None and count is not None:
            rows += [{"name": name} for name in number_names(prefix, count, first)]
        elif prefix is not None or count is not None or csv_file is None:
            raise click.UsageError("give --csv, or --prefix with --count")
        answer = await asking.client.nouns(noun.name).bulk(
            create=[{**common, **row} for row in rows]
        )
        show_results(asking, answer)

    numbering = _NUMBERING if "name" in fields_of(noun.shown) else ()
    params = [_CSV, *numbering, *options]
    text = (
        f"Make many {noun.plural.replace('-', ' ')}: numbered, or from a table."
        " Options hold for all of them; each ends for itself."
    )
    return make_command("bulk-add", ask, params, help=text)


def number_names(prefix: str, count: int, first: int) -> list[str]:
    """Return numbered names of equal length: student01 … student10."""
    last = first + count - 1
    width = len(str(last))
    return [f"{prefix}{number:0{width}d}" for number in range(first, last + 1)]


def _read_rows(noun: Noun, file: Path) -> list[dict[str, Any]]:
    text = read_bytes(file).decode("utf-8-sig", "replace")
    return [
        read_row(noun, {k.strip(): (v or "").strip() for k, v in row.items() if k})
        for row in csv.DictReader(text.splitlines())
    ]


def read_bytes(file: Path) -> bytes:
    """Return what is in *file*, or on standard input if it is ``-``."""
    with click.open_file(str(file), "rb") as stream:
        content: bytes = stream.read()
    return content


def show_results(asking: Asking, answer: Any) -> None:
    """Print how each of many ended; the exit code tells whether all went well."""
    if asking.output.as_json:
        asking.output.show_one(answer)
    else:
        results = msgspec.to_builtins(answer.results)
        columns = ["what", "name", "result", "reason"]
        if any(result.get("secret") for result in results):
            columns.insert(2, "secret")
        asking.output.show_list(_describe(results), columns)
    asking.count_failures(answer.failed, len(answer.results))


def _describe(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "what": result.get("verb"),
            "name": result.get("name") or result.get("id") or f"#{result.get('index')}",
            "secret": result.get("secret"),
            "result": "ok" if result.get("error") is None else "failed",
            "reason": result.get("error"),
        }
        for result in results
    ]
