"""Domains, projects, users, keypairs, and the policies that limit them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import (
    Amount,
    Base,
    Document,
    Id,
    Key,
    Moment,
    Name,
    Short,
)

_DEFAULT = text("is_default")


class Kept:
    """What every noun that people manage has: one spelling, a revision, times."""

    id: Mapped[Key]
    name: Mapped[Name]
    name_key: Mapped[Name]
    """The name as it is compared: look-alike spellings have the same."""
    revision: Mapped[Amount] = mapped_column(default=1)
    created_at: Mapped[Moment]
    modified_at: Mapped[Moment]


def _one_default(table: str) -> Index:
    return Index(
        f"uq_{table}_one_default",
        "is_default",
        unique=True,
        sqlite_where=_DEFAULT,
        postgresql_where=_DEFAULT,
    )


class DomainRow(Kept, Base):
    """A tenant."""

    __tablename__ = "domains"
    __table_args__ = (UniqueConstraint("name_key"), _one_default("domains"))

    description: Mapped[str] = mapped_column(String(512), default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    is_default: Mapped[bool] = mapped_column(default=False)
    total_resource_slots: Mapped[dict[str, int | None]] = mapped_column(
        Document, default=dict
    )
    allowed_vfolder_hosts: Mapped[dict[str, list[str]]] = mapped_column(
        Document, default=dict
    )
    allowed_docker_registries: Mapped[list[str]] = mapped_column(Document, default=list)
    integration_id: Mapped[str] = mapped_column(String(512), default="")


class ProjectRow(Kept, Base):
    """A group of people who share limits, inside one domain."""

    __tablename__ = "projects"
    __table_args__ = (
        UniqueConstraint("domain_id", "name_key"),
        CheckConstraint("type IN ('general', 'model-store')", name="type"),
    )

    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    description: Mapped[str] = mapped_column(String(512), default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    type: Mapped[Short] = mapped_column(default="general")
    total_resource_slots: Mapped[dict[str, int | None]] = mapped_column(
        Document, default=dict
    )
    allowed_vfolder_hosts: Mapped[dict[str, list[str]]] = mapped_column(
        Document, default=dict
    )
    resource_policy_id: Mapped[Id] = mapped_column(ForeignKey("project_policies.id"))
    container_registry: Mapped[dict[str, Any] | None] = mapped_column(Document)
    integration_id: Mapped[str] = mapped_column(String(512), default="")


class UserRow(Kept, Base):
    """A person. ``name`` is JupyterHub's name for them."""

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("name_key"),
        Index("uq_users_email_key", "email_key", unique=True),
        Index("ix_users_domain", "domain_id"),
        CheckConstraint(
            "status IN ('active', 'inactive', 'deleted', 'before-verification')",
            name="status",
        ),
        CheckConstraint(
            "role IN ('superadmin', 'domain-admin', 'user', 'monitor')", name="role"
        ),
    )

    email: Mapped[str] = mapped_column(String(64), default="")
    email_key: Mapped[Name | None]
    """The address as it is compared; none where there is no address."""
    full_name: Mapped[str] = mapped_column(String(64), default="")
    description: Mapped[str] = mapped_column(String(512), default="")
    status: Mapped[str] = mapped_column(String(32), default="active")
    role: Mapped[Short] = mapped_column(default="user")
    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    project_id: Mapped[Id | None] = mapped_column(ForeignKey("projects.id"))
    """The project used where none is named."""
    resource_policy_id: Mapped[Id] = mapped_column(ForeignKey("user_policies.id"))
    allowed_client_ip: Mapped[list[str]] = mapped_column(Document, default=list)
    sudo_session_enabled: Mapped[bool] = mapped_column(default=False)
    container_uid: Mapped[int | None]
    container_main_gid: Mapped[int | None]
    container_gids: Mapped[list[int]] = mapped_column(Document, default=list)
    integration_id: Mapped[str] = mapped_column(String(512), default="")
    groups_digest: Mapped[str] = mapped_column(String(64), default="")
    """JupyterHub's groups and the rules, hashed, as they were last applied."""
    granted_role: Mapped[Short] = mapped_column(default="")
    """The role that the configuration gives, taken back when it no longer does."""


