"""Options that say on which nodes a session runs, and which folders it has."""

from __future__ import annotations

from typing import Any, Final

import click

from backendai_hub.commandline.names import find_names
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.mounts import read_mount


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


class MountType(click.ParamType[Any]):
    """One folder to mount, as a list of one, so that several are put together."""

    name = "FOLDER[:TARGET][:ro]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Read one option's value."""
        if not isinstance(value, str):
            return value
        try:
            return [read_mount(value)]
        except InvalidRequestError as error:
            self.fail(error.message, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer the names of folders."""
        del ctx, param
        names = find_names("folder", incomplete)
        return [click.shell_completion.CompletionItem(name) for name in names]


PLACE_OPTIONS: Final = (
    click.Option(
        ["-v", "--mount", "mounts"],
        type=MountType(),
        multiple=True,
        metavar="FOLDER[:TARGET][:ro]",
        help="With this folder, or a part of it (NAME/PATH); below /home/work, or at"
        " TARGET.",
    ),
    click.Option(
        ["--automatic-mounts/--no-automatic-mounts", "automatic_mounts"],
        default=True,
        help="With your folders whose names begin with a dot, or without.",
    ),
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
