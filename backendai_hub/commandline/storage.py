"""``backendai admin storage``: hosts, how much is kept there, and what is nobody's."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.lazy import LazyGroup

SCOPE_COLUMNS: Final = (
    "host",
    "kind",
    "owner",
    "folders",
    "used_bytes",
    "limit_bytes",
    "used_files",
    "scanned_at",
)


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
    checks = [
        click.Option(["--host"], help="On this host only."),
        click.Option(
            ["--repair"],
            is_flag=True,
            help="Remove what has belonged to nobody for longer than the grace time.",
        ),
    ]
    return LazyGroup(
        "storage",
        help="Storage hosts, and who may keep how much on them.",
        made={
            "hosts": lambda: make_command(
                "hosts", _all_hosts, [], help="List storage hosts with how they are."
            ),
            "check": lambda: make_command(
                "check",
                _check,
                checks,
                help="Find what belongs to nobody on storage hosts, and clean up.",
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


async def _scopes(asking: Asking, *, host: str | None, kind: str | None) -> None:
    found = [s async for s in asking.client.storage.scopes(host=host, kind=kind)]
    asking.output.show_list(
        found, (*SCOPE_COLUMNS[:2], "scope", *SCOPE_COLUMNS[2:], "limit_from")
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


async def _check(asking: Asking, *, host: str | None, repair: bool) -> None:
    storage, output = asking.client.storage, asking.output
    checked = await storage.check(host=host, repair=repair)
    found, running, after = list(checked.items), checked.running, checked.next
    if running:
        output.note("it takes a while; what is found is shown when it has ended")
        while (await storage.remains(host=host)).running:  # noqa: ASYNC110 - elsewhere
            await asyncio.sleep(1)
        found, after = [], ""
    while after is not None:
        page = await storage.remains(host=host, after=after or None)
        found += page.items
        after = page.next
    columns = ("host", "scope", "kind", "name", "found_at", "removable", "reason")
    output.show_list(found, columns)
    for name in checked.silent:
        output.note(f"{name} does not answer, and was not looked through")
    if repair and not running:
        output.note(
            f"{checked.removed} removed; what was found less than"
            f" {checked.grace_hours:g} hours ago is left alone"
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
