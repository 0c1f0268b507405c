"""What lies on storage hosts and belongs to nobody, and room kept for numbers of files.

Nothing has been found to begin with, and no room is kept. On the way back what was
found is forgotten; the next look finds it again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
SHORT = sa.String(length=16)
COUNTED = ("quota_scopes", "uploads", "vfolders")


def upgrade() -> None:
    op.create_table(
        "storage_remains",
        sa.Column("host", sa.String(length=256), nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("kind", SHORT, nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("state", SHORT, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("found_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "state IN ('found', 'removing')", name=op.f("ck_storage_remains_state")
        ),
        sa.PrimaryKeyConstraint(
            "host", "scope", "kind", "name", name=op.f("pk_storage_remains")
        ),
    )
    for table in COUNTED:
        op.add_column(
            table,
            sa.Column(
                "reserved_files", sa.BigInteger(), nullable=False, server_default="0"
            ),
        )


def downgrade() -> None:
    for table in reversed(COUNTED):
        op.drop_column(table, "reserved_files")
    op.drop_table("storage_remains")
