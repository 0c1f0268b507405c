"""Every noun that is created, read, changed and ended in the one common way.

A noun has a Struct that shows it (:mod:`backendai_hub.core.fields` makes its requests
from it), a table in ``db``, and rules in ``operations`` where it has any of its own.
Routes, the client, the command line and the documentation come from this list.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.fields import request_type
from backendai_hub.core.groups import ResourceGroup, ResourcePreset, ResourceSlotType
from backendai_hub.core.images import ImageRecord, Registry
from backendai_hub.core.operators import Reservation
from backendai_hub.core.policies import KeypairPolicy, ProjectPolicy, UserPolicy
from backendai_hub.core.tenancy import Domain, Keypair, Project, User
from backendai_hub.core.vfolders import Folder


class Verb(StrEnum):
    """What may be done with a noun."""

    READ = "read"
    CREATE = "create"
    UPDATE = "update"
    PURGE = "purge"


class Noun(msgspec.Struct, frozen=True, kw_only=True):
    """One noun.

    ``filters`` are the fields a list can be narrowed by, ``sorts`` those it can be
    ordered by; the first is the usual order. ``verbs`` are what the common routes do.
    ``purge_also`` names what may be removed with one for good, and otherwise stays.
    """

    name: str
    plural: str
    shown: type[msgspec.Struct]
    filters: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ("name", "created_at", "modified_at")
    verbs: tuple[Verb, ...] = tuple(Verb)
    purge_also: tuple[str, ...] = ()

    def action(self, verb: Verb) -> str:
        """Name the action of the access matrix."""
        return f"{self.name}:{verb}"

    @property
    def create_type(self) -> type[msgspec.Struct]:
        """The body that makes one."""
        return request_type(self.shown, change=False)

    @property
    def change_type(self) -> type[msgspec.Struct]:
        """The body that changes one."""
        return request_type(self.shown, change=True)


NOUNS: Final = (
    Noun(
        name="domain",
        plural="domains",
        shown=Domain,
        filters=("name", "is_active", "is_default"),
    ),
    Noun(
        name="project",
        plural="projects",
        shown=Project,
        filters=("name", "domain", "is_active", "type", "resource_policy"),
    ),
    Noun(
        name="user",
        plural="users",
        shown=User,
        filters=("name", "email", "domain", "role", "status", "resource_policy"),
        sorts=("name", "created_at", "modified_at", "role", "status"),
        purge_also=("shared-folders",),
    ),
    Noun(
        name="keypair",
        plural="keypairs",
        shown=Keypair,
        filters=(
            "name",
            "user",
            "is_active",
            "is_admin",
            "is_default",
            "resource_policy",
        ),
    ),
    Noun(
        name="keypair-policy",
        plural="keypair-policies",
        shown=KeypairPolicy,
        filters=("name", "is_default"),
    ),
    Noun(
        name="user-policy",
        plural="user-policies",
        shown=UserPolicy,
        filters=("name", "is_default"),
    ),
    Noun(
        name="project-policy",
        plural="project-policies",
        shown=ProjectPolicy,
        filters=("name", "is_default"),
    ),
    Noun(
        name="resource-group",
        plural="resource-groups",
        shown=ResourceGroup,
        filters=("name", "is_active", "is_public", "is_default"),
    ),
    Noun(
        name="preset",
        plural="presets",
        shown=ResourcePreset,
        filters=("name", "resource_group"),
    ),
    Noun(
        name="reservation",
        plural="reservations",
        shown=Reservation,
        filters=("name", "kind", "resource_group"),
        sorts=("name", "begins_at", "ends_at", "created_at", "modified_at"),
    ),
    Noun(
        name="slot-type",
        plural="slot-types",
        shown=ResourceSlotType,
        filters=("name", "slot_type", "required", "enabled"),
        sorts=("rank", "name"),
    ),
    Noun(
        name="registry",
        plural="registries",
        shown=Registry,
        filters=("name", "type", "is_active", "is_global"),
    ),
    Noun(
        name="image",
        plural="images",
        shown=ImageRecord,
        filters=(
            "name",
            "registry",
            "architecture",
            "status",
            "type",
            "project",
            "tag",
            "runtime",
        ),
        sorts=("name", "created_at", "modified_at", "size_bytes"),
        verbs=(Verb.READ, Verb.UPDATE),
    ),
    Noun(
        name="folder",
        plural="folders",
        shown=Folder,
        filters=(
            "name",
            "host",
            "project",
            "user",
            "domain",
            "usage_mode",
            "ownership_type",
            "status",
            "cloneable",
        ),
        sorts=("name", "created_at", "modified_at", "used_bytes"),
        verbs=(Verb.READ, Verb.CREATE, Verb.UPDATE),
    ),
)

_BY_NAME: Final = {noun.name: noun for noun in NOUNS}


def noun_of(name: str) -> Noun:
    """Return the noun called *name*."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise NotFoundError(f"there is no noun {name[:64]!r}") from None
