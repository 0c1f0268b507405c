"""Commands about the SSH key that one's sessions get."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import click
import msgspec

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.fields import KindType
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.own import find_own_keypair
from backendai_hub.core.fields import Page

_KEYPAIR: Final = click.Option(
    ["--keypair"], type=NounName("keypair"), help="Of this keypair, not the default."
)


async def _show(asking: Asking, *, keypair: str | None) -> None:
    found = await asking.client.ssh_keys.read(keypair or await find_own_keypair(asking))
    asking.output.show_one(found)


async def _make(asking: Asking, *, keypair: str | None, output: Path | None) -> None:
    key = keypair or await find_own_keypair(asking)
    with ExitStack() as stack:
        # It has to be there before the key is: that is shown once only.
        file = stack.enter_context(_new_file(output)) if output else None
        made = await asking.client.ssh_keys.make(key)
        if file is not None:
            file.write(made.private_key)
    if asking.output.as_json:
        asking.output.show_one(made)
        return
    document = msgspec.to_builtins(made)
    document.pop("private_key")
    asking.output.show_one(document)
    if output is not None:
        asking.output.note(f"the private key is in {output}; new sessions have it, too")
        return
    asking.output.note("the private key is shown this once; new sessions have it, too")
    for line in made.private_key.splitlines():
        asking.output.say(line)


def _new_file(path: Path) -> IO[str]:
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    return os.fdopen(made, "w")


async def _bring(asking: Asking, *, private_key: str, keypair: str | None) -> None:
    key = keypair or await find_own_keypair(asking)
    asking.output.show_one(await asking.client.ssh_keys.bring(key, private_key))


async def _remove(asking: Asking, *, keypair: str | None) -> None:
    await asking.client.ssh_keys.remove(keypair or await find_own_keypair(asking))


ssh_key = LazyGroup(
    "ssh-key",
    help="The SSH key that your sessions find in their home.",
    made={
        "show": lambda: make_command(
            "show", _show, [_KEYPAIR], help="Show its public part."
        ),
        "make": lambda: make_command(
            "make",
            _make,
            [
                _KEYPAIR,
                click.Option(
                    ["--output"],
                    type=click.Path(path_type=Path),
                    help="Write the private key into this new file.",
                ),
            ],
            help="Make a new one, in place of the one before.",
        ),
        "bring": lambda: make_command(
            "bring",
            _bring,
            [
                click.Argument(
                    ["private_key"],
                    metavar="FILE",
                    type=KindType("private_key", Page()),
                ),
                _KEYPAIR,
            ],
            help="Use the private key in FILE ('-' is standard input).",
        ),
        "remove": lambda: make_command(
            "remove", _remove, [_KEYPAIR], help="Give new sessions none."
        ),
    },
)
