"""Commands about dotfiles: of one's own key, or of a keypair, project or domain."""

from __future__ import annotations

from typing import Final

import click

from backendai_hub.client.tenancy import AccessKind
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.fields import KindType
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.own import find_own_keypair
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.fields import Page

_KINDS: Final[tuple[AccessKind, ...]] = ("domain", "project", "keypair")
_OWNERS: Final = tuple(
    click.Option([f"--{kind}"], type=NounName(kind), help=f"Of this {kind}.")
    for kind in _KINDS
)
_PATH: Final = click.Argument(["path"])


async def _find_owner(
    asking: Asking, given: dict[str, str | None]
) -> tuple[AccessKind, str]:
    named: list[tuple[AccessKind, str]] = [
        (kind, name) for kind in _KINDS if (name := given[kind]) is not None
    ]
    if len(named) > 1:
        raise click.UsageError("name one of --domain, --project and --keypair")
    if named:
        return named[0]
    return "keypair", await find_own_keypair(asking)


async def _list(asking: Asking, **given: str | None) -> None:
    kind, owner = await _find_owner(asking, given)
    found = await asking.client.dotfiles.read(kind, owner)
    asking.output.show_list(found, ("path", "permission"))


async def _show(asking: Asking, *, path: str, **given: str | None) -> None:
    kind, owner = await _find_owner(asking, given)
    for file in await asking.client.dotfiles.read(kind, owner):
        if file.path == path:
            asking.output.show_one(file)
            return
    raise NotFoundError(f"there is no dotfile {path!r} of this {kind}")


async def _put(
    asking: Asking, *, path: str, content: str, permission: str, **given: str | None
) -> None:
    kind, owner = await _find_owner(asking, given)
    kept = await asking.client.dotfiles.read(kind, owner)
    wanted = [file for file in kept if file.path != path]
    wanted.append(Dotfile(path=path, permission=permission, content=content))
    found = await asking.client.dotfiles.write(kind, owner, wanted)
    asking.output.show_list(found, ("path", "permission"))


async def _remove(asking: Asking, *, path: str, **given: str | None) -> None:
    kind, owner = await _find_owner(asking, given)
    kept = await asking.client.dotfiles.read(kind, owner)
    wanted = [file for file in kept if file.path != path]
    if len(wanted) == len(kept):
        raise NotFoundError(f"there is no dotfile {path!r} of this {kind}")
    found = await asking.client.dotfiles.write(kind, owner, wanted)
    asking.output.show_list(found, ("path", "permission"))


dotfile = LazyGroup(
    "dotfile",
    help="Small files that sessions get: your own, or a project's or domain's.",
    made={
        "list": lambda: make_command(
            "list", _list, _OWNERS, help="List what sessions get."
        ),
        "show": lambda: make_command(
            "show", _show, [_PATH, *_OWNERS], help="Show one file."
        ),
        "put": lambda: make_command(
            "put",
            _put,
            [
                _PATH,
                click.Argument(
                    ["content"],
                    metavar="FILE",
                    type=KindType("content", Page()),
                ),
                click.Option(
                    ["--permission"],
                    default="644",
                    show_default=True,
                    help="Who may do what with it, octal.",
                ),
                *_OWNERS,
            ],
            help="Give sessions started from now on FILE ('-' is standard input) at"
            " PATH in their home.",
        ),
        "remove": lambda: make_command(
            "remove", _remove, [_PATH, *_OWNERS], help="Give it no longer."
        ),
    },
)
