"""Options that say on which nodes a session runs."""

from __future__ import annotations

from typing import Any, Final

import click


class LabelType(click.ParamType[Any]):
    """One label: ``gpu=h100``."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Read one option's value."""
        if not isinstance(value, str):
            return value
        name, equals, content = value.partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is no label; write NAME=VALUE", param, ctx)
        return {name: content}


class NodeType(click.ParamType[Any]):
    """One node's name, as a list of one, so that several are put together."""

    name = "NODE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Read one option's value."""
        del param, ctx
        return [value] if isinstance(value, str) else value


PLACE_OPTIONS: Final = (
    click.Option(
        ["--label", "labels"],
        type=LabelType(),
        multiple=True,
        help="Only on nodes with this label; with all of them, if several are named.",
    ),
    click.Option(
        ["--agent", "agents"],
        type=NodeType(),
        multiple=True,
        help="Only on these nodes; for administrators.",
    ),
    click.Option(
        ["--preferred-agent", "preferred_agents"],
        type=NodeType(),
        multiple=True,
        help="On these nodes, if they have room; for administrators.",
    ),
)
