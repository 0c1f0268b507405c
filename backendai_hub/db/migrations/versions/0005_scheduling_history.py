"""What the scheduler has tried for each session, with like attempts in one row."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "scheduling_history",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.INTEGER(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("result", sa.String(length=32), nullable=False),
        sa.Column("shape", sa.String(length=64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("first_at", MOMENT, nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.CheckConstraint("attempts > 0", name=op.f("ck_scheduling_history_attempts")),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_scheduling_history_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scheduling_history")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_scheduling_history_session", "scheduling_history", ["session_id", "id"]
    )
    # What has been placed already was tried at least once.
    op.execute(
        "INSERT INTO scheduling_history"
        " (session_id, phase, result, shape, message, attempts, first_at, last_at)"
        " SELECT id, 'placement', 'placed', 'placed', 'placed', 1,"
        " scheduled_at, scheduled_at FROM sessions"
        " WHERE scheduled_at IS NOT NULL ORDER BY scheduled_at, id"
    )


def downgrade() -> None:
    op.drop_table("scheduling_history")
