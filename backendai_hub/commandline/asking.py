"""How a command asks a platform, and how it ends.

Exit codes: 0 all went well; 1 refused or failed; 2 the command line is wrong; 3 the
platform does not answer; 4 not logged in; 5 some of many failed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from backendai_hub.commandline.access import Setting
from backendai_hub.commandline.output import Output, show_plain
from backendai_hub.commandline.profiles import default_store
from backendai_hub.core.errors import (
    HubError,
    UnauthenticatedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from backendai_hub.client.hub import HubClient

REFUSED: Final = 1
UNREACHABLE: Final = 3
NOT_LOGGED_IN: Final = 4
PARTLY: Final = 5
INTERRUPTED: Final = 130

Ask = Callable[..., Awaitable[None]]


class Asking:
    """What a command works with: the client, and what it prints to."""

    def __init__(self, client: HubClient, output: Output) -> None:
        self.client = client
        self.output = output
        self.code = 0

    def count_failures(self, failed: int, total: int) -> None:
        """Let the command end as one of which some, or all, has failed."""
        if failed:
            self.code = REFUSED if failed == total else PARTLY


PROFILE_OPTION: Final = click.Option(
    ["--profile"],
    metavar="NAME",
    help="Use this login instead of the one in use.",
    shell_complete=lambda ctx, _, word: _complete_profiles(ctx, word),
)
DATA_DIR_OPTION: Final = click.Option(
    ["--data-dir"],
    type=click.Path(path_type=Path, file_okay=False),
    help="Ask the platform of this machine whose data is here, as its administrator.",
)
JSON_OPTION: Final = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print JSON."
)

COMMON: Final = (PROFILE_OPTION, DATA_DIR_OPTION, JSON_OPTION)


def find_setting() -> Setting:
    """Return the setting of the running command."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Setting)
    return found or Setting(default_store(os.environ), environ=os.environ)


def asks(ask: Ask) -> Callable[..., None]:
    """Make a command's callback of *ask*, which is given an :class:`Asking`."""

    @wraps(ask)
    def call(
        *,
        profile: str | None,
        data_dir: Path | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        output = Output(as_json=as_json)

        async def run() -> int:
            async with access.open() as client:
                asking = Asking(client, output)
                await ask(asking, **options)
                return asking.code

        with ending():
            access = find_setting().find(profile, data_dir)
            code = asyncio.run(run())
        sys.exit(code)

    call.__click_params__ = [  # type: ignore[attr-defined]
        *reversed(COMMON),
        *getattr(ask, "__click_params__", []),
    ]
    return call


def make_command(
    name: str,
    ask: Ask,
    params: Sequence[click.Parameter],
    *,
    help: str,  # noqa: A002 - click's word
) -> click.Command:
    """Make a command that asks a platform."""
    return click.Command(name, callback=asks(ask), params=[*params, *COMMON], help=help)


class ending:  # noqa: N801 - used as a statement
    """Turn refusals into one sentence and an exit code; Ctrl-C into silence."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """End the program if something went wrong that has words."""
        if isinstance(error, HubError):
            fail(error)
        if isinstance(error, KeyboardInterrupt):
            sys.exit(INTERRUPTED)


def fail(error: HubError) -> NoReturn:
    """Say what went wrong, and end."""
    click.echo(f"error: {show_plain(error.message)}", err=True)
    if isinstance(error, UnauthenticatedError):
        sys.exit(NOT_LOGGED_IN)
    sys.exit(UNREACHABLE if isinstance(error, UnavailableError) else REFUSED)


def _complete_profiles(ctx: click.Context, word: str) -> list[str]:
    del ctx
    try:
        known = default_store(os.environ).read()
    except HubError:
        return []
    return [name for name in known if name.startswith(word)]
