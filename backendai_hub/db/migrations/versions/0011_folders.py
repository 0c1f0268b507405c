"""Virtual folders: what they are, who may use them, and what sessions mount.

There are none to begin with. On the way back all of them are forgotten, but nothing of
what lies on storage hosts is touched: the files stay where they are, by the ids of
their folders.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ID = sa.String(length=36)
SHORT = sa.String(length=16)
NAME = sa.String(length=256)
OPEN = sa.text("state IN ('pending', 'running')")
PENDING = sa.text("state = 'pending'")
NAMED = sa.text("status IN ('ready', 'performing', 'cloning', 'mounted', 'error')")


def upgrade() -> None:
    op.add_column("events", sa.Column("folder_id", ID, nullable=True))
    create_folder_tasks()
    create_quota_scopes()
    create_vfolders()
    create_uploads()
    create_vfolder_invitations()
    create_vfolder_permissions()
    create_session_mounts()


def downgrade() -> None:
    op.drop_table("session_mounts")
    op.drop_table("vfolder_permissions")
    op.drop_table("vfolder_invitations")
    op.drop_table("uploads")
    op.drop_table("vfolders")
    op.drop_table("quota_scopes")
    op.drop_table("folder_tasks")
    op.drop_column("events", "folder_id")


def create_folder_tasks() -> None:
    op.create_table(
        "folder_tasks",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", SHORT, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("actor", NAME, nullable=False),
        sa.Column("state", SHORT, nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("unit", SHORT, nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("arguments", DOCUMENT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'running', 'done', 'failed', 'cancelled')",
            name=op.f("ck_folder_tasks_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folder_tasks")),
    )
    op.create_index(
        "ix_folder_tasks_folder", "folder_tasks", ["folder_id"], unique=False
    )
    op.create_index(
        "ix_folder_tasks_open",
        "folder_tasks",
        ["created_at"],
        unique=False,
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )
    op.create_index("ix_folder_tasks_user", "folder_tasks", ["user_id"], unique=False)


def create_quota_scopes() -> None:
    op.create_table(
        "quota_scopes",
        sa.Column("host", NAME, nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("kind", SHORT, nullable=False),
        sa.Column("owner_id", ID, nullable=False),
        sa.Column("limit_bytes", sa.BigInteger(), nullable=True),
        sa.Column("limit_files", sa.BigInteger(), nullable=True),
        sa.Column("used_bytes", sa.BigInteger(), nullable=False),
        sa.Column("used_files", sa.BigInteger(), nullable=False),
        sa.Column("reserved_bytes", sa.BigInteger(), nullable=False),
        sa.Column("applied_bytes", sa.BigInteger(), nullable=True),
        sa.Column("applied_files", sa.BigInteger(), nullable=True),
        sa.Column("applied_at", MOMENT, nullable=True),
        sa.Column("scanned_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "reserved_bytes >= 0", name=op.f("ck_quota_scopes_reserved")
        ),
        sa.CheckConstraint(
            "used_bytes >= 0 AND used_files >= 0", name=op.f("ck_quota_scopes_used")
        ),
        sa.PrimaryKeyConstraint("host", "scope", name=op.f("pk_quota_scopes")),
    )


def create_vfolders() -> None:
    op.create_table(
        "vfolders",
        sa.Column("host", NAME, nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("domain_id", ID, nullable=False),
        sa.Column("ownership_type", SHORT, nullable=False),
        sa.Column("owner_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("creator", NAME, nullable=False),
        sa.Column("creator_id", ID, nullable=True),
        sa.Column("usage_mode", SHORT, nullable=False),
        sa.Column("permission", SHORT, nullable=False),
        sa.Column("cloneable", sa.Boolean(), nullable=False),
        sa.Column("max_size", sa.BigInteger(), nullable=False),
        sa.Column("max_files", sa.Integer(), nullable=True),
        sa.Column("unmanaged_path", sa.String(length=4096), nullable=False),
        sa.Column("status", SHORT, nullable=False),
        sa.Column("status_changed_at", MOMENT, nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=False),
        sa.Column("status_history", DOCUMENT, nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), nullable=False),
        sa.Column("used_files", sa.BigInteger(), nullable=False),
        sa.Column("reserved_bytes", sa.BigInteger(), nullable=False),
        sa.Column("scanned_at", MOMENT, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("trashed_at", MOMENT, nullable=True),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("name_key", NAME, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "ownership_type IN ('user', 'project')", name=op.f("ck_vfolders_ownership")
        ),
        sa.CheckConstraint(
            "permission IN ('ro', 'rw', 'wd')", name=op.f("ck_vfolders_permission")
        ),
        sa.CheckConstraint(
            "status IN ('ready', 'performing', 'cloning', 'mounted', 'error', 'delete-pending', 'delete-ongoing', 'delete-complete', 'delete-error')",
            name=op.f("ck_vfolders_status"),
        ),
        sa.CheckConstraint(
            "usage_mode IN ('general', 'model', 'data')", name=op.f("ck_vfolders_usage")
        ),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (project_id IS NULL)",
            name=op.f("ck_vfolders_exactly_one_owner"),
        ),
        sa.CheckConstraint(
            "owner_id = COALESCE(user_id, project_id)", name=op.f("ck_vfolders_owner")
        ),
        sa.CheckConstraint("reserved_bytes >= 0", name=op.f("ck_vfolders_reserved")),
        sa.ForeignKeyConstraint(
            ["domain_id"], ["domains.id"], name=op.f("fk_vfolders_domain_id_domains")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_vfolders_project_id_projects"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_vfolders_user_id_users")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vfolders")),
    )
    op.create_index("ix_vfolders_domain", "vfolders", ["domain_id"], unique=False)
    op.create_index("ix_vfolders_scope", "vfolders", ["host", "scope"], unique=False)
    op.create_index("ix_vfolders_status", "vfolders", ["status"], unique=False)
    op.create_index(
        "uq_vfolders_named",
        "vfolders",
        ["owner_id", "name_key"],
        unique=True,
        sqlite_where=NAMED,
        postgresql_where=NAMED,
    )


def create_uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("conflict", SHORT, nullable=False),
        sa.Column("checksum", NAME, nullable=False),
        sa.Column("details", DOCUMENT, nullable=False),
        sa.Column("state", SHORT, nullable=False),
        sa.Column("reserved_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "conflict IN ('fail', 'replace', 'rename')",
            name=op.f("ck_uploads_conflict"),
        ),
        sa.CheckConstraint(
            "state IN ('open', 'finishing', 'done', 'gone')",
            name=op.f("ck_uploads_state"),
        ),
        sa.CheckConstraint(
            "length >= 0 AND reserved_bytes >= 0", name=op.f("ck_uploads_length")
        ),
        sa.ForeignKeyConstraint(
            ["folder_id"], ["vfolders.id"], name=op.f("fk_uploads_folder_id_vfolders")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_index("ix_uploads_expires", "uploads", ["expires_at"], unique=False)
    op.create_index("ix_uploads_folder", "uploads", ["folder_id"], unique=False)


def create_vfolder_invitations() -> None:
    op.create_table(
        "vfolder_invitations",
        sa.Column("id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("inviter_id", ID, nullable=False),
        sa.Column("invitee_id", ID, nullable=False),
        sa.Column("permission", SHORT, nullable=False),
        sa.Column("state", SHORT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "permission IN ('ro', 'rw', 'wd')",
            name=op.f("ck_vfolder_invitations_permission"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'accepted', 'rejected', 'canceled')",
            name=op.f("ck_vfolder_invitations_state"),
        ),
        sa.ForeignKeyConstraint(
            ["folder_id"],
            ["vfolders.id"],
            name=op.f("fk_vfolder_invitations_folder_id_vfolders"),
        ),
        sa.ForeignKeyConstraint(
            ["invitee_id"],
            ["users.id"],
            name=op.f("fk_vfolder_invitations_invitee_id_users"),
        ),
        sa.ForeignKeyConstraint(
            ["inviter_id"],
            ["users.id"],
            name=op.f("fk_vfolder_invitations_inviter_id_users"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vfolder_invitations")),
    )
    op.create_index(
        "ix_vfolder_invitations_invitee",
        "vfolder_invitations",
        ["invitee_id"],
        unique=False,
    )
    op.create_index(
        "ix_vfolder_invitations_inviter",
        "vfolder_invitations",
        ["inviter_id"],
        unique=False,
    )
    op.create_index(
        "uq_vfolder_invitations_pending",
        "vfolder_invitations",
        ["folder_id", "invitee_id"],
        unique=True,
        sqlite_where=PENDING,
        postgresql_where=PENDING,
    )


def create_vfolder_permissions() -> None:
    op.create_table(
        "vfolder_permissions",
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("permission", SHORT, nullable=False),
        sa.Column("kind", SHORT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "kind IN ('invited', 'override')", name=op.f("ck_vfolder_permissions_kind")
        ),
        sa.CheckConstraint(
            "permission IN ('ro', 'rw', 'wd')",
            name=op.f("ck_vfolder_permissions_permission"),
        ),
        sa.ForeignKeyConstraint(
            ["folder_id"],
            ["vfolders.id"],
            name=op.f("fk_vfolder_permissions_folder_id_vfolders"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_vfolder_permissions_user_id_users")
        ),
        sa.PrimaryKeyConstraint(
            "folder_id", "user_id", name=op.f("pk_vfolder_permissions")
        ),
    )
    op.create_index(
        "ix_vfolder_permissions_user", "vfolder_permissions", ["user_id"], unique=False
    )


def create_session_mounts() -> None:
    op.create_table(
        "session_mounts",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("folder_name", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("unmanaged_path", sa.String(length=4096), nullable=False),
        sa.Column("subpath", sa.String(length=4096), nullable=False),
        sa.Column("target", sa.String(length=4096), nullable=False),
        sa.Column("permission", SHORT, nullable=False),
        sa.Column("automatic", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "permission IN ('ro', 'rw', 'wd')",
            name=op.f("ck_session_mounts_permission"),
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_session_mounts_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint(
            "session_id", "position", name=op.f("pk_session_mounts")
        ),
    )
    op.create_index(
        "ix_session_mounts_folder", "session_mounts", ["folder_id"], unique=False
    )
