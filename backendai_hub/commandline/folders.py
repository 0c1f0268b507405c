"""``backendai folder`` and ``backendai admin storage``: data that outlives sessions."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.nouns import group_of, make_create
from backendai_hub.commandline.tasks import watch_task
from backendai_hub.core.errors import HubError
from backendai_hub.core.vfolders import FolderPermission

_FOLDER: Final = click.Argument(["folder"], metavar="NAME", type=NounName("folder"))
_FOLDERS: Final = click.Argument(
    ["folders"], metavar="NAME...", nargs=-1, required=True, type=NounName("folder")
)
_PERMISSION: Final = click.Choice([str(p) for p in FolderPermission])


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


# --- sharing ---------------------------------------------------------------------


async def _invite(
    asking: Asking, *, folder: str, users: tuple[str, ...], permission: str
) -> None:
    found = await asking.client.folder_verbs.invite(folder, users, permission)
    failed = sum(1 for one in found if one.error is not None)
    asking.count_failures(failed, len(found))
    asking.output.show_list(found, ("user", "invitation", "error"))


async def _share(
    asking: Asking, *, folder: str, user: str | None, permission: str | None
) -> None:
    verbs = asking.client.folder_verbs
    if user is None:
        found = await verbs.guests(folder)
    elif permission is None:
        raise click.UsageError("say what they may do: ro, rw, wd, or none")
    else:
        wanted = None if permission == "none" else permission
        found = await verbs.share(folder, user, wanted)
    asking.output.show_list(found, ("user", "permission", "kind", "created_at"))


async def _leave(asking: Asking, *, folder: str, user: str | None) -> None:
    await asking.client.folder_verbs.leave(folder, user=user)
    asking.output.say(f"{user or 'you'} left {folder}")


async def _invitations(asking: Asking, *, state: str) -> None:
    found = await asking.client.folder_verbs.invitations(state=state)
    columns = ("id", "folder", "inviter", "invitee", "permission", "state")
    asking.output.show_list(found, columns)


async def _accept(asking: Asking, *, invitations: tuple[str, ...]) -> None:
    await _answer(asking, invitations, accept=True)


async def _reject(asking: Asking, *, invitations: tuple[str, ...]) -> None:
    await _answer(asking, invitations, accept=False)


async def _answer(
    asking: Asking, invitations: tuple[str, ...], *, accept: bool
) -> None:
    verbs = asking.client.folder_verbs
    failed = 0
    for invitation in invitations:
        try:
            if accept:
                found = await verbs.accept(invitation)
                asking.output.say(f"you share {found.folder} now", found)
            else:
                await verbs.decline(invitation)
                asking.output.say(f"invitation {invitation} is answered")
        except HubError as error:
            failed += 1
            asking.output.note(f"{invitation}: {error.message}")
    asking.count_failures(failed, len(invitations))


# --- hosts and use ---------------------------------------------------------------


async def _hosts(asking: Asking) -> None:
    found = await asking.client.storage.hosts()
    columns = ("name", "is_default", "state", "used_percent", "permissions")
    asking.output.show_list(found, columns)


async def _usage(asking: Asking) -> None:
    me = await asking.client.me()
    mine = {me.name, *me.projects}
    found = [s async for s in asking.client.storage.scopes() if s.owner in mine]
    asking.output.show_list(found, _SCOPE_COLUMNS)


_SCOPE_COLUMNS: Final = (
    "host",
    "kind",
    "owner",
    "folders",
    "used_bytes",
    "limit_bytes",
    "used_files",
    "scanned_at",
)


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


async def _scopes(asking: Asking, *, host: str | None, kind: str | None) -> None:
    found = [s async for s in asking.client.storage.scopes(host=host, kind=kind)]
    asking.output.show_list(
        found, (*_SCOPE_COLUMNS[:2], "scope", *_SCOPE_COLUMNS[2:], "limit_from")
    )


async def _set_quota(
    asking: Asking,
    *,
    host: str,
    owner: str,
    project: bool,
    size: str | None,
    files: str | None,
) -> None:
    limits: dict[str, Any] = {}
    if size is not None:
        limits["limit_bytes"] = None if size == "policy" else size
    if files is not None:
        limits["limit_files"] = None if files == "policy" else _read_files(files)
    if not limits:
        raise click.UsageError("say --size or --files, or both")
    kind = "project" if project else "user"
    found = await asking.client.nouns(kind).get(owner)
    scope = await asking.client.storage.limit(host, f"{kind}-{found.id}", **limits)
    asking.output.show_one(scope)


def _read_files(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f"--files: {text!r} is not a whole number") from None


# --- the groups ------------------------------------------------------------------

_WAIT: Final = click.Option(["--wait"], is_flag=True, help="Wait until it is done.")
_INVITATIONS: Final = click.Argument(
    ["invitations"], metavar="INVITATION...", nargs=-1, required=True
)

_COMMANDS: Final[tuple[tuple[str, Any, tuple[click.Parameter, ...], str], ...]] = (
    (
        "rename",
        _rename,
        (_FOLDER, click.Argument(["name"], metavar="NEW")),
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
            _FOLDER,
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
            _FOLDER,
            click.Argument(["name"], metavar="NEW"),
            click.Option(["--host"], help="The storage host; that of the original."),
            click.Option(
                ["--project"], type=NounName("project"), help="For this project."
            ),
            click.Option(["--permission"], type=_PERMISSION, help="Of the copy."),
            _WAIT,
        ),
        "Copy a cloneable folder into a new one.",
    ),
    (
        "invite",
        _invite,
        (
            _FOLDER,
            click.Argument(["users"], metavar="USER...", nargs=-1, required=True),
            click.Option(
                ["--permission"],
                type=_PERMISSION,
                default="ro",
                show_default=True,
                help="What they may do.",
            ),
        ),
        "Invite people to a folder, by name or address.",
    ),
    (
        "share",
        _share,
        (
            _FOLDER,
            click.Argument(["user"], required=False),
            click.Argument(
                ["permission"],
                required=False,
                type=click.Choice([*map(str, FolderPermission), "none"]),
            ),
        ),
        "Show who shares a folder, or say what one of them may do.",
    ),
    (
        "leave",
        _leave,
        (
            _FOLDER,
            click.Option(["--user"], help="Make them leave; for superadmins."),
        ),
        "Leave a folder that somebody else shares.",
    ),
    (
        "invitations",
        _invitations,
        (
            click.Option(
                ["--state"],
                type=click.Choice(
                    ["pending", "accepted", "rejected", "canceled", "all"]
                ),
                default="pending",
                show_default=True,
                help="In which state.",
            ),
        ),
        "List invitations to you and from you.",
    ),
    ("accept", _accept, (_INVITATIONS,), "Accept invitations."),
    ("reject", _reject, (_INVITATIONS,), "Reject invitations, or take yours back."),
    ("hosts", _hosts, (), "List storage hosts, and what you may do there."),
    ("usage", _usage, (), "Show how much you and your projects hold, and may hold."),
    (
        "activity",
        _activity,
        (
            _FOLDER,
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
    "download",
)
folder.add_made({name: partial(_make_file_command, name) for name in _OF_FILES})


def make_transfer() -> click.Command:
    """Make ``backendai admin folder transfer``."""
    params = [
        _FOLDER,
        click.Option(["--user"], type=NounName("user"), help="To this user."),
        click.Option(["--project"], type=NounName("project"), help="To this project."),
    ]
    text = "Give a folder to another user, or to a project."
    return make_command("transfer", _transfer, params, help=text)


def make_storage() -> click.Group:
    """Make ``backendai admin storage``."""
    host = click.Argument(["host"])
    scopes = [
        click.Option(["--host"], help="On this host."),
        click.Option(
            ["--kind"], type=click.Choice(["user", "project"]), help="Of users only, …"
        ),
    ]
    limits = [
        host,
        click.Argument(["owner"], metavar="NAME"),
        click.Option(["--project"], is_flag=True, help="NAME is a project's."),
        click.Option(
            ["--size"], help="Such as 10g; -1: no limit; policy: what that says."
        ),
        click.Option(["--files"], help="How many files; -1, or policy, as above."),
    ]
    return LazyGroup(
        "storage",
        help="Storage hosts, and who may keep how much on them.",
        made={
            "hosts": lambda: make_command(
                "hosts", _all_hosts, [], help="List storage hosts with how they are."
            ),
            "quota": lambda: make_command(
                "quota", _scopes, scopes, help="List use and limits of all scopes."
            ),
            "set-quota": lambda: make_command(
                "set-quota",
                _set_quota,
                limits,
                help="Limit what a user or a project may keep on a host.",
            ),
        },
    )


async def _all_hosts(asking: Asking) -> None:
    found = await asking.client.storage.hosts()
    columns = (
        "name",
        "is_default",
        "state",
        "reason",
        "since",
        "capabilities",
        "free_bytes",
        "total_bytes",
    )
    asking.output.show_list(found, columns)
