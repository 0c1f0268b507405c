"""``backendai folder ls`` and the like: the files in a folder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, find_setting, make_command
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.tasks import watch_task
from backendai_hub.commandline.transfers import download, upload
from backendai_hub.core.errors import HubError, NotFoundError

_PATIENCE: Final = 2.0


class FilePath(click.ParamType[Any]):
    """A path in the folder that the command line names before it."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer what is there."""
        del param
        folder = ctx.params.get("folder")
        found = find_paths(folder, incomplete) if folder else []
        return [click.shell_completion.CompletionItem(path) for path in found]


def find_paths(folder: str, incomplete: str) -> list[str]:
    """Return paths that begin with what is typed; none if nobody is logged in."""
    above, slash, begun = incomplete.rpartition("/")

    async def ask() -> list[str]:
        access = find_setting().find_login()
        if access is None:
            return []
        async with access.open() as client, asyncio.timeout(_PATIENCE):
            page = await client.files(folder).page(above, search=begun or None)
            return [
                f"{above}{slash}{e.name}{'/' if e.kind == 'folder' else ''}"
                for e in page.items
                if e.name.startswith(begun)
            ]

    try:
        return asyncio.run(ask())
    except (HubError, TimeoutError):
        return []


_FOLDER: Final = click.Argument(["folder"], metavar="NAME", type=NounName("folder"))
_PATH: Final = click.Argument(["path"], type=FilePath())
_PATHS: Final = click.Argument(
    ["paths"], metavar="PATH...", nargs=-1, required=True, type=FilePath()
)
_TARGET: Final = click.Argument(["target"], type=FilePath())
_CONFLICT: Final = click.Option(
    ["--conflict"],
    type=click.Choice(["fail", "replace", "rename"]),
    default="fail",
    show_default=True,
    help="What to do where that name is taken.",
)
_WAIT: Final = click.Option(["--wait"], is_flag=True, help="Wait until it is done.")
_PARALLEL: Final = click.Option(
    ["--parallel"],
    type=click.IntRange(1, 32),
    default=4,
    show_default=True,
    help="So many files at once.",
)
_RESUME: Final = click.Option(
    ["--resume/--no-resume"],
    default=True,
    show_default=True,
    help="Go on with what was cut off.",
)


# --- looking and changing --------------------------------------------------------


async def _ls(asking: Asking, *, folder: str, path: str, **order: Any) -> None:
    found = [e async for e in asking.client.files(folder).list(path, **order)]
    asking.output.show_list(found, ("kind", "size", "modified", "name"))


async def _mkdir(
    asking: Asking, *, folder: str, paths: tuple[str, ...], parents: bool
) -> None:
    files = asking.client.files(folder)
    failed = 0
    for path in paths:
        try:
            made = await files.mkdir(path, parents=parents, exist_ok=parents)
            asking.output.say(f"{path} is there", made)
        except HubError as error:
            failed += 1
            asking.output.note(f"{path}: {error.message}")
    asking.count_failures(failed, len(paths))


async def _mv(
    asking: Asking, *, folder: str, path: str, target: str, conflict: str
) -> None:
    placed = await asking.client.files(folder).move(path, target, conflict=conflict)
    asking.output.say(f"{path} is {placed} now", {"path": placed})


async def _cp(
    asking: Asking, *, folder: str, path: str, target: str, conflict: str, wait: bool
) -> None:
    task = await asking.client.files(folder).copy(path, target, conflict=conflict)
    if wait:
        await watch_task(asking, task)
    said = "is copied" if wait else "is being copied"
    asking.output.say(f"{path} {said} to {target}", task)


async def _extract(
    asking: Asking, *, folder: str, path: str, target: str, conflict: str, wait: bool
) -> None:
    task = await asking.client.files(folder).extract(path, target, conflict=conflict)
    if wait:
        await watch_task(asking, task)
    said = "is unpacked" if wait else "is being unpacked"
    asking.output.say(f"{path} {said} into {target or 'the folder'}", task)


async def _rm(asking: Asking, *, folder: str, paths: tuple[str, ...]) -> None:
    answer = await asking.client.files(folder).trash(paths)
    _tell_each(asking, answer, "is in the trash of the folder")


async def _trash(asking: Asking, *, folder: str, empty: bool, yes: bool) -> None:
    files = asking.client.files(folder)
    if not empty:
        found = [t async for t in files.trashed()]
        columns = ("id", "kind", "size", "thrown_at", "thrown_by", "path")
        asking.output.show_list(found, columns)
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("this cannot be undone; say --yes if it is meant")
        click.confirm(f"Empty the trash of {folder} for good?", abort=True, err=True)
    task = await files.empty_trash()
    await watch_task(asking, task)
    asking.output.say(f"the trash of {folder} is empty", task)


async def _untrash(
    asking: Asking, *, folder: str, entries: tuple[str, ...], conflict: str
) -> None:
    files = asking.client.files(folder)
    known = {t.path: t.id async for t in files.trashed()}  # the last of each path
    ids = [known.get(entry.strip("/"), entry) for entry in entries]
    answer = await files.restore(ids, conflict=conflict)
    _tell_each(asking, answer, "is back")


