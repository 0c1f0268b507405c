"""Commands about the accounts of the platform's own authenticator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.bulk import FILE, read_bytes
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.names import NounName

_NAME: Final = click.Argument(["name"], type=NounName("user"))
_PLACE: Final = (
    click.Option(["--domain"], type=NounName("domain"), help="Their domain."),
    click.Option(["--project"], type=NounName("project"), help="Their project."),
    click.Option(["--role"], help="What they may do beyond their own things."),
)


async def _add(asking: Asking, *, name: str, **given: str | None) -> None:
    fields = {k: v for k, v in given.items() if v is not None}
    made = await asking.client.accounts.create(name, **fields)
    asking.output.show_one(made)
    asking.output.note("the password works once, and is shown only now")


async def _bulk_add(
    asking: Asking,
    *,
    csv_file: Path | None,
    prefix: str | None,
    count: int | None,
    **given: str | None,
) -> None:
    fields = {k: v for k, v in given.items() if v is not None}
    if csv_file is not None and prefix is None and count is None and not fields:
        table = read_bytes(csv_file).decode("utf-8", "replace")
        answer = await asking.client.accounts.create_from_table(table)
    elif csv_file is None and prefix is not None and count is not None:
        answer = await asking.client.accounts.create_series(prefix, count, **fields)
    else:
        raise click.UsageError("give --csv alone, or --prefix with --count")
    _show(asking, answer)


def _show(asking: Asking, answer: Any) -> None:
    if asking.output.as_json:
        asking.output.show_one(answer)
    else:
        asking.output.show_list(answer.results, ("name", "password", "error"))
    asking.count_failures(answer.failed, len(answer.results))


async def _reset(asking: Asking, *, name: str) -> None:
    asking.output.show_one(await asking.client.accounts.reset(name))
    asking.output.note("the password works once, and is shown only now")


async def _require_change(asking: Asking, *, name: str) -> None:
    asking.output.show_one(await asking.client.accounts.require_change(name))


async def _unlock(asking: Asking, *, name: str) -> None:
    asking.output.show_one(await asking.client.accounts.unlock(name))


async def _end_logins(asking: Asking, *, name: str) -> None:
    asking.output.show_one(await asking.client.accounts.end_logins(name))


async def _change_password(asking: Asking) -> None:
    if sys.stdin.isatty():
        old = click.prompt("Present password", hide_input=True, err=True)
        new = click.prompt(
            "New password", hide_input=True, confirmation_prompt=True, err=True
        )
    else:
        old, new = (sys.stdin.readline().rstrip("\n") for _ in range(2))
    await asking.client.accounts.change_password(old, new)
    asking.output.say("changed")


account = LazyGroup(
    "account",
    help="Password accounts, where the platform's own authenticator is used.",
    made={
        "add": lambda: make_command(
            "add",
            _add,
            [
                click.Argument(["name"]),
                click.Option(["--email"], help="Their address."),
                click.Option(["--full-name"], help="Their name in full."),
                *_PLACE,
            ],
            help="Make a user with a password that works once.",
        ),
        "bulk-add": lambda: make_command(
            "bulk-add",
            _bulk_add,
            [
                click.Option(
                    ["--csv", "csv_file"],
                    type=FILE,
                    help="A table; its first line names name, email, full_name, domain,"
                    " project, role.",
                ),
                click.Option(["--prefix"], help="What names begin with."),
                click.Option(["--count"], type=int, help="How many of them."),
                *_PLACE,
            ],
            help="Make many, numbered or from a table; each ends for itself.",
        ),
        "reset": lambda: make_command(
            "reset", _reset, [_NAME], help="Give somebody a new password, for once."
        ),
        "require-change": lambda: make_command(
            "require-change",
            _require_change,
            [_NAME],
            help="Let somebody in next time only with a new password.",
        ),
        "unlock": lambda: make_command(
            "unlock", _unlock, [_NAME], help="Forget somebody's wrong passwords."
        ),
        "end-logins": lambda: make_command(
            "end-logins",
            _end_logins,
            [_NAME],
            help="End all of somebody's logins: browsers and command lines.",
        ),
    },
)
password = make_command(
    "password",
    _change_password,
    [],
    help="Change your own password: it is asked for, or the old and the new one are"
    " read from two lines of standard input.",
)
