"""The first schema: tenants, nodes, sessions, the ledger, events, accounts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
BIG_KEY = sa.BigInteger().with_variant(sa.INTEGER(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("password_hash", sa.String(length=512), nullable=False),
        sa.Column("must_change", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("locked_until", MOMENT, nullable=True),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_accounts")),
    )
    op.create_table(
        "agents",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("machine_id", sa.String(length=256), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("schedulable", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.String(length=512), nullable=False),
        sa.Column("architecture", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("isolation", DOCUMENT, nullable=False),
        sa.Column("images", DOCUMENT, nullable=False),
        sa.Column("unknown", DOCUMENT, nullable=False),
        sa.Column("enrolled_at", MOMENT, nullable=False),
        sa.Column("first_seen_at", MOMENT, nullable=True),
        sa.Column("last_seen_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "status IN ('ALIVE', 'SUSPECT', 'LOST', 'TERMINATED')",
            name=op.f("ck_agents_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_table(
        "domains",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_domains")),
        sa.UniqueConstraint("name", name=op.f("uq_domains_name")),
    )
    op.create_table(
        "enroll_tokens",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=True),
        sa.Column("machine_id", sa.String(length=256), nullable=True),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_enroll_tokens")),
    )
    op.create_table(
        "events",
        sa.Column("seq", BIG_KEY, autoincrement=True, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=256), nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=True),
        sa.Column("owner_id", sa.String(length=36), nullable=True),
        sa.Column("agent_id", sa.String(length=36), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_owner", "events", ["owner_id", "seq"], unique=False)
    op.create_index("ix_events_session", "events", ["session_id", "seq"], unique=False)
    op.create_table(
        "images",
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("definition", DOCUMENT, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_images")),
    )
    op.create_table(
        "ledger",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("slot", sa.String(length=128), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("quota", sa.BigInteger(), nullable=True),
        sa.Column("cap", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('domain', 'project', 'user', 'device')",
            name=op.f("ck_ledger_kind"),
        ),
        sa.CheckConstraint(
            "(cap IS NULL) = (quota IS NULL) AND (quota IS NULL OR quota <= cap)",
            name=op.f("ck_ledger_quota_within_cap"),
        ),
        sa.CheckConstraint(
            "cap IS NULL OR used <= cap", name=op.f("ck_ledger_within_cap")
        ),
        sa.CheckConstraint("used >= 0", name=op.f("ck_ledger_not_negative")),
        sa.PrimaryKeyConstraint("kind", "owner_id", "slot", name=op.f("pk_ledger")),
    )
    op.create_table(
        "versions",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_versions")),
    )
    op.create_table(
        "devices",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=256), nullable=False),
        sa.Column("numa", sa.Integer(), nullable=True),
        sa.Column("whole", sa.Boolean(), nullable=False),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_devices_agent_id_agents")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_devices")),
        sa.UniqueConstraint("agent_id", "name", name=op.f("uq_devices_agent_id_name")),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("domain_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["domain_id"], ["domains.id"], name=op.f("fk_projects_domain_id_domains")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint(
            "domain_id", "name", name=op.f("uq_projects_domain_id_name")
        ),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("domain_id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["domain_id"], ["domains.id"], name=op.f("fk_users_domain_id_domains")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_users_project_id_projects")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("domain_id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=36), nullable=False),
        sa.Column("image", sa.String(length=256), nullable=False),
        sa.Column("slots", DOCUMENT, nullable=False),
        sa.Column("shmem", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=True),
        sa.Column("server", sa.String(length=256), nullable=True),
        sa.Column("prefix", sa.String(length=1024), nullable=True),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=128), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("scheduled_at", MOMENT, nullable=True),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("deadline_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "status IN ('CANCELLED', 'CREATING', 'ERROR', 'PENDING', 'PREPARING', 'PULLING', 'RUNNING', 'SCHEDULED', 'TERMINATED', 'TERMINATING')",
            name=op.f("ck_sessions_status"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_sessions_agent_id_agents")
        ),
        sa.ForeignKeyConstraint(
            ["domain_id"], ["domains.id"], name=op.f("fk_sessions_domain_id_domains")
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_sessions_owner_id_users")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_sessions_project_id_projects"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint(
            "owner_id",
            "idempotency_key",
            name=op.f("uq_sessions_owner_id_idempotency_key"),
        ),
    )
    op.create_index(
        "ix_sessions_created", "sessions", ["created_at", "id"], unique=False
    )
    op.create_index(
        "ix_sessions_live",
        "sessions",
        ["status"],
        unique=False,
        sqlite_where=sa.text("status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"),
        postgresql_where=sa.text("status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"),
    )
    op.create_index(
        "ix_sessions_owner_created",
        "sessions",
        ["owner_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_sessions_live_name",
        "sessions",
        ["owner_id", "name"],
        unique=True,
        sqlite_where=sa.text("status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"),
        postgresql_where=sa.text("status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"),
    )
    op.create_index(
        "uq_sessions_live_server",
        "sessions",
        ["owner_id", "server"],
        unique=True,
        sqlite_where=sa.text(
            "server IS NOT NULL AND status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"
        ),
        postgresql_where=sa.text(
            "server IS NOT NULL AND status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')"
        ),
    )
    op.create_table(
        "containers",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=False),
        sa.Column("desired", sa.String(length=16), nullable=False),
        sa.Column("image", sa.String(length=256), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("gone_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "desired IN ('running', 'absent')", name=op.f("ck_containers_desired")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_containers_agent_id_agents")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_containers_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_containers")),
    )
    op.create_index(
        "ix_containers_agent", "containers", ["agent_id", "gone_at"], unique=False
    )
    op.create_index("ix_containers_session", "containers", ["session_id"], unique=False)
    op.create_table(
        "session_secrets",
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_session_secrets_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_session_secrets")),
    )
    op.create_table(
        "allocations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("container_id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("slot", sa.String(length=128), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("freed_at", MOMENT, nullable=True),
        sa.CheckConstraint("amount > 0", name=op.f("ck_allocations_amount")),
        sa.ForeignKeyConstraint(
            ["container_id"],
            ["containers.id"],
            name=op.f("fk_allocations_container_id_containers"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.id"], name=op.f("fk_allocations_device_id_devices")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_allocations_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
    )
    op.create_index(
        "ix_allocations_session", "allocations", ["session_id"], unique=False
    )
    op.create_index(
        "uq_allocations_live",
        "allocations",
        ["container_id", "device_id", "slot"],
        unique=True,
        sqlite_where=sa.text("freed_at IS NULL"),
        postgresql_where=sa.text("freed_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_table("allocations")
    op.drop_table("session_secrets")
    op.drop_table("containers")
    op.drop_table("sessions")
    op.drop_table("users")
    op.drop_table("projects")
    op.drop_table("devices")
    op.drop_table("versions")
    op.drop_table("ledger")
    op.drop_table("images")
    op.drop_table("events")
    op.drop_table("enroll_tokens")
    op.drop_table("domains")
    op.drop_table("agents")
    op.drop_table("accounts")
