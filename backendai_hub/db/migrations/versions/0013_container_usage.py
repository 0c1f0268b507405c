"""What containers have used in all: processors, memory, disks, networks and devices.

Nothing is known of those that have ended before. On the way back it is forgotten.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "container_usage",
        sa.Column("container_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cpu_seconds", sa.Float(precision=53), nullable=True),
        sa.Column("memory_peak", sa.BigInteger(), nullable=True),
        sa.Column("read_bytes", sa.BigInteger(), nullable=True),
        sa.Column("written_bytes", sa.BigInteger(), nullable=True),
        sa.Column("received_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sent_bytes", sa.BigInteger(), nullable=True),
        sa.Column("device_seconds", sa.Float(precision=53), nullable=True),
        sa.Column("device_memory_peak", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["container_id"],
            ["containers.id"],
            name=op.f("fk_container_usage_container_id_containers"),
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_container_usage_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("container_id", name=op.f("pk_container_usage")),
    )
    op.create_index("ix_container_usage_session", "container_usage", ["session_id"])


def downgrade() -> None:
    op.drop_index("ix_container_usage_session", table_name="container_usage")
    op.drop_table("container_usage")
