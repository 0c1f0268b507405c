"""Commands about nodes."""

from __future__ import annotations

from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.listing import (
    make_list_options,
    page_size,
    read_columns,
    read_filters,
    show_items,
)
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.places import LabelType
from backendai_hub.core.agents import Agent, AgentStatus

_COLUMNS: Final = (
    "name",
    "status",
    "resource_group",
    "schedulable",
    "labels",
    "used",
    "capacity",
)
_FIELDS: Final = Agent.__struct_fields__
_FILTERS: Final = ("resource_group", "status", "schedulable", "architecture", "runtime")
_SORTS: Final = ("name", "status", "resource_group", "architecture", "last_seen_at")
_SUMMARY: Final = (
    "name",
    "status",
    "resource_group",
    "architecture",
    "schedulable",
    "used",
    "capacity",
)
_NODE: Final = click.Argument(["node"])


async def _list(
    asking: Asking,
    *,
    filters: tuple[str, ...],
    columns: str | None,
    limit: int,
    everything: bool,
    **paging: str | None,
) -> None:
    chosen = read_columns(columns, _COLUMNS, _FIELDS)
    most = None if everything else limit
    items = asking.client.nodes.list(
        page_size=page_size(most), **read_filters(filters, _FILTERS), **paging
    )
    await show_items(asking, items, columns=chosen, limit=most)


async def _info(asking: Asking, *, node: str) -> None:
    asking.output.show_one(await asking.client.nodes.get(node))


async def _update(
    asking: Asking,
    *,
    node: str,
    labels: tuple[dict[str, str], ...],
    forgotten: tuple[str, ...],
    force: bool,
    **changes: Any,
) -> None:
    given: dict[str, str | None] = dict.fromkeys(forgotten)
    for label in labels:
        given |= label
    if not given and all(change is None for change in changes.values()):
        raise click.UsageError("name at least one thing to change")
    changed = await asking.client.nodes.update(
        node, labels=given, force=force, **changes
    )
    asking.output.show_one(changed)


async def _drain(asking: Asking, *, node: str, reason: str, by: str | None) -> None:
    asking.output.show_one(await asking.client.nodes.drain(node, reason=reason, by=by))


async def _undrain(asking: Asking, *, node: str) -> None:
    asking.output.show_one(await asking.client.nodes.undrain(node))


async def _summaries(asking: Asking, **filters: Any) -> None:
    found = [one async for one in asking.client.nodes.summaries(**filters)]
    asking.output.show_list(found, _SUMMARY)


agents = make_command(
    "agents",
    _summaries,
    [
        click.Option(
            ["--resource-group"],
            type=NounName("resource-group"),
            help="Only those of this group.",
        ),
        click.Option(["--search"], metavar="TEXT", help="Only those so named."),
        click.Option(
            ["--status"],
            type=click.Choice([*AgentStatus], case_sensitive=False),
            help="Only those.",
        ),
        click.Option(["--architecture"], help="Only those, such as x86_64."),
    ],
    help="Show the nodes that your sessions can run on, and how full they are.",
)
node = LazyGroup(
    "node",
    help="The nodes on which sessions run.",
    made={
        "list": lambda: make_command(
            "list",
            _list,
            make_list_options(_FILTERS, _SORTS, _FIELDS),
            help="List nodes.",
        ),
        "info": lambda: make_command("info", _info, [_NODE], help="Show one node."),
        "drain": lambda: make_command(
            "drain",
            _drain,
            [
                _NODE,
                click.Option(
                    ["--reason"], required=True, help="Why; those who wait are told."
                ),
                click.Option(
                    ["--by"],
                    metavar="TIME",
                    help="When it ought to be empty, such as 2026-03-02T08:00:00Z.",
                ),
            ],
            help="Let nothing new start on a node; what runs goes on.",
        ),
        "undrain": lambda: make_command(
            "undrain", _undrain, [_NODE], help="Let sessions start on a node again."
        ),
        "update": lambda: make_command(
            "update",
            _update,
            [
                _NODE,
                click.Option(
                    ["--resource-group"],
                    type=NounName("resource-group"),
                    help="Move it there.",
                ),
                click.Option(
                    ["--schedulable/--no-schedulable"],
                    default=None,
                    help="Whether it takes new sessions; what runs goes on.",
                ),
                click.Option(
                    ["--label", "labels"],
                    type=LabelType(),
                    multiple=True,
                    help="Label it so, whatever it says itself; NAME= takes one away.",
                ),
                click.Option(
                    ["--forget-label", "forgotten"],
                    multiple=True,
                    metavar="NAME",
                    help="Leave a label to the node itself again.",
                ),
                click.Option(
                    ["--force"],
                    is_flag=True,
                    help="Move it although sessions run on it; these go on.",
                ),
            ],
            help="Change a node's group or labels, or whether it takes new sessions.",
        ),
    },
)
