"""Tenancy: policies, keypairs, memberships, resource groups, registries, audit.

What was there before goes on as it was: everybody becomes a member of their project
and gets a default keypair (without a secret yet), the limits that the ledger held
become those of domains, projects and policies, and all nodes and tenants share the
resource group "default".
"""

import unicodedata
import uuid
from collections import Counter
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
LIVE = "('SCHEDULED', 'PREPARING', 'PULLING', 'CREATING', 'RUNNING', 'TERMINATING')"
OLD_KINDS = "kind IN ('domain', 'project', 'user', 'device')"
NEW_KINDS = "kind IN ('domain', 'project', 'user', 'keypair', 'device')"


def upgrade() -> None:
    create_tables()
    widen_tenants()
    fill_tenants()
    close_tenants()
    # The images on offer are written anew whenever the service starts.
    op.drop_table("images")
    create_images()
    widen_sessions()
    fill_ledger()


def create_tables() -> None:
    op.create_table(
        "audit",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.INTEGER(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("actor_id", sa.String(length=36), nullable=True),
        sa.Column("actor", sa.String(length=256), nullable=False),
        sa.Column("acted_as", sa.String(length=256), nullable=False),
        sa.Column("credential", sa.String(length=32), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_kind", sa.String(length=32), nullable=False),
        sa.Column("object_id", sa.String(length=36), nullable=True),
        sa.Column("object_name", sa.String(length=512), nullable=False),
        sa.Column("domain_id", sa.String(length=36), nullable=True),
        sa.Column("owner_id", sa.String(length=36), nullable=True),
        sa.Column("before", DOCUMENT, nullable=True),
        sa.Column("after", DOCUMENT, nullable=True),
        sa.Column("result", sa.String(length=16), nullable=False),
        sa.Column("code", sa.String(length=64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            "result IN ('success', 'refused', 'failed')", name=op.f("ck_audit_result")
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_actor", "audit", ["actor_id", "seq"], unique=False)
    op.create_index("ix_audit_domain", "audit", ["domain_id", "seq"], unique=False)
    op.create_index("ix_audit_object", "audit", ["object_id", "seq"], unique=False)
    forbid_changes()

    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_head")),
    )
    op.create_table(
        "dotfiles",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("scope_kind", sa.String(length=16), nullable=False),
        sa.Column("scope_id", sa.String(length=36), nullable=False),
        sa.Column("path", sa.String(length=256), nullable=False),
        sa.Column("permission", sa.String(length=3), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "scope_kind IN ('domain', 'project', 'keypair')",
            name=op.f("ck_dotfiles_scope_kind"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dotfiles")),
        sa.UniqueConstraint(
            "scope_kind",
            "scope_id",
            "path",
            name=op.f("uq_dotfiles_scope_kind_scope_id_path"),
        ),
    )
    op.create_table(
        "keypair_policies",
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("default_for_unspecified", sa.String(length=16), nullable=False),
        sa.Column("total_resource_slots", DOCUMENT, nullable=False),
        sa.Column("max_concurrent_sessions", sa.Integer(), nullable=False),
        sa.Column("max_concurrent_sftp_sessions", sa.Integer(), nullable=False),
        sa.Column("max_pending_session_count", sa.Integer(), nullable=True),
        sa.Column("max_pending_session_resource_slots", DOCUMENT, nullable=False),
        sa.Column("max_containers_per_session", sa.Integer(), nullable=False),
        sa.Column("max_session_lifetime", sa.Integer(), nullable=False),
        sa.Column("idle_timeout", sa.Integer(), nullable=False),
        sa.Column("max_priority", sa.Integer(), nullable=True),
        sa.Column("allowed_vfolder_hosts", DOCUMENT, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keypair_policies")),
        sa.UniqueConstraint("name_key", name=op.f("uq_keypair_policies_name_key")),
    )
    op.create_index(
        "uq_keypair_policies_one_default",
        "keypair_policies",
        ["is_default"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )

    op.create_table(
        "project_policies",
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("max_vfolder_count", sa.Integer(), nullable=False),
        sa.Column("max_quota_scope_size", sa.BigInteger(), nullable=False),
        sa.Column("max_network_count", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_policies")),
        sa.UniqueConstraint("name_key", name=op.f("uq_project_policies_name_key")),
    )
    op.create_index(
        "uq_project_policies_one_default",
        "project_policies",
        ["is_default"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )

    op.create_table(
        "registries",
        sa.Column("url", sa.String(length=1024), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("project", sa.String(length=256), nullable=False),
        sa.Column("repositories", DOCUMENT, nullable=False),
        sa.Column("username", sa.String(length=256), nullable=False),
        sa.Column("password", sa.LargeBinary(), nullable=True),
        sa.Column("ssl_verify", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("is_global", sa.Boolean(), nullable=False),
        sa.Column("extra", DOCUMENT, nullable=False),
        sa.Column("rescanned_at", MOMENT, nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registries")),
        sa.UniqueConstraint("name_key", name=op.f("uq_registries_name_key")),
    )
    op.create_table(
        "resource_groups",
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("wsproxy_addr", sa.String(length=1024), nullable=False),
        sa.Column("wsproxy_api_token", sa.String(length=2048), nullable=False),
        sa.Column("driver", sa.String(length=64), nullable=False),
        sa.Column("driver_opts", DOCUMENT, nullable=False),
        sa.Column("scheduler", sa.String(length=64), nullable=False),
        sa.Column("scheduler_opts", DOCUMENT, nullable=False),
        sa.Column("use_host_network", sa.Boolean(), nullable=False),
        sa.Column("fair_share_spec", DOCUMENT, nullable=False),
        sa.Column("default_session_options", DOCUMENT, nullable=False),
        sa.Column("default_deployment_options", DOCUMENT, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_groups")),
        sa.UniqueConstraint("name_key", name=op.f("uq_resource_groups_name_key")),
    )
    op.create_index(
        "uq_resource_groups_one_default",
        "resource_groups",
        ["is_default"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )

    op.create_table(
        "resource_slot_types",
        sa.Column("slot_type", sa.String(length=16), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("display_name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("display_unit", sa.String(length=32), nullable=False),
        sa.Column("display_icon", sa.String(length=64), nullable=False),
        sa.Column("number_format", DOCUMENT, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "slot_type IN ('count', 'bytes', 'unique', 'unified')",
            name=op.f("ck_resource_slot_types_slot_type"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_slot_types")),
        sa.UniqueConstraint("name_key", name=op.f("uq_resource_slot_types_name_key")),
    )
    op.create_table(
        "user_policies",
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("max_vfolder_count", sa.Integer(), nullable=False),
        sa.Column("max_quota_scope_size", sa.BigInteger(), nullable=False),
        sa.Column("max_session_count_per_model_session", sa.Integer(), nullable=False),
        sa.Column("max_customized_image_count", sa.Integer(), nullable=False),
        sa.Column("max_concurrent_logins", sa.Integer(), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_policies")),
        sa.UniqueConstraint("name_key", name=op.f("uq_user_policies_name_key")),
    )
    op.create_index(
        "uq_user_policies_one_default",
        "user_policies",
        ["is_default"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )

    op.create_table(
        "resource_group_access",
        sa.Column("group_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("target_id", sa.String(length=36), nullable=False),
        sa.CheckConstraint(
            "kind IN ('domain', 'project', 'keypair')",
            name=op.f("ck_resource_group_access_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["resource_groups.id"],
            name=op.f("fk_resource_group_access_group_id_resource_groups"),
        ),
        sa.PrimaryKeyConstraint(
            "group_id", "kind", "target_id", name=op.f("pk_resource_group_access")
        ),
    )
    op.create_index(
        "ix_resource_group_access_target",
        "resource_group_access",
        ["target_id"],
        unique=False,
    )

    op.create_table(
        "resource_presets",
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("resource_group_id", sa.String(length=36), nullable=True),
        sa.Column("resource_slots", DOCUMENT, nullable=False),
        sa.Column("shared_memory", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_group_id"],
            ["resource_groups.id"],
            name=op.f("fk_resource_presets_resource_group_id_resource_groups"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_presets")),
        sa.UniqueConstraint(
            "resource_group_id",
            "name_key",
            name=op.f("uq_resource_presets_resource_group_id_name_key"),
        ),
    )
    op.create_index(
        "uq_resource_presets_global",
        "resource_presets",
        ["name_key"],
        unique=True,
        sqlite_where=sa.text("resource_group_id IS NULL"),
        postgresql_where=sa.text("resource_group_id IS NULL"),
    )

    op.create_table(
        "keypairs",
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=True),
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("rate_limit", sa.Integer(), nullable=False),
        sa.Column("resource_policy_id", sa.String(length=36), nullable=False),
        sa.Column("bootstrap_script", sa.Text(), nullable=False),
        sa.Column("num_queries", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_policy_id"],
            ["keypair_policies.id"],
            name=op.f("fk_keypairs_resource_policy_id_keypair_policies"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_keypairs_user_id_users")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keypairs")),
        sa.UniqueConstraint("name_key", name=op.f("uq_keypairs_name_key")),
    )
    op.create_index("ix_keypairs_user", "keypairs", ["user_id"], unique=False)
    op.create_index(
        "uq_keypairs_one_default",
        "keypairs",
        ["user_id"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )

    op.create_table(
        "memberships",
        sa.Column("project_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "source IN ('manual', 'group', 'default')",
            name=op.f("ck_memberships_source"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_memberships_project_id_projects"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_memberships_user_id_users")
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_memberships")),
    )
    op.create_index("ix_memberships_user", "memberships", ["user_id"], unique=False)

    op.create_table(
        "logins",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("place", sa.String(length=128), nullable=False),
        sa.Column("session_hash", sa.String(length=64), nullable=True),
        sa.Column("keypair_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_logins_user_id_users")
        ),
        sa.ForeignKeyConstraint(
            ["keypair_id"],
            ["keypairs.id"],
            name=op.f("fk_logins_keypair_id_keypairs"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logins")),
        sa.UniqueConstraint(
            "user_id", "session_hash", name=op.f("uq_logins_user_id_session_hash")
        ),
    )
    op.create_index("ix_logins_keypair", "logins", ["keypair_id"], unique=False)


def create_images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.Column("title", sa.String(length=256), nullable=False),
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("registry_id", sa.String(length=36), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=True),
        sa.Column("project", sa.String(length=256), nullable=False),
        sa.Column("repository", sa.String(length=512), nullable=False),
        sa.Column("tag", sa.String(length=256), nullable=False),
        sa.Column("architecture", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=128), nullable=False),
        sa.Column("config_digest", sa.String(length=128), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("runtime", sa.String(length=64), nullable=False),
        sa.Column("references", DOCUMENT, nullable=False),
        sa.Column("label_minimum", DOCUMENT, nullable=False),
        sa.Column("minimum", DOCUMENT, nullable=False),
        sa.Column("maximum", DOCUMENT, nullable=False),
        sa.Column("preferred", DOCUMENT, nullable=False),
        sa.Column("shmem", sa.BigInteger(), nullable=False),
        sa.Column("accelerators", DOCUMENT, nullable=False),
        sa.Column("labels", DOCUMENT, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "status IN ('ALIVE', 'DELETED')", name=op.f("ck_images_status")
        ),
        sa.CheckConstraint(
            "type IN ('compute', 'system', 'service')", name=op.f("ck_images_type")
        ),
        sa.ForeignKeyConstraint(
            ["registry_id"],
            ["registries.id"],
            name=op.f("fk_images_registry_id_registries"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_images_owner_id_users")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
        sa.UniqueConstraint(
            "name_key", "architecture", name=op.f("uq_images_name_key_architecture")
        ),
    )
    op.create_index("ix_images_digest", "images", ["digest"])
    op.create_table(
        "image_aliases",
        sa.Column("alias", sa.String(length=256), nullable=False),
        sa.Column("alias_key", sa.String(length=256), nullable=False),
        sa.Column("image_id", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name=op.f("fk_image_aliases_image_id_images")
        ),
        sa.PrimaryKeyConstraint("alias", name=op.f("pk_image_aliases")),
        sa.UniqueConstraint("alias_key", name=op.f("uq_image_aliases_alias_key")),
    )
    op.create_table(
        "image_installs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("image_id", sa.String(length=36), nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=False),
        sa.Column("reference", sa.String(length=512), nullable=False),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("progress", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.String(length=256), nullable=False),
        sa.Column("requested_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "state IN ('waiting', 'pulling', 'done', 'failed')",
            name=op.f("ck_image_installs_state"),
        ),
        sa.CheckConstraint(
            "wanted IN ('present', 'absent')", name=op.f("ck_image_installs_wanted")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_image_installs_agent_id_agents")
        ),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name=op.f("fk_image_installs_image_id_images")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_image_installs")),
        sa.UniqueConstraint(
            "agent_id", "reference", name=op.f("uq_image_installs_agent_id_reference")
        ),
    )


KEPT = (
    ("name_key", sa.String(length=256)),
    ("revision", sa.BigInteger()),
    ("modified_at", MOMENT),
)
WIDER = {
    "domains": (
        *KEPT,
        ("description", sa.String(length=512)),
        ("is_active", sa.Boolean()),
        ("is_default", sa.Boolean()),
        ("total_resource_slots", DOCUMENT),
        ("allowed_vfolder_hosts", DOCUMENT),
        ("allowed_docker_registries", DOCUMENT),
        ("integration_id", sa.String(length=512)),
    ),
    "projects": (
        *KEPT,
        ("description", sa.String(length=512)),
        ("is_active", sa.Boolean()),
        ("type", sa.String(length=16)),
        ("total_resource_slots", DOCUMENT),
        ("allowed_vfolder_hosts", DOCUMENT),
        ("resource_policy_id", sa.String(length=36)),
        ("integration_id", sa.String(length=512)),
    ),
    "users": (
        *KEPT,
        ("email", sa.String(length=64)),
        ("full_name", sa.String(length=64)),
        ("description", sa.String(length=512)),
        ("status", sa.String(length=32)),
        ("role", sa.String(length=16)),
        ("resource_policy_id", sa.String(length=36)),
        ("allowed_client_ip", DOCUMENT),
        ("sudo_session_enabled", sa.Boolean()),
        ("container_gids", DOCUMENT),
        ("integration_id", sa.String(length=512)),
        ("groups_digest", sa.String(length=64)),
        ("granted_role", sa.String(length=16)),
    ),
}
"""Columns that have to be filled before they can be demanded."""
NULLABLE = {
    "projects": (("container_registry", DOCUMENT),),
    "users": (
        ("email_key", sa.String(length=256)),
        ("container_uid", sa.Integer()),
        ("container_main_gid", sa.Integer()),
    ),
}


def forbid_changes() -> None:
    """Rows of the audit are added, never changed or removed."""
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit"
                " BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit"
        " FOR EACH ROW EXECUTE FUNCTION audit_refuse()"
    )
    op.execute(
        "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit"
        " FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()"
    )


def widen_tenants() -> None:
    for table, columns in WIDER.items():
        with op.batch_alter_table(table) as batch:
            for name, kind in (*columns, *NULLABLE.get(table, ())):
                batch.add_column(sa.Column(name, kind, nullable=True))
    with op.batch_alter_table("accounts") as batch:
        batch.add_column(sa.Column("logins_ended_at", MOMENT, nullable=True))
    with op.batch_alter_table("agents") as batch:
        batch.add_column(
            sa.Column("resource_group_id", sa.String(length=36), nullable=True)
        )
        batch.create_foreign_key(
            op.f("fk_agents_resource_group_id_resource_groups"),
            "resource_groups",
            ["resource_group_id"],
            ["id"],
        )


def close_tenants() -> None:
    checks = {
        "domains": (),
        "projects": (("type", "type IN ('general', 'model-store')"),),
        "users": (
            (
                "status",
                "status IN ('active', 'inactive', 'deleted', 'before-verification')",
            ),
            ("role", "role IN ('superadmin', 'domain-admin', 'user', 'monitor')"),
        ),
    }
    old_unique = {
        "domains": "uq_domains_name",
        "projects": "uq_projects_domain_id_name",
        "users": "uq_users_name",
    }
    for table, columns in WIDER.items():
        with op.batch_alter_table(table) as batch:
            for name, kind in columns:
                batch.alter_column(name, existing_type=kind, nullable=False)
            for name, rule in checks[table]:
                batch.create_check_constraint(op.f(f"ck_{table}_{name}"), rule)
            batch.drop_constraint(op.f(old_unique[table]), type_="unique")
            if table == "projects":
                batch.create_unique_constraint(
                    op.f("uq_projects_domain_id_name_key"), ["domain_id", "name_key"]
                )
                batch.create_foreign_key(
                    op.f("fk_projects_resource_policy_id_project_policies"),
                    "project_policies",
                    ["resource_policy_id"],
                    ["id"],
                )
            else:
                batch.create_unique_constraint(
                    op.f(f"uq_{table}_name_key"), ["name_key"]
                )
            if table == "users":
                batch.alter_column(
                    "project_id", existing_type=sa.String(length=36), nullable=True
                )
                batch.create_foreign_key(
                    op.f("fk_users_resource_policy_id_user_policies"),
                    "user_policies",
                    ["resource_policy_id"],
                    ["id"],
                )
    op.create_index("ix_users_domain", "users", ["domain_id"])
    op.create_index("uq_users_email_key", "users", ["email_key"], unique=True)
    default = sa.text("is_default")
    op.create_index(
        "uq_domains_one_default",
        "domains",
        ["is_default"],
        unique=True,
        sqlite_where=default,
        postgresql_where=default,
    )


def widen_sessions() -> None:
    with op.batch_alter_table("sessions") as batch:
        for column, table in (
            ("keypair_id", "keypairs"),
            ("resource_group_id", "resource_groups"),
            ("image_id", "images"),
        ):
            batch.add_column(sa.Column(column, sa.String(length=36), nullable=True))
            batch.create_foreign_key(
                op.f(f"fk_sessions_{column}_{table}"), table, [column], ["id"]
            )
        batch.add_column(
            sa.Column("priority", sa.Integer(), nullable=False, server_default="10")
        )
    run(
        "UPDATE sessions SET resource_group_id ="
        " (SELECT id FROM resource_groups WHERE is_default),"
        " keypair_id = (SELECT k.id FROM keypairs k"
        " WHERE k.user_id = sessions.owner_id AND k.is_default)"
    )


# --- rows ------------------------------------------------------------------------


def run(statement: str, **values: object) -> sa.CursorResult:
    return op.get_bind().execute(sa.text(statement), values)


def table(name: str, *columns: str) -> sa.TableClause:
    documents = {
        "total_resource_slots",
        "max_pending_session_resource_slots",
        "allowed_vfolder_hosts",
        "allowed_docker_registries",
        "allowed_client_ip",
        "container_gids",
        "scheduler_opts",
        "driver_opts",
        "fair_share_spec",
        "default_session_options",
        "default_deployment_options",
    }
    moments = {"created_at", "modified_at"}

    def kind(column: str) -> sa.types.TypeEngine:
        if column in documents:
            return DOCUMENT
        return MOMENT if column in moments else sa.types.NullType()

    return sa.table(name, *(sa.column(c, kind(c)) for c in columns))


def insert(name: str, /, **values: object) -> str:
    key = str(uuid.uuid4())
    values = {"id": key, **values}
    op.get_bind().execute(sa.insert(table(name, *values)).values(**values))
    return key


def fold(name: str) -> str:
    once = unicodedata.normalize("NFKC", name).strip().casefold()
    return unicodedata.normalize("NFKC", once)


def kept(name: str) -> dict[str, object]:
    now = datetime.now(UTC)
    return {
        "name": name,
        "name_key": name,
        "revision": 1,
        "created_at": now,
        "modified_at": now,
        "description": "",
        "is_default": name == "default",
    }


def read_quotas(kind: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for owner, slot, quota in run(
        "SELECT owner_id, slot, quota FROM ledger"
        " WHERE kind = :kind AND quota IS NOT NULL",
        kind=kind,
    ):
        found.setdefault(owner, {})[slot] = quota
    return found


def fill_tenants() -> None:
    if not run("SELECT COUNT(*) FROM domains").scalar():
        return  # a new database: the service makes what it needs when it starts
    group = insert(
        "resource_groups",
        **kept("default"),
        is_active=True,
        is_public=True,
        wsproxy_addr="",
        wsproxy_api_token="",
        driver="static",
        driver_opts={},
        scheduler="fifo",
        scheduler_opts={},
        use_host_network=False,
        fair_share_spec={},
        default_session_options={},
        default_deployment_options={},
    )
    run("UPDATE agents SET resource_group_id = :group", group=group)
    project_policy = insert(
        "project_policies",
        **kept("default"),
        max_vfolder_count=0,
        max_quota_scope_size=-1,
        max_network_count=3,
    )
    user_policy = insert(
        "user_policies",
        **kept("default"),
        max_vfolder_count=0,
        max_quota_scope_size=-1,
        max_session_count_per_model_session=10,
        max_customized_image_count=3,
    )
    fill_domains(group)
    fill_projects(project_policy)
    fill_users(user_policy)
    fill_keypairs()


def fill_domains(group: str) -> None:
    quotas = read_quotas("domain")
    domains = table(
        "domains",
        "id",
        "name_key",
        "modified_at",
        "revision",
        "description",
        "is_active",
        "is_default",
        "total_resource_slots",
        "allowed_vfolder_hosts",
        "allowed_docker_registries",
        "integration_id",
    )
    for key, name, created in run("SELECT id, name, created_at FROM domains").all():
        del created
        op.get_bind().execute(
            sa.update(domains)
            .where(domains.c.id == key)
            .values(
                name_key=fold(name),
                modified_at=datetime.now(UTC),
                revision=1,
                description="",
                is_active=True,
                is_default=name == "default",
                total_resource_slots=quotas.get(key, {}),
                allowed_vfolder_hosts={},
                allowed_docker_registries=["local"],
                integration_id="",
            )
        )
        op.get_bind().execute(
            sa.insert(
                table("resource_group_access", "group_id", "kind", "target_id")
            ).values(group_id=group, kind="domain", target_id=key)
        )


def fill_projects(policy: str) -> None:
    quotas = read_quotas("project")
    projects = table(
        "projects",
        "id",
        "name_key",
        "modified_at",
        "revision",
        "description",
        "is_active",
        "type",
        "total_resource_slots",
        "allowed_vfolder_hosts",
        "resource_policy_id",
        "integration_id",
    )
    for key, name in run("SELECT id, name FROM projects").all():
        op.get_bind().execute(
            sa.update(projects)
            .where(projects.c.id == key)
            .values(
                name_key=fold(name),
                modified_at=datetime.now(UTC),
                revision=1,
                description="",
                is_active=True,
                type="general",
                total_resource_slots=quotas.get(key, {}),
                allowed_vfolder_hosts={},
                resource_policy_id=policy,
                integration_id="",
            )
        )


def fill_users(policy: str) -> None:
    users = table(
        "users",
        "id",
        "name_key",
        "modified_at",
        "revision",
        "email",
        "full_name",
        "description",
        "status",
        "role",
        "resource_policy_id",
        "allowed_client_ip",
        "sudo_session_enabled",
        "container_gids",
        "integration_id",
        "groups_digest",
        "granted_role",
    )
    taken: set[str] = set()
    people = run("SELECT id, name FROM users ORDER BY created_at, id").all()
    for key, name in people:
        # Of spellings that are now the same name, the first that came has it.
        folded = fold(name)
        name_key = key if folded in taken else folded
        taken.add(folded)
        op.get_bind().execute(
            sa.update(users)
            .where(users.c.id == key)
            .values(
                name_key=name_key,
                modified_at=datetime.now(UTC),
                revision=1,
                email="",
                full_name="",
                description="",
                status="active",
                role="user",
                resource_policy_id=policy,
                allowed_client_ip=[],
                sudo_session_enabled=False,
                container_gids=[],
                integration_id="",
                groups_digest="",
                granted_role="",
            )
        )
    run(
        "INSERT INTO memberships (project_id, user_id, source, created_at)"
        " SELECT project_id, id, 'default', created_at FROM users"
    )


def fill_keypairs() -> None:
    """Give everybody a default keypair, and a policy that limits as before."""
    quotas = read_quotas("user")
    people = [key for (key,) in run("SELECT id FROM users ORDER BY created_at").all()]
    kinds = Counter(tuple(sorted(quotas.get(p, {}).items())) for p in people)
    policies: dict[tuple[tuple[str, int], ...], str] = {}
    for number, (limits, _) in enumerate(kinds.most_common()):
        policies[limits] = insert(
            "keypair_policies",
            **kept("default" if number == 0 else f"default-{number + 1}"),
            default_for_unspecified="UNLIMITED",
            total_resource_slots=dict(limits),
            max_concurrent_sessions=0,
            max_concurrent_sftp_sessions=1,
            max_pending_session_resource_slots={},
            max_containers_per_session=1,
            max_session_lifetime=0,
            idle_timeout=0,
            allowed_vfolder_hosts={},
        )
    for person in people:
        access_key = f"AKIA{uuid.uuid4().hex[:16].upper()}"
        insert(
            "keypairs",
            **{
                **kept(access_key),
                "name_key": access_key.casefold(),
                "is_default": True,
            },
            user_id=person,
            is_active=True,
            is_admin=False,
            rate_limit=10_000,
            resource_policy_id=policies[tuple(sorted(quotas.get(person, {}).items()))],
            bootstrap_script="",
            num_queries=0,
        )


def fill_ledger() -> None:
    """Count keypairs and running sessions too; limits are read where they are kept."""
    replace_kind_check(NEW_KINDS)
    run("UPDATE ledger SET quota = NULL, cap = NULL WHERE kind <> 'device'")
    run(
        "INSERT INTO ledger (kind, owner_id, slot, used)"
        " SELECT 'keypair', k.id, l.slot, l.used FROM ledger l"
        " JOIN keypairs k ON k.user_id = l.owner_id AND k.is_default"
        " WHERE l.kind = 'user'"
    )
    for kind, column in (
        ("domain", "domain_id"),
        ("project", "project_id"),
        ("user", "owner_id"),
        ("keypair", "keypair_id"),
    ):
        run(
            "INSERT INTO ledger (kind, owner_id, slot, used)"
            f" SELECT '{kind}', {column}, 'sessions', 1000 * COUNT(*) FROM sessions"
            f" WHERE status IN {LIVE} GROUP BY {column}"
        )


def replace_kind_check(rule: str) -> None:
    with op.batch_alter_table("ledger") as batch:
        batch.drop_constraint(op.f("ck_ledger_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_ledger_kind"), rule)


# --- and back --------------------------------------------------------------------


def downgrade() -> None:
    back_to_quotas()
    run(
        "DELETE FROM ledger WHERE kind = 'keypair' OR (kind <> 'device'"
        " AND slot IN ('sessions', 'sftp-sessions'))"
    )
    replace_kind_check(OLD_KINDS)
    with op.batch_alter_table("sessions") as batch:
        for column, other in (
            ("keypair_id", "keypairs"),
            ("resource_group_id", "resource_groups"),
            ("image_id", "images"),
        ):
            batch.drop_constraint(
                op.f(f"fk_sessions_{column}_{other}"), type_="foreignkey"
            )
            batch.drop_column(column)
        batch.drop_column("priority")
    op.drop_table("image_installs")
    op.drop_table("image_aliases")
    op.drop_table("images")
    op.create_table(
        "images",
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("definition", DOCUMENT, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_images")),
    )
    with op.batch_alter_table("agents") as batch:
        batch.drop_constraint(
            op.f("fk_agents_resource_group_id_resource_groups"), type_="foreignkey"
        )
        batch.drop_column("resource_group_id")
    narrow_tenants()
    with op.batch_alter_table("accounts") as batch:
        batch.drop_column("logins_ended_at")
    for name in (
        "logins",
        "memberships",
        "keypairs",
        "resource_presets",
        "resource_group_access",
        "resource_groups",
        "keypair_policies",
        "user_policies",
        "project_policies",
        "resource_slot_types",
        "registries",
        "dotfiles",
        "audit",
        "audit_head",
    ):
        op.drop_table(name)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_refuse")


def back_to_quotas() -> None:
    """Put the limits back into the ledger, where they were kept before."""
    limits = [
        ("domain", "SELECT id, total_resource_slots FROM domains"),
        ("project", "SELECT id, total_resource_slots FROM projects"),
        (
            "user",
            "SELECT k.user_id, p.total_resource_slots FROM keypairs k"
            " JOIN keypair_policies p ON p.id = k.resource_policy_id"
            " WHERE k.is_default",
        ),
    ]
    for kind, query in limits:
        rows = op.get_bind().execute(
            sa.text(query).columns(sa.column("id"), sa.column("slots", DOCUMENT))
        )
        for owner, slots in rows.all():
            for slot, quota in (slots or {}).items():
                if quota is not None:
                    put_quota(kind, owner, slot, quota)


def put_quota(kind: str, owner: str, slot: str, quota: int) -> None:
    key = {"kind": kind, "owner": owner, "slot": slot}
    where = "kind = :kind AND owner_id = :owner AND slot = :slot"
    used = run(f"SELECT used FROM ledger WHERE {where}", **key).scalar()
    values = {**key, "quota": quota, "cap": max(quota, used or 0)}
    if used is None:
        run(
            "INSERT INTO ledger (kind, owner_id, slot, used, quota, cap)"
            " VALUES (:kind, :owner, :slot, 0, :quota, :cap)",
            **values,
        )
    else:
        run(f"UPDATE ledger SET quota = :quota, cap = :cap WHERE {where}", **values)


def narrow_tenants() -> None:
    # Somebody without a project did not exist before.
    run(
        "UPDATE users SET project_id = (SELECT p.id FROM projects p"
        " ORDER BY p.created_at LIMIT 1) WHERE project_id IS NULL"
    )
    op.drop_index("uq_domains_one_default", "domains")
    op.drop_index("uq_users_email_key", "users")
    op.drop_index("ix_users_domain", "users")
    with op.batch_alter_table("projects") as batch:
        batch.drop_constraint(
            op.f("fk_projects_resource_policy_id_project_policies"), type_="foreignkey"
        )
        batch.drop_constraint(op.f("uq_projects_domain_id_name_key"), type_="unique")
        batch.create_unique_constraint(
            op.f("uq_projects_domain_id_name"), ["domain_id", "name"]
        )
    with op.batch_alter_table("users") as batch:
        batch.alter_column(
            "project_id", existing_type=sa.String(length=36), nullable=False
        )
        batch.drop_constraint(
            op.f("fk_users_resource_policy_id_user_policies"), type_="foreignkey"
        )
        batch.drop_constraint(op.f("uq_users_name_key"), type_="unique")
        batch.create_unique_constraint(op.f("uq_users_name"), ["name"])
    with op.batch_alter_table("domains") as batch:
        batch.drop_constraint(op.f("uq_domains_name_key"), type_="unique")
        batch.create_unique_constraint(op.f("uq_domains_name"), ["name"])
    checks = {"projects": ("type",), "users": ("status", "role")}
    for name, columns in WIDER.items():
        with op.batch_alter_table(name) as batch:
            for check in checks.get(name, ()):
                batch.drop_constraint(op.f(f"ck_{name}_{check}"), type_="check")
            for column, _ in (*columns, *NULLABLE.get(name, ())):
                batch.drop_column(column)
