"""Who people are here: domains, projects, users and their keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from backendai_hub.core.fields import (
    Choice,
    Document,
    Flag,
    Hosts,
    Line,
    Networks,
    Number,
    Numbers,
    Page,
    Rank,
    Reference,
    Slots,
    Slug,
    Words,
    field,
)

DEFAULT_DOMAIN = "default"
DEFAULT_PROJECT = "default"


class Role(StrEnum):
    """What a user may do beyond their own things."""

    USER = "user"
    DOMAIN_ADMIN = "domain-admin"
    SUPERADMIN = "superadmin"
    MONITOR = "monitor"


class UserStatus(StrEnum):
    """Only who is active may log in."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    DELETED = "deleted"
    BEFORE_VERIFICATION = "before-verification"


class ProjectType(StrEnum):
    """What a project is for."""

    GENERAL = "general"
    MODEL_STORE = "model-store"


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant: its people see nothing of other domains."""

    id: str
    name: Annotated[str, field(Slug(), "Its name.", by=Rank.SUPERADMIN)]
    description: Annotated[str, field(Line(), "What it is.")] = ""
    is_active: Annotated[
        bool,
        field(
            Flag(),
            "Inactive: nobody of it may log in or start anything; what runs goes on.",
            by=Rank.SUPERADMIN,
        ),
    ] = True
    is_default: Annotated[
        bool,
        field(
            Flag(),
            "The domain of people whom nothing else places; at most one.",
            by=Rank.SUPERADMIN,
        ),
    ] = False
    total_resource_slots: Annotated[
        dict[str, str],
        field(
            Slots(),
            "The most that all its sessions may use at once; slots that are not"
            " listed have no limit.",
            by=Rank.SUPERADMIN,
        ),
    ] = {}
    allowed_vfolder_hosts: Annotated[
        dict[str, list[str]],
        field(
            Hosts(),
            "Storage hosts and what is permitted on each.",
            by=Rank.SUPERADMIN,
        ),
    ] = {}
    allowed_docker_registries: Annotated[
        list[str],
        field(
            Words(),
            "Registries whose images may be used, by name; none means no image at"
            " all. The images of the configuration are in the registry 'local'.",
            by=Rank.SUPERADMIN,
        ),
    ] = []
    integration_id: Annotated[
        str, field(Line(), "What an external directory calls it.")
    ] = ""
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class ContainerRegistry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a project's own images are pushed."""

    registry: str
    project: str


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """People who work together and share limits, inside one domain."""

    id: str
    name: Annotated[str, field(Slug(), "Its name, unique in its domain.")]
    domain: Annotated[
        str, field(Reference(noun="domain"), "The domain it is in.", once=True)
    ]
    description: Annotated[str, field(Line(), "What it is.")] = ""
    is_active: Annotated[
        bool,
        field(Flag(), "Inactive: nothing new may start in it; what runs goes on."),
    ] = True
    type: Annotated[
        str,
        field(
            Choice(of=tuple(ProjectType)),
            "'general', or 'model-store' for a collection of models to share.",
            once=True,
        ),
    ] = ProjectType.GENERAL
    total_resource_slots: Annotated[
        dict[str, str],
        field(
            Slots(),
            "The most that all its sessions may use at once; slots that are not"
            " listed have no limit.",
        ),
    ] = {}
    allowed_vfolder_hosts: Annotated[
        dict[str, list[str]],
        field(
            Hosts(), "Storage hosts and what is permitted on each.", by=Rank.SUPERADMIN
        ),
    ] = {}
    resource_policy: Annotated[
        str | None,
        field(
            Reference(noun="project-policy", optional=True),
            "Its project policy; without one, the default.",
        ),
    ] = None
    container_registry: Annotated[
        ContainerRegistry | None,
        field(
            Document(form=ContainerRegistry, optional=True),
            "Where images made in it are pushed: registry and project.",
        ),
    ] = None
    integration_id: Annotated[
        str, field(Line(), "What an external directory calls it.")
    ] = ""
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person. The name is JupyterHub's."""

    id: str
    name: Annotated[str, field(Line(most=255), "The name they log in with.", once=True)]
    email: Annotated[str, field(Line(most=64), "Their address.")] = ""
    full_name: Annotated[str, field(Line(most=64), "Their name in full.")] = ""
    description: Annotated[
        str, field(Line(), "Notes about them.", by=Rank.DOMAIN_ADMIN)
    ] = ""
    status: Annotated[
        str,
        field(
            Choice(of=tuple(UserStatus)),
            "Only who is active may log in; what they run goes on.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = UserStatus.ACTIVE
    role: Annotated[
        str,
        field(
            Choice(of=tuple(Role)),
            "What they may do beyond their own things.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = Role.USER
    domain: Annotated[
        str | None,
        field(
            Reference(noun="domain", optional=True),
            "Their domain; without one, the default. Who moves leaves all projects of"
            " the old one.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = None
    project: Annotated[
        str | None,
        field(
            Reference(noun="project", optional=True),
            "The project used where none is named; they have to be in it.",
        ),
    ] = None
    resource_policy: Annotated[
        str | None,
        field(
            Reference(noun="user-policy", optional=True),
            "Their user policy; without one, the default.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = None
    allowed_client_ip: Annotated[
        list[str],
        field(
            Networks(),
            "Addresses or networks they may come from; none means any.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = []
    sudo_session_enabled: Annotated[
        bool,
        field(
            Flag(),
            "Whether sudo works in their sessions, where those are containers.",
            by=Rank.SUPERADMIN,
        ),
    ] = False
    container_uid: Annotated[
        int | None,
        field(
            Number(least=1000, most=(1 << 31) - 2, optional=True, none="the usual one"),
            "The user id their containers run as.",
            by=Rank.SUPERADMIN,
        ),
    ] = None
    container_main_gid: Annotated[
        int | None,
        field(
            Number(least=1000, most=(1 << 31) - 2, optional=True, none="the usual one"),
            "The main group id their containers run as.",
            by=Rank.SUPERADMIN,
        ),
    ] = None
    container_gids: Annotated[
        list[int],
        field(
            Numbers(least=1000),
            "Further group ids of their containers.",
            by=Rank.SUPERADMIN,
        ),
    ] = []
    integration_id: Annotated[
        str,
        field(Line(), "What an external directory calls them.", by=Rank.DOMAIN_ADMIN),
    ] = ""
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class Keypair(msgspec.Struct, frozen=True, kw_only=True):
    """A key for programs. ``name`` is the access key.

    The secret is shown when it is made and never again: only its hash is kept. A
    keypair whose ``has_secret`` is false can only be used after a secret is issued.
    """

    id: str
    name: str
    user: Annotated[str, field(Reference(noun="user"), "Whose key it is.", once=True)]
    description: Annotated[str, field(Line(), "What it is for.")] = ""
    is_active: Annotated[bool, field(Flag(), "Whether it is accepted.")] = True
    is_admin: Annotated[
        bool,
        field(
            Flag(),
            "Whether it carries its user's administrator's rights, too.",
        ),
    ] = False
    is_default: Annotated[
        bool,
        field(
            Flag(),
            "The default keypair's policy is the user's own limit. Everybody has"
            " exactly one.",
        ),
    ] = False
    rate_limit: Annotated[
        int,
        field(
            Number(least=1, most=50_000),
            "How many requests it may make in 15 minutes.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = 10_000
    resource_policy: Annotated[
        str | None,
        field(
            Reference(noun="keypair-policy", optional=True),
            "Its keypair policy; without one, the default.",
            by=Rank.DOMAIN_ADMIN,
        ),
    ] = None
    bootstrap_script: Annotated[
        str,
        field(
            Page(),
            "Run once in every session started with this key, before it is ready.",
        ),
    ] = ""
    has_secret: bool = False
    secret: str | None = None
    num_queries: int = 0
    last_used_at: str | None = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A user in a project; ``source`` is ``manual``, ``group`` or ``default``."""

    user: str
    user_id: str
    project: str
    project_id: str
    source: str
    created_at: str


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a person for the length of one request.

    ``projects`` are the active projects they are in, by id; ``keypair_id`` is their
    default keypair, whose policy is their own limit.
    """

    id: str
    name: str
    role: Role
    status: UserStatus
    domain_id: str
    domain: str
    domain_active: bool
    project_id: str | None
    projects: dict[str, str]
    keypair_id: str
    keypair_policy_id: str
    user_policy_id: str
    rate_limit: int
    project_policy_ids: tuple[str, ...] = ()
    group_ids: tuple[str, ...] = ()
    """The resource groups open to them in any of their projects."""
    registry_ids: tuple[str, ...] = ()
    """The registries whose images their domain allows."""
    allowed_client_ip: tuple[str, ...] = ()
    groups_digest: str = ""

    @property
    def project(self) -> str | None:
        """The project used where none is named."""
        return None if self.project_id is None else self.projects.get(self.project_id)


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may know of themselves."""

    name: str
    roles: list[Role]
    domain: str
    project: str
    projects: list[str] = []
    sees_agents: bool = True
    """Whether everybody sees the nodes of the groups open to them."""