def _tell_each(asking: Asking, answer: Any, said: str) -> None:
    asking.count_failures(answer.failed, len(answer.results))
    if asking.output.as_json:
        asking.output.show_one(answer)
        return
    for one in answer.results:
        if one.error is not None:
            asking.output.note(f"{one.path}: {one.error}")
        else:
            asking.output.say(f"{one.path} {said}")


async def _cat(asking: Asking, *, folder: str, path: str) -> None:
    async for chunk in asking.client.files(folder).content(path):
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


async def _edit(asking: Asking, *, folder: str, path: str) -> None:
    files = asking.client.files(folder)
    try:
        found = await files.read_text(path)
        text, tag = found.text, found.tag
    except NotFoundError:
        text, tag = "", ""
    suffix = Path(path).suffix or ".txt"
    edited = await asyncio.to_thread(click.edit, text, extension=suffix)
    if edited is None or edited == text:
        asking.output.say(f"{path} is as it was")
        return
    written = await files.write_text(path, edited, tag=tag)
    asking.output.say(f"{path} is written", written)


# --- the commands ----------------------------------------------------------------


async def _uploads(asking: Asking, *, folder: str, end: tuple[str, ...]) -> None:
    files = asking.client.files(folder)
    for one in end:
        await files.end_upload(one)
        asking.output.note(f"upload {one} is ended")
    if not end:
        columns = ("id", "user", "path", "received", "length", "expires_at")
        asking.output.show_list([u async for u in files.uploads()], columns)


_COMMANDS: Final[dict[str, tuple[Any, tuple[click.Parameter, ...], str]]] = {
    "ls": (
        _ls,
        (
            _FOLDER,
            click.Argument(["path"], default="", type=FilePath()),
            click.Option(
                ["--sort"],
                type=click.Choice(["name", "kind", "size", "modified"]),
                default="name",
                show_default=True,
                help="In which order.",
            ),
            click.Option(["--descending"], is_flag=True, help="The other way round."),
            click.Option(["--search"], help="Only names with this in them."),
        ),
        "List what is in a folder.",
    ),
    "mkdir": (
        _mkdir,
        (
            _FOLDER,
            _PATHS,
            click.Option(
                ["-p", "--parents"], is_flag=True, help="Also those on the way."
            ),
        ),
        "Make folders in a folder.",
    ),
    "mv": (
        _mv,
        (_FOLDER, _PATH, _TARGET, _CONFLICT),
        "Move or rename a file in a folder.",
    ),
    "cp": (
        _cp,
        (_FOLDER, _PATH, _TARGET, _CONFLICT, _WAIT),
        "Copy a file, or a folder, in a folder.",
    ),
    "extract": (
        _extract,
        (
            _FOLDER,
            _PATH,
            click.Argument(["target"], default="", type=FilePath()),
            _CONFLICT,
            _WAIT,
        ),
        "Unpack an archive in a folder.",
    ),
    "rm": (_rm, (_FOLDER, _PATHS), "Throw files into the trash of their folder."),
    "trash": (
        _trash,
        (
            _FOLDER,
            click.Option(["--empty"], is_flag=True, help="Remove all of it for good."),
            click.Option(["--yes"], is_flag=True, help="Do not ask."),
        ),
        "List, or empty, the trash of a folder.",
    ),
    "untrash": (
        _untrash,
        (
            _FOLDER,
            click.Argument(["entries"], metavar="ENTRY...", nargs=-1, required=True),
            _CONFLICT,
        ),
        "Put files back from the trash, by path or id.",
    ),
    "cat": (_cat, (_FOLDER, _PATH), "Print a file."),
    "edit": (_edit, (_FOLDER, _PATH), "Edit a small file of text."),
    "upload": (
        upload,
        (
            _FOLDER,
            click.Argument(
                ["sources"],
                metavar="SOURCE...",
                nargs=-1,
                required=True,
                type=click.Path(exists=True, path_type=Path),
            ),
            click.Option(
                ["--to"], default="", type=FilePath(), help="Below this path."
            ),
            _CONFLICT,
            _PARALLEL,
            _RESUME,
        ),
        "Send files and folders; what was cut off goes on.",
    ),
    "uploads": (
        _uploads,
        (
            _FOLDER,
            click.Option(["--end"], metavar="ID", multiple=True, help="End this one."),
        ),
        "List what is on its way into a folder, or end some of it.",
    ),
    "download": (
        download,
        (
            _FOLDER,
            _PATHS,
            click.Option(
                ["--to"],
                default=".",
                type=click.Path(file_okay=False, exists=True, path_type=Path),
                help="Into this folder of this machine.",
            ),
            click.Option(["--overwrite"], is_flag=True, help="Replace what is here."),
            click.Option(
                ["--archive"],
                type=click.Choice(["zip", "tar", "tar.gz"]),
                help="As one archive.",
            ),
            _PARALLEL,
            _RESUME,
        ),
        "Fetch files and folders; what was cut off goes on.",
    ),
}


def make_file_command(name: str) -> click.Command:
    """Make one of the commands about files."""
    ask, params, text = _COMMANDS[name]
    return make_command(name, ask, params, help=text)
