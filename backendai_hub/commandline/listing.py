"""What all commands that list things have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking

USUAL: Final = 50
LARGEST_PAGE: Final = 200


def read_filters(given: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return filters by field; several values of one field are alternatives."""
    found: dict[str, str] = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            raise click.UsageError(
                f"--filter {entry!r}: write FIELD=VALUE; the fields are"
                f" {', '.join(known)}"
            )
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def make_list_options(
    filters: Sequence[str], sorts: Sequence[str], fields: Sequence[str]
) -> list[click.Option]:
    """Make the options of a list."""
    return [
        click.Option(
            ["--filter", "filters"],
            multiple=True,
            metavar="FIELD=VALUE",
            help=f"Show only these; fields: {', '.join(filters)}.",
            shell_complete=lambda _c, _p, word: [
                f"{name}=" for name in filters if name.startswith(word)
            ],
        ),
        click.Option(["--search"], metavar="TEXT", help="Show only names with this."),
        click.Option(
            ["--order"],
            type=click.Choice([*sorts, *(f"-{name}" for name in sorts)]),
            metavar="FIELD",
            help=f"Sort by {', '.join(sorts)}; '-' before it is descending.",
        ),
        click.Option(
            ["--limit"],
            type=click.IntRange(min=1),
            default=USUAL,
            show_default=True,
            help="Show at most so many.",
        ),
        click.Option(["--all", "everything"], is_flag=True, help="Show all."),
        click.Option(
            ["--columns"],
            metavar="FIELD,…",
            help=f"Show these: {', '.join(fields)}.",
        ),
    ]


def read_columns(
    given: str | None, usual: Sequence[str], known: Sequence[str]
) -> list[str]:
    """Return the columns to show."""
    if given is None:
        return list(usual)
    chosen = [name.strip().replace("-", "_") for name in given.split(",")]
    for name in chosen:
        if name not in known:
            raise click.UsageError(
                f"--columns: there is no field {name!r}; there are {', '.join(known)}"
            )
    return chosen


async def show_items(
    asking: Asking,
    items: AsyncIterator[Any],
    *,
    columns: Sequence[str],
    limit: int | None,
) -> None:
    """Print items up to *limit*; say if there are more."""
    found: list[Any] = []
    more = False
    async for item in items:
        if limit is not None and len(found) == limit:
            more = True
            break
        found.append(item)
    asking.output.show_list(found, columns)
    if more:
        asking.output.note(f"there are more than {limit}; --all shows all of them")


def page_size(limit: int | None) -> int:
    """Return how many to ask for at once: one more tells whether there are more."""
    return LARGEST_PAGE if limit is None else min(limit + 1, LARGEST_PAGE)
