"""Commands about the audit."""

from __future__ import annotations

import sys
from typing import Final

import click

from backendai_hub.api.audit import AuditEntry
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.listing import (
    make_list_options,
    page_size,
    read_columns,
    read_filters,
    show_items,
)

_FILTERS: Final = ("actor", "action", "object_kind", "object", "result")
_FILTERS_OF_TIME: Final = (*_FILTERS, "since", "until")
_FIELDS: Final = AuditEntry.__struct_fields__
_COLUMNS: Final = ("at", "actor", "action", "object_name", "result", "message")


async def _list(
    asking: Asking,
    *,
    filters: tuple[str, ...],
    search: str | None,
    columns: str | None,
    limit: int,
    everything: bool,
) -> None:
    most = None if everything else limit
    items = asking.client.audit.list(
        page_size=page_size(most),
        search=search,
        **read_filters(filters, _FILTERS_OF_TIME),
    )
    chosen = read_columns(columns, _COLUMNS, _FIELDS)
    await show_items(asking, items, columns=chosen, limit=most)


async def _export(asking: Asking, *, form: str, filters: tuple[str, ...]) -> None:
    chosen = read_filters(filters, _FILTERS_OF_TIME)
    async for part in asking.client.audit.export(format=form, **chosen):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


async def _verify(asking: Asking) -> None:
    report = await asking.client.audit.verify()
    asking.output.show_one(report)
    if not report.ok:
        asking.count_failures(1, 1)


_LIST_OPTIONS: Final = [
    option
    for option in make_list_options(_FILTERS_OF_TIME, (), _FIELDS)
    if option.name != "order"
]
_FILTER: Final = next(o for o in _LIST_OPTIONS if o.name == "filters")

audit = LazyGroup(
    "audit",
    help="Who did what.",
    made={
        "list": lambda: make_command(
            "list", _list, _LIST_OPTIONS, help="List acts, the newest first."
        ),
        "export": lambda: make_command(
            "export",
            _export,
            [
                click.Option(
                    ["--format", "form"],
                    type=click.Choice(["csv", "jsonl"]),
                    default="csv",
                    show_default=True,
                    help="A table, or lines of JSON.",
                ),
                _FILTER,
            ],
            help="Write all acts to standard output.",
        ),
        "verify": lambda: make_command(
            "verify",
            _verify,
            [],
            help="Check that nothing was altered or removed; exit code 1 if it was.",
        ),
    },
)
