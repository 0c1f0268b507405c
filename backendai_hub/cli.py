"""The ``backendai`` command: what is called first, and loads the rest when needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from backendai_hub import __version__
from backendai_hub.commandline.access import Access, Setting
from backendai_hub.commandline.lazy import Later, LazyGroup
from backendai_hub.commandline.profiles import default_store

_VERBS: Final = "backendai_hub.launcher.verbs"
_ROOM: Final = "backendai_hub.commandline"

_COMMANDS: Final = {
    "up": Later(f"{_VERBS}:up", "Bring the platform up and keep it up."),
    "down": Later(f"{_VERBS}:down", "Stop the platform; sessions keep running."),
    "status": Later(f"{_VERBS}:status", "Show the processes, nodes and sessions."),
    "doctor": Later(f"{_VERBS}:doctor", "Look for what this machine lacks."),
    "user": Later(f"{_VERBS}:user", "The platform's own accounts."),
    "login": Later(f"{_ROOM}.login:login", "Log in."),
    "logout": Later(f"{_ROOM}.login:logout", "Log out."),
    "whoami": Later(f"{_ROOM}.login:whoami", "Show who you are."),
    "profile": Later(f"{_ROOM}.login:profile", "Your logins on this machine."),
    "session": Later(f"{_ROOM}.sessions:session", "Start, see and end sessions."),
    "run": Later(f"{_ROOM}.jobs:run", "Run a command on the cluster."),
    "resources": Later(f"{_ROOM}.sessions:resources", "Show what is free now."),
    "agents": Later(f"{_ROOM}.nodes:agents", "Show the nodes of your groups."),
    "project": Later(f"{_ROOM}.groups:project", "Your projects."),
    "keypair": Later(f"{_ROOM}.groups:keypair", "Your keys for programs."),
    "folder": Later(f"{_ROOM}.folders:folder", "Data that outlives sessions."),
    "dotfile": Later(
        f"{_ROOM}.dotfiles:dotfile", "Small files that your sessions get."
    ),
    "ssh-key": Later(f"{_ROOM}.ssh_keys:ssh_key", "The SSH key of your sessions."),
    "image": Later(f"{_ROOM}.groups:image", "Environments to choose from."),
    "preset": Later(f"{_ROOM}.groups:preset", "Amounts that go together."),
    "resource-group": Later(
        f"{_ROOM}.groups:resource_group", "Nodes that are scheduled together."
    ),
    "audit": Later(f"{_ROOM}.audit:audit", "Who did what."),
    "password": Later(f"{_ROOM}.accounts:password", "Change your own password."),
    "admin": Later(f"{_ROOM}.groups:admin", "Administer people and resources."),
    "completion": Later(
        f"{_ROOM}.completion:completion", "Complete commands in your shell."
    ),
}


@click.group(
    cls=LazyGroup,
    later=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="backendai")
@click.pass_context
def main(context: click.Context) -> None:
    """Accelerator clusters for teams, with JupyterHub as the front door."""
    context.obj = Setting(
        default_store(os.environ), find_local=find_local, environ=os.environ
    )


def find_local(data_dir: Path | None) -> Access | None:
    """Return the way to this machine's platform, for who can read its keys."""
    try:
        from backendai_hub.launcher.local_access import find_access  # noqa: PLC0415 - slow
    except ModuleNotFoundError:
        return None  # this is no platform's machine: only the command line is here
    return find_access(data_dir)


if __name__ == "__main__":
    main()