class MembershipRow(Base):
    """A user in a project; ``source`` is who says so."""

    __tablename__ = "memberships"
    __table_args__ = (
        Index("ix_memberships_user", "user_id"),
        CheckConstraint("source IN ('manual', 'group', 'default')", name="source"),
    )

    project_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("projects.id"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("users.id"), primary_key=True
    )
    source: Mapped[Short] = mapped_column(default="manual")
    created_at: Mapped[Moment]


class KeypairRow(Kept, Base):
    """A key for programs. ``name`` is the access key; only a hash of the secret."""

    __tablename__ = "keypairs"
    __table_args__ = (
        UniqueConstraint("name_key"),
        Index("ix_keypairs_user", "user_id"),
        Index(
            "uq_keypairs_one_default",
            "user_id",
            unique=True,
            sqlite_where=_DEFAULT,
            postgresql_where=_DEFAULT,
        ),
    )

    user_id: Mapped[Id] = mapped_column(ForeignKey("users.id"))
    secret_hash: Mapped[str | None] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(String(512), default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    is_admin: Mapped[bool] = mapped_column(default=False)
    is_default: Mapped[bool] = mapped_column(default=False)
    rate_limit: Mapped[int] = mapped_column(default=10_000)
    resource_policy_id: Mapped[Id] = mapped_column(ForeignKey("keypair_policies.id"))
    bootstrap_script: Mapped[str] = mapped_column(Text(), default="")
    num_queries: Mapped[Amount] = mapped_column(default=0)
    last_used_at: Mapped[Moment | None]


class KeypairPolicyRow(Kept, Base):
    """What one user may use at once, and for how long."""

    __tablename__ = "keypair_policies"
    __table_args__ = (UniqueConstraint("name_key"), _one_default("keypair_policies"))

    description: Mapped[str] = mapped_column(String(512), default="")
    is_default: Mapped[bool] = mapped_column(default=False)
    default_for_unspecified: Mapped[Short]
    total_resource_slots: Mapped[dict[str, int | None]] = mapped_column(Document)
    max_concurrent_sessions: Mapped[int]
    max_concurrent_sftp_sessions: Mapped[int]
    max_pending_session_count: Mapped[int | None]
    max_pending_session_resource_slots: Mapped[dict[str, int | None]] = mapped_column(
        Document
    )
    max_containers_per_session: Mapped[int]
    max_session_lifetime: Mapped[int]
    idle_timeout: Mapped[int]
    max_priority: Mapped[int | None]
    max_job_priority: Mapped[int | None] = mapped_column(default=0, server_default="0")
    allows_not_preemptible: Mapped[bool] = mapped_column(
        default=True, server_default=true()
    )
    allowed_vfolder_hosts: Mapped[dict[str, list[str]]] = mapped_column(Document)


class UserPolicyRow(Kept, Base):
    """What one user may keep."""

    __tablename__ = "user_policies"
    __table_args__ = (UniqueConstraint("name_key"), _one_default("user_policies"))

    description: Mapped[str] = mapped_column(String(512), default="")
    is_default: Mapped[bool] = mapped_column(default=False)
    max_vfolder_count: Mapped[int]
    max_quota_scope_size: Mapped[Amount]
    max_session_count_per_model_session: Mapped[int]
    max_customized_image_count: Mapped[int]
    max_concurrent_logins: Mapped[int | None]


class ProjectPolicyRow(Kept, Base):
    """What one project may keep."""

    __tablename__ = "project_policies"
    __table_args__ = (UniqueConstraint("name_key"), _one_default("project_policies"))

    description: Mapped[str] = mapped_column(String(512), default="")
    is_default: Mapped[bool] = mapped_column(default=False)
    max_vfolder_count: Mapped[int]
    max_quota_scope_size: Mapped[Amount]
    max_network_count: Mapped[int]


class SSHKeyRow(Base):
    """The SSH key that sessions of a keypair get; ``sealed`` is its private part."""

    __tablename__ = "ssh_keys"

    keypair_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("keypairs.id"), primary_key=True
    )
    public_key: Mapped[str] = mapped_column(Text())
    sealed: Mapped[bytes] = mapped_column(LargeBinary())
    changed_at: Mapped[Moment]


