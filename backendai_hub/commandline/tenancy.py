"""Commands about tenants beyond the common verbs: members, secrets, groups, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from backendai_hub.client.tenancy import AccessKind
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.names import NounName

_PROJECT: Final = click.Argument(["project"], type=NounName("project"))
_USERS: Final = click.Argument(
    ["users"], metavar="USER...", nargs=-1, required=True, type=NounName("user")
)
_GROUP: Final = click.Argument(["group"], type=NounName("resource-group"))


async def _members(asking: Asking, *, project: str) -> None:
    found = await asking.client.members.list(project)
    asking.output.show_list(found, ("user", "project", "source", "created_at"))


async def _add_members(asking: Asking, *, project: str, users: tuple[str, ...]) -> None:
    await _show_members(asking, await asking.client.members.change(project, add=users))


async def _remove_members(
    asking: Asking, *, project: str, users: tuple[str, ...]
) -> None:
    results = await asking.client.members.change(project, remove=users)
    await _show_members(asking, results)


async def _show_members(asking: Asking, results: Sequence[Any]) -> None:
    lines = [
        {
            **msgspec.to_builtins(result),
            "result": "failed" if result.error else _tell(result),
            "reason": result.error,
        }
        for result in results
    ]
    asking.output.show_list(lines, ("user", "result", "reason"))
    asking.count_failures(sum(1 for r in results if r.error), len(results))


def _tell(result: Any) -> str:
    if result.added:
        return "added"
    return "removed" if result.removed else "unchanged"


async def _issue(asking: Asking, *, access_key: str) -> None:
    made = await asking.client.keys.issue(access_key)
    asking.output.show_one({"access_key": made.name, "secret_key": made.secret})
    asking.output.note("the secret is shown only this once; the old one is void")


async def _access(asking: Asking, *, group: str) -> None:
    found = await asking.client.group_access.list(group)
    asking.output.show_list(found, ("kind", "name"))


async def _allow(asking: Asking, *, group: str, **given: tuple[str, ...]) -> None:
    changed = await asking.client.group_access.change(group, allow=_targets(given))
    asking.output.show_list(changed, ("kind", "name"))


async def _deny(asking: Asking, *, group: str, **given: tuple[str, ...]) -> None:
    changed = await asking.client.group_access.change(group, deny=_targets(given))
    asking.output.show_list(changed, ("kind", "name"))


_KINDS: Final[tuple[AccessKind, ...]] = ("domain", "project", "keypair")


def _targets(given: dict[str, tuple[str, ...]]) -> list[tuple[AccessKind, str]]:
    found = [(kind, name) for kind in _KINDS for name in given[kind]]
    if not found:
        raise click.UsageError("name a --domain, --project or --keypair")
    return found


_TARGETS: Final = tuple(
    click.Option(
        [f"--{kind}"],
        multiple=True,
        type=NounName(kind),
        help=f"A {kind}; the option can be given several times.",
    )
    for kind in _KINDS
)


async def _verify_usage(asking: Asking) -> None:
    found = await asking.client.limits.verify_usage()
    asking.output.show_one(found)
    if found.drift:
        asking.count_failures(1, 1)


async def _check_presets(
    asking: Asking, *, project: str | None, resource_group: str | None
) -> None:
    found = await asking.client.limits.check_presets(
        project=project, resource_group=resource_group
    )
    if asking.output.as_json:
        asking.output.show_one(found)
        return
    columns = ("name", "resource_slots", "resource_group", "allocatable", "reason")
    asking.output.show_list(found.presets, columns)


def make_members() -> click.Command:
    """Make ``project members``."""
    return make_command("members", _members, [_PROJECT], help="List who is in it.")


def make_add_member() -> click.Command:
    """Make ``project add-member``."""
    return make_command(
        "add-member", _add_members, [_PROJECT, _USERS], help="Add people to a project."
    )


def make_remove_member() -> click.Command:
    """Make ``project remove-member``."""
    return make_command(
        "remove-member",
        _remove_members,
        [_PROJECT, _USERS],
        help="Remove people from a project; what they run goes on.",
    )


def make_issue() -> click.Command:
    """Make ``keypair issue``."""
    return make_command(
        "issue",
        _issue,
        [click.Argument(["access_key"], type=NounName("keypair"))],
        help="Give a keypair a new secret; the old one is refused from now on.",
    )


def make_access() -> click.Command:
    """Make ``resource-group access``."""
    return make_command("access", _access, [_GROUP], help="List who may use it.")


def make_allow() -> click.Command:
    """Make ``resource-group allow``."""
    return make_command(
        "allow", _allow, [_GROUP, *_TARGETS], help="Open a group to somebody."
    )


def make_deny() -> click.Command:
    """Make ``resource-group deny``."""
    return make_command(
        "deny",
        _deny,
        [_GROUP, *_TARGETS],
        help="Close a group to somebody; what runs goes on.",
    )


def make_verify_usage() -> click.Command:
    """Make ``usage verify``."""
    return make_command(
        "verify",
        _verify_usage,
        [],
        help="Compare what is counted as used with what really is; changes nothing.",
    )


def make_check_presets() -> click.Command:
    """Make ``preset check``."""
    return make_command(
        "check",
        _check_presets,
        [
            click.Option(["--project"], type=NounName("project"), help="For whom."),
            click.Option(
                ["--resource-group"],
                type=NounName("resource-group"),
                help="On whose nodes.",
            ),
        ],
        help="Say which presets could start now.",
    )
