"""Batch sessions: results, attempts, dependencies, start times, and kept logs.

What is there already stays as it is: one attempt, an undefined result, no
dependencies. On the way back, batch sessions that wait are cancelled, since the older
service would start JupyterLab in their place, and those that wait for the end of an
attempt go into the state of one that is being stopped, which it knows how to end.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ID = sa.String(length=36)
OLD_STATUSES = (
    "status IN ('CANCELLED', 'CREATING', 'ERROR', 'PENDING', 'PREPARING', 'PULLING',"
    " 'RUNNING', 'SCHEDULED', 'TERMINATED', 'TERMINATING')"
)
NEW_STATUSES = (
    "status IN ('CANCELLED', 'CREATING', 'ERROR', 'PENDING', 'PREPARING', 'PULLING',"
    " 'RESCHEDULING', 'RUNNING', 'SCHEDULED', 'TERMINATED', 'TERMINATING')"
)
RESULTS = "result IN ('failure', 'success', 'undefined')"
EMPTY = sa.text("'[]'")


def columns() -> list[sa.Column]:
    """List what sessions have from now on; made anew for each use."""
    return [
        sa.Column(
            "result",
            sa.String(length=16),
            nullable=False,
            server_default="undefined",
        ),
        sa.Column("batch_timeout", sa.Integer(), nullable=True),
        sa.Column("starts_at", MOMENT, nullable=True),
        sa.Column("max_attempts", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("requeues", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("tag", sa.String(length=64), nullable=True),
        sa.Column("job_priority", sa.Integer(), nullable=False, server_default="0"),
        sa.Column(
            "is_preemptible", sa.Boolean(), nullable=False, server_default=sa.true()
        ),
        sa.Column("agents", DOCUMENT, nullable=False, server_default=EMPTY),
        sa.Column("preferred_agents", DOCUMENT, nullable=False, server_default=EMPTY),
    ]


def upgrade() -> None:
    with op.batch_alter_table("sessions") as batch:
        for column in columns():
            batch.add_column(column)
        batch.drop_constraint(op.f("ck_sessions_status"), type_="check")
        batch.create_check_constraint(op.f("ck_sessions_status"), NEW_STATUSES)
        batch.create_check_constraint(op.f("ck_sessions_result"), RESULTS)
        batch.create_check_constraint(
            op.f("ck_sessions_attempts"), "requeues < max_attempts"
        )
    with op.batch_alter_table("containers") as batch:
        batch.add_column(
            sa.Column("former", sa.Boolean(), nullable=False, server_default=sa.false())
        )
    op.create_table(
        "session_dependencies",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("depends_on", ID, nullable=False),
        sa.CheckConstraint(
            "session_id <> depends_on", name=op.f("ck_session_dependencies_not_itself")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_session_dependencies_session_id_sessions"),
        ),
        sa.ForeignKeyConstraint(
            ["depends_on"],
            ["sessions.id"],
            name=op.f("fk_session_dependencies_depends_on_sessions"),
        ),
        sa.PrimaryKeyConstraint(
            "session_id", "depends_on", name=op.f("pk_session_dependencies")
        ),
    )
    op.create_index(
        "ix_session_dependencies_depends_on", "session_dependencies", ["depends_on"]
    )
    op.create_table(
        "session_logs",
        sa.Column("container_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("clipped", sa.Boolean(), nullable=False),
        sa.Column("stored_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["container_id"],
            ["containers.id"],
            name=op.f("fk_session_logs_container_id_containers"),
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_session_logs_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("container_id", name=op.f("pk_session_logs")),
    )
    op.create_index("ix_session_logs_session", "session_logs", ["session_id"])


def downgrade() -> None:
    op.drop_table("session_logs")
    op.drop_table("session_dependencies")
    with op.batch_alter_table("containers") as batch:
        batch.drop_column("former")
    cancel_waiting()
    op.execute(
        "UPDATE sessions SET status = 'TERMINATING', revision = revision + 1"
        " WHERE status = 'RESCHEDULING'"
    )
    with op.batch_alter_table("sessions") as batch:
        batch.drop_constraint(op.f("ck_sessions_attempts"), type_="check")
        batch.drop_constraint(op.f("ck_sessions_result"), type_="check")
        batch.drop_constraint(op.f("ck_sessions_status"), type_="check")
        batch.create_check_constraint(op.f("ck_sessions_status"), OLD_STATUSES)
        for column in columns():
            batch.drop_column(column.name)


def cancel_waiting() -> None:
    sessions = sa.table(
        "sessions",
        sa.column("id", ID),
        sa.column("type", sa.String()),
        sa.column("status", sa.String()),
        sa.column("reason", sa.Text()),
        sa.column("revision", sa.BigInteger()),
        sa.column("ended_at", MOMENT),
    )
    waiting = (sessions.c.type == "batch") & (sessions.c.status == "PENDING")
    op.execute(
        sa.text(
            "DELETE FROM session_secrets WHERE session_id IN (SELECT id FROM sessions"
            " WHERE type = 'batch' AND status = 'PENDING')"
        )
    )
    op.execute(
        sessions.update()
        .where(waiting)
        .values(
            status="CANCELLED",
            reason="batch sessions need a newer version of the platform",
            revision=sessions.c.revision + 1,
            ended_at=datetime.now(UTC),
        )
    )