class DotfileRow(Base):
    """A file put into the home of every session of a domain, project or keypair."""

    __tablename__ = "dotfiles"
    __table_args__ = (
        UniqueConstraint("scope_kind", "scope_id", "path"),
        CheckConstraint(
            "scope_kind IN ('domain', 'project', 'keypair')", name="scope_kind"
        ),
    )

    id: Mapped[Key]
    scope_kind: Mapped[Short]
    scope_id: Mapped[Id]
    path: Mapped[Name]
    permission: Mapped[str] = mapped_column(String(3))
    content: Mapped[str] = mapped_column(Text())
    modified_at: Mapped[Moment]


class ResourceGroupRow(Kept, Base):
    """Nodes that are scheduled together, and who may use them."""

    __tablename__ = "resource_groups"
    __table_args__ = (UniqueConstraint("name_key"), _one_default("resource_groups"))

    description: Mapped[str] = mapped_column(String(512), default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    is_public: Mapped[bool] = mapped_column(default=True)
    is_default: Mapped[bool] = mapped_column(default=False)
    wsproxy_addr: Mapped[str] = mapped_column(String(1024), default="")
    wsproxy_api_token: Mapped[str] = mapped_column(String(2048), default="")
    """Sealed; only whether there is one is ever shown."""
    driver: Mapped[str] = mapped_column(String(64), default="static")
    driver_opts: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    scheduler: Mapped[str] = mapped_column(String(64), default="fifo")
    scheduler_opts: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    use_host_network: Mapped[bool] = mapped_column(default=False)
    fair_share_spec: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    default_session_options: Mapped[dict[str, Any]] = mapped_column(
        Document, default=dict
    )
    default_deployment_options: Mapped[dict[str, Any]] = mapped_column(
        Document, default=dict
    )


class ResourceGroupAccessRow(Base):
    """A domain, project or keypair that may use a resource group."""

    __tablename__ = "resource_group_access"
    __table_args__ = (
        Index("ix_resource_group_access_target", "target_id"),
        CheckConstraint("kind IN ('domain', 'project', 'keypair')", name="kind"),
    )

    group_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("resource_groups.id"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    target_id: Mapped[str] = mapped_column(String(36), primary_key=True)


class PresetRow(Kept, Base):
    """Amounts that go together, offered by one name."""

    __tablename__ = "resource_presets"
    __table_args__ = (
        Index(
            "uq_resource_presets_global",
            "name_key",
            unique=True,
            sqlite_where=text("resource_group_id IS NULL"),
            postgresql_where=text("resource_group_id IS NULL"),
        ),
        UniqueConstraint("resource_group_id", "name_key"),
    )

    description: Mapped[str] = mapped_column(String(512), default="")
    resource_group_id: Mapped[Id | None] = mapped_column(
        ForeignKey("resource_groups.id")
    )
    resource_slots: Mapped[dict[str, int | None]] = mapped_column(Document)
    shared_memory: Mapped[Amount] = mapped_column(default=0)


class SlotTypeRow(Kept, Base):
    """A kind of resource that can be asked for."""

    __tablename__ = "resource_slot_types"
    __table_args__ = (
        UniqueConstraint("name_key"),
        CheckConstraint(
            "slot_type IN ('count', 'bytes', 'unique', 'unified')", name="slot_type"
        ),
    )

    slot_type: Mapped[Short]
    required: Mapped[bool] = mapped_column(default=False)
    enabled: Mapped[bool] = mapped_column(default=True)
    display_name: Mapped[str] = mapped_column(String(64), default="")
    description: Mapped[str] = mapped_column(String(512), default="")
    display_unit: Mapped[str] = mapped_column(String(32), default="")
    display_icon: Mapped[str] = mapped_column(String(64), default="")
    number_format: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    rank: Mapped[int] = mapped_column(Integer(), default=1000)
