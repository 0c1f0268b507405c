"""The groups of commands: what everybody has, and ``backendai admin``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Final

import click

from backendai_hub.commandline import images, tenancy
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.nouns import READING, group_of

Made = Mapping[str, Callable[[], click.Command]]

_MORE: Final[Mapping[str, Made]] = {
    "project": {
        "members": tenancy.make_members,
        "add-member": tenancy.make_add_member,
        "remove-member": tenancy.make_remove_member,
    },
    "keypair": {"issue": tenancy.make_issue},
    "resource-group": {
        "access": tenancy.make_access,
        "allow": tenancy.make_allow,
        "deny": tenancy.make_deny,
    },
    "preset": {"check": tenancy.make_check_presets},
    "folder": {"transfer": lambda: _load_folders().make_transfer()},
    "registry": {"rescan": images.make_rescan},
    "image": {
        "rescan": images.make_rescan,
        "alias": images.make_alias,
        "dealias": images.make_dealias,
        "forget": images.make_forget,
        "untag": images.make_untag,
        "install": images.make_install,
        "installs": images.make_installs,
    },
}
"""Verbs of a noun beyond the common ones."""

_ADMIN: Final = (
    "domain",
    "project",
    "user",
    "keypair",
    "resource-group",
    "preset",
    "reservation",
    "slot-type",
    "registry",
    "image",
    "folder",
)
_POLICIES: Final = ("keypair", "user", "project")


def make_noun_group(name: str) -> click.Group:
    """Make the group of all that may be done with a noun."""
    group = group_of(name)
    group.add_made(_MORE.get(name, {}))
    return group


def _make_policies() -> click.Group:
    return LazyGroup(
        "policy",
        help="Resource policies: what keypairs, users and projects may have.",
        made={kind: _later(f"{kind}-policy") for kind in _POLICIES},
    )


def _make_usage() -> click.Group:
    return LazyGroup(
        "usage", help="What is in use.", made={"verify": tenancy.make_verify_usage}
    )


def _make_fair_share() -> click.Group:
    from backendai_hub.commandline.fair_share import fair_share  # noqa: PLC0415 - later

    return fair_share


def _make_accounts() -> click.Group:
    from backendai_hub.commandline.accounts import account  # noqa: PLC0415 - later

    return account


def _load_folders() -> ModuleType:
    from backendai_hub.commandline import folders  # noqa: PLC0415 - later

    return folders


def _make_storage() -> click.Group:
    from backendai_hub.commandline.storage import make_storage  # noqa: PLC0415 - later

    return make_storage()


def _make_nodes() -> click.Group:
    from backendai_hub.commandline.nodes import node  # noqa: PLC0415 - later

    return node


def _make_schedule() -> click.Group:
    from backendai_hub.commandline.schedule import schedule  # noqa: PLC0415 - later

    return schedule


def _make_queue() -> click.Command:
    from backendai_hub.commandline.schedule import make_queue  # noqa: PLC0415 - later

    return make_queue()


def _later(name: str) -> Callable[[], click.Command]:
    return lambda: make_noun_group(name)


admin = LazyGroup(
    "admin",
    help="Administer domains, projects, users, keypairs, policies and resources.",
    made={
        **{name: _later(name) for name in _ADMIN},
        "policy": _make_policies,
        "usage": _make_usage,
        "account": _make_accounts,
        "node": _make_nodes,
        "schedule": _make_schedule,
        "fair-share": _make_fair_share,
        "storage": _make_storage,
    },
)
keypair = make_noun_group("keypair")
project = group_of("project", only=READING)
project.add_made({"members": tenancy.make_members})
preset = group_of("preset", only=READING)
preset.add_made({"check": tenancy.make_check_presets})
image = group_of("image", only=READING)
resource_group = group_of("resource-group", only=READING)
resource_group.add_made({"queue": _make_queue})
