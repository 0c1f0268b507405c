"""``backendai folder``: data that outlives sessions."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.folder_sharing import (
    FOLDER,
    PERMISSION,
    SHARING,
    Command,
)
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.nouns import group_of, make_create
from backendai_hub.commandline.storage import SCOPE_COLUMNS
from backendai_hub.commandline.tasks import watch_task

_FOLDERS: Final = click.Argument(
    ["folders"], metavar="NAME...", nargs=-1, required=True, type=NounName("folder")
)


async def _rename(asking: Asking, *, folder: str, name: str) -> None:
    changed = await asking.client.folders.update(folder, name=name)
    asking.output.say(f"{folder} is called {changed.name} now", changed)


# --- the trash -------------------------------------------------------------------


async def _delete(asking: Asking, *, folders: tuple[str, ...]) -> None:
    await _each(asking, await asking.client.folder_verbs.trash_many(folders), "trash")


async def _restore(
    asking: Asking, *, folders: tuple[str, ...], name: str | None
) -> None:
    verbs = asking.client.folder_verbs
    if name is not None:
        if len(folders) > 1:
            raise click.UsageError("--name goes with one folder only")
        found = await verbs.restore(folders[0], name=name)
        asking.output.say(f"{found.name} is back", found)
        return
    await _each(asking, await verbs.restore_many(folders), "restore")


async def _each(asking: Asking, answer: Any, verb: str) -> None:
    asking.count_failures(answer.failed, len(answer.results))
    if asking.output.as_json:
        asking.output.show_one(answer)
        return
    said = {"trash": "is in the trash now", "restore": "is back"}[verb]
    for one in answer.results:
        if one.error is not None:
            asking.output.note(f"{one.reference}: {one.error}")
        else:
            asking.output.say(f"{one.name or one.reference} {said}")


async def _purge(
    asking: Asking, *, folder: str, yes: bool, force: bool, wait: bool
) -> None:
    found = await asking.client.folders.get(folder)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("this cannot be undone; say --yes if it is meant")
        typed = click.prompt(
            f"This removes the folder {found.name} and all its files for good. Type its"
            " name",
            err=True,
        )
        if typed != found.name:
            raise click.UsageError("that is not it; nothing was removed")
    verbs = asking.client.folder_verbs
    left = await verbs.purge(found.id, name=found.name, force=force)
    if wait and left is not None:
        await _wait_for(asking, found.id, "remove")
    asking.output.say(f"{found.name} is being removed for good", left)


# --- copies ----------------------------------------------------------------------


async def _clone(
    asking: Asking, *, folder: str, name: str, wait: bool, **more: Any
) -> None:
    given = {key: value for key, value in more.items() if value not in {None, ""}}
    answer = await asking.client.folder_verbs.clone(folder, name, **given)
    if wait:
        await watch_task(asking, answer.task)
    asking.output.show_one(await asking.client.folders.get(answer.folder.id))


async def _wait_for(asking: Asking, folder_id: str, kind: str) -> None:
    page = await asking.client.folder_verbs.tasks(folder=folder_id)
    for task in page.items:
        if task.kind == kind:
            await watch_task(asking, task)
            return


# --- hosts and use ---------------------------------------------------------------


async def _hosts(asking: Asking) -> None:
    found = await asking.client.storage.hosts()
    columns = ("name", "is_default", "state", "used_percent", "permissions")
    asking.output.show_list(found, columns)


async def _usage(asking: Asking) -> None:
    me = await asking.client.me()
    mine = {me.name, *me.projects}
    found = [s async for s in asking.client.storage.scopes() if s.owner in mine]
    asking.output.show_list(found, SCOPE_COLUMNS)


async def _activity(asking: Asking, *, folder: str, limit: int) -> None:
    page = await asking.client.folder_verbs.activity(folder, limit=limit)
    asking.output.show_list(page.items, ("at", "actor", "action", "result", "after"))


async def _tasks(asking: Asking, *, folder: str | None) -> None:
    if folder is not None:
        folder = (await asking.client.folders.get(folder)).id
    page = await asking.client.folder_verbs.tasks(folder=folder, limit=100)
    columns = ("id", "kind", "folder_id", "state", "done", "total", "unit", "error")
    asking.output.show_list(page.items, columns)


async def _cancel(asking: Asking, *, task: str) -> None:
    await asking.client.folder_verbs.cancel(task)
    asking.output.say(f"task {task} is cancelled")


async def _transfer(
    asking: Asking, *, folder: str, user: str | None, project: str | None
) -> None:
    found = await asking.client.folder_verbs.transfer(
        folder, user=user, project=project
    )
    asking.output.say(f"{found.name} belongs to {user or project} now", found)


# --- the groups ------------------------------------------------------------------

_WAIT: Final = click.Option(["--wait"], is_flag=True, help="Wait until it is done.")
_COMMANDS: Final[tuple[Command, ...]] = (
    (
        "rename",
        _rename,
        (FOLDER, click.Argument(["name"], metavar="NEW")),
        "Give a folder another name.",
    ),
    ("delete", _delete, (_FOLDERS,), "Throw folders into the trash."),
    (
        "restore",
        _restore,
        (
            _FOLDERS,
            click.Option(["--name"], help="Give it this name, if its own is taken."),
        ),
        "Take folders out of the trash.",
    ),
    (
        "purge",
        _purge,
        (
            FOLDER,
            click.Option(["--yes"], is_flag=True, help="Do not ask."),
            click.Option(
                ["--force"],
                is_flag=True,
                help="Also what is in use or not in the trash; for administrators.",
            ),
            _WAIT,
        ),
        "Remove a folder of the trash, and all its files, for good.",
    ),
    (
        "clone",
        _clone,
        (
            FOLDER,
            click.Argument(["name"], metavar="NEW"),
            click.Option(["--host"], help="The storage host; that of the original."),
            click.Option(
                ["--project"], type=NounName("project"), help="For this project."
            ),
            click.Option(["--permission"], type=PERMISSION, help="Of the copy."),
            _WAIT,
        ),
        "Copy a cloneable folder into a new one.",
    ),
    *SHARING,
    ("hosts", _hosts, (), "List storage hosts, and what you may do there."),
    ("usage", _usage, (), "Show how much you and your projects hold, and may hold."),
    (
        "activity",
        _activity,
        (
            FOLDER,
            click.Option(
                ["--limit"],
                type=click.IntRange(1, 200),
                default=50,
                show_default=True,
                help="Show at most so many.",
            ),
        ),
        "Show what was done to a folder.",
    ),
    (
        "tasks",
        _tasks,
        (click.Option(["--folder"], type=NounName("folder"), help="Of this folder."),),
        "Show what is being done to folders.",
    ),
    ("cancel", _cancel, (click.Argument(["task"]),), "Cancel a task."),
)

folder = group_of("folder", only=("list", "info", "update"))
folder.help = "Virtual folders: data that outlives sessions."
folder.add_made({"create": lambda: make_create("folder")})
folder.add_made(
    {
        name: partial(make_command, name, ask, params, help=text)
        for name, ask, params, text in _COMMANDS
    }
)


def _make_file_command(name: str) -> click.Command:
    from backendai_hub.commandline.files import (  # noqa: PLC0415 - when it is called
        make_file_command,
    )

    return make_file_command(name)


_OF_FILES: Final = (
    "ls",
    "mkdir",
    "mv",
    "cp",
    "extract",
    "rm",
    "trash",
    "untrash",
    "cat",
    "edit",
    "upload",
    "uploads",
    "download",
)
folder.add_made({name: partial(_make_file_command, name) for name in _OF_FILES})


def make_transfer() -> click.Command:
    """Make ``backendai admin folder transfer``."""
    params = [
        FOLDER,
        click.Option(["--user"], type=NounName("user"), help="To this user."),
        click.Option(["--project"], type=NounName("project"), help="To this project."),
    ]
    text = "Give a folder to another user, or to a project; its data moves along."
    return make_command("transfer", _transfer, params, help=text)
