"""``backendai folder`` as to sharing: invitations, and what others may do."""

from __future__ import annotations

from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking
from backendai_hub.commandline.names import NounName
from backendai_hub.core.errors import HubError
from backendai_hub.core.vfolders import FolderPermission

FOLDER: Final = click.Argument(["folder"], metavar="NAME", type=NounName("folder"))
PERMISSION: Final = click.Choice([str(p) for p in FolderPermission])

Command = tuple[str, Any, tuple[click.Parameter, ...], str]
"""Its name, what it does, what it takes, and what it is for."""


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


_INVITATIONS: Final = click.Argument(
    ["invitations"], metavar="INVITATION...", nargs=-1, required=True
)

SHARING: Final[tuple[Command, ...]] = (
    (
        "invite",
        _invite,
        (
            FOLDER,
            click.Argument(["users"], metavar="USER...", nargs=-1, required=True),
            click.Option(
                ["--permission"],
                type=PERMISSION,
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
            FOLDER,
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
            FOLDER,
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
)
