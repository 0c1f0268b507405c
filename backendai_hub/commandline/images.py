"""Commands about images and registries beyond the common verbs."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from backendai_hub.api.agents import ImageWish
from backendai_hub.api.images import RescanState, RescanStatus
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.names import NounName

_IMAGE: Final = click.Argument(["image"], type=NounName("image"))
_REGISTRY: Final = click.Argument(["registry"], type=NounName("registry"))
_NAMES: Final = click.Argument(["names"], metavar="ALIAS...", nargs=-1, required=True)
_ENDED: Final = {RescanState.DONE, RescanState.FAILED, RescanState.INTERRUPTED}
_PAUSE: Final = 1.0


async def _rescan(
    asking: Asking,
    *,
    registry: str,
    repository: str | None,
    project: str | None,
    wait: bool,
) -> None:
    status = await asking.client.image_verbs.rescan(
        registry, repository=repository, project=project
    )
    told = ""
    while wait and status.state not in _ENDED:
        if told != (words := _tell(status)):
            told = words
            asking.output.note(words)
        await asyncio.sleep(_PAUSE)
        status = await asking.client.image_verbs.rescan_status(registry)
    asking.output.show_one(status)
    if wait and status.state is not RescanState.DONE:
        asking.count_failures(1, 1)


def _tell(status: RescanStatus) -> str:
    return f"{status.registry}: {status.state}, {status.done} of {status.total} tags"


async def _alias(asking: Asking, *, image: str, names: tuple[str, ...]) -> None:
    changed = await asking.client.image_verbs.change_aliases(image, add=names)
    asking.output.say(f"{changed.name} is also {', '.join(changed.aliases)}", changed)


async def _dealias(asking: Asking, *, image: str, names: tuple[str, ...]) -> None:
    changed = await asking.client.image_verbs.change_aliases(image, remove=names)
    left = ", ".join(changed.aliases) or "nothing else"
    asking.output.say(f"{changed.name} is also {left}", changed)


async def _forget(asking: Asking, *, image: str) -> None:
    changed = await asking.client.image_verbs.forget(image)
    asking.output.say(f"{changed.name} is no longer on offer", changed)


async def _untag(asking: Asking, *, image: str) -> None:
    changed = await asking.client.image_verbs.untag(image)
    asking.output.say(f"removed {changed.name} from its registry", changed)


async def _install(
    asking: Asking, *, image: str, resource_group: str, remove: bool
) -> None:
    answer = await asking.client.image_verbs.install(
        image,
        resource_group=resource_group,
        wanted=ImageWish.ABSENT if remove else ImageWish.PRESENT,
    )
    if asking.output.as_json:
        asking.output.show_one(answer)
    else:
        asking.output.show_list(answer.asked, ("node", "wanted", "state", "reason"))
        for node in answer.skipped:
            asking.output.note(f"{node.node} was not asked: {node.reason}")
    asking.count_failures(len(answer.skipped), len(answer.skipped) + len(answer.asked))


async def _installs(asking: Asking, *, image: str) -> None:
    found = await asking.client.image_verbs.installs(image)
    asking.output.show_list(found, ("node", "wanted", "state", "progress", "reason"))


def make_rescan() -> click.Command:
    """Make ``image rescan``."""
    options = [
        _REGISTRY,
        click.Option(["--repository"], help="Only this one."),
        click.Option(["--project"], help="Only this project or namespace."),
        click.Option(["--wait"], is_flag=True, help="Wait until it has been read."),
    ]
    return make_command(
        "rescan", _rescan, options, help="Read a registry into the images on offer."
    )


def make_alias() -> click.Command:
    """Make ``image alias``."""
    return make_command(
        "alias", _alias, [_IMAGE, _NAMES], help="Give an image other names."
    )


def make_dealias() -> click.Command:
    """Make ``image dealias``."""
    return make_command(
        "dealias", _dealias, [_IMAGE, _NAMES], help="Take other names away."
    )


def make_forget() -> click.Command:
    """Make ``image forget``."""
    return make_command(
        "forget", _forget, [_IMAGE], help="Take an image off offer; what runs goes on."
    )


def make_untag() -> click.Command:
    """Make ``image untag``."""
    return make_command(
        "untag", _untag, [_IMAGE], help="Remove an image's tag from its registry."
    )


def make_install() -> click.Command:
    """Make ``image install``."""
    options = [
        _IMAGE,
        click.Option(
            ["--resource-group"],
            type=NounName("resource-group"),
            default="default",
            show_default=True,
            help="On whose nodes.",
        ),
        click.Option(["--remove"], is_flag=True, help="Have them remove it instead."),
    ]
    return make_command(
        "install", _install, options, help="Have nodes hold an image before its use."
    )


def make_installs() -> click.Command:
    """Make ``image installs``."""
    return make_command(
        "installs", _installs, [_IMAGE], help="List which nodes hold an image."
    )
