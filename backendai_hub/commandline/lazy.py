"""Groups of commands that are loaded when they are called, so that help is quick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click


class Later(NamedTuple):
    """A command to load: ``module:name``, and what one line of help says of it."""

    source: str
    help: str


class LazyGroup(click.Group):
    """A group whose commands are loaded, or made, on first use."""

    def __init__(
        self,
        *arguments: Any,
        later: Mapping[str, Later] | None = None,
        made: Mapping[str, Callable[[], click.Command]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._later = dict(later or {})
        self._made = dict(made or {})

    def add_made(self, made: Mapping[str, Callable[[], click.Command]]) -> None:
        """Add commands that are made on first use."""
        self._made.update(made)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all of them, loaded or not."""
        return sorted({*super().list_commands(ctx), *self._later, *self._made})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command if it has not been."""
        if cmd_name not in self.commands:
            if cmd_name in self._later:
                self.add_command(_load(self._later[cmd_name].source), cmd_name)
            elif cmd_name in self._made:
                self.add_command(self._made[cmd_name](), cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands, without loading what says its line itself."""
        rows = []
        for name in self.list_commands(ctx):
            if name in self._later:
                rows.append((name, self._later[name].help))
            else:
                command = self.get_command(ctx, name)
                if command is not None and not command.hidden:
                    rows.append((name, command.get_short_help_str(limit=70)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _load(source: str) -> click.Command:
    module, _, name = source.partition(":")
    try:
        loaded: click.Command = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("backendai"):
            raise
        raise click.ClickException(
            f"this command needs {error.name}, which is not installed; 'pip install"
            " backendai-hub[hub]' brings it"
        ) from error
    return loaded
