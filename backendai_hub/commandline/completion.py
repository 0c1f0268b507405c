"""Completion of commands in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what a shell needs to complete commands, options and names.

    In bash: put ``source <(backendai completion bash)`` into ``~/.bashrc``.
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = context.find_root()
    made = kind(root.command, {}, "backendai", "_BACKENDAI_COMPLETE")
    # The check of bash's version starts a bash; the script says itself what it needs.
    click.echo(made.source_template % made.source_vars())
