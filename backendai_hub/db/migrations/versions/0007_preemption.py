"""Preemption: plans that displace sessions, and who is displaced by them.

Nobody may ask for more than job priority 0 until a policy says so. On the way back,
who has room reserved waits in the queue as before, and who is about to make room goes
into the state of one that is being stopped, which the older service knows how to end.

Scopes may have a maximum in a group beside what they are guaranteed; that goes then.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ID = sa.String(length=36)
OLD_STATUSES = (
    "status IN ('CANCELLED', 'CREATING', 'ERROR', 'PENDING', 'PREPARING', 'PULLING',"
    " 'RESCHEDULING', 'RUNNING', 'SCHEDULED', 'TERMINATED', 'TERMINATING')"
)
NEW_STATUSES = (
    "status IN ('CANCELLED', 'CREATING', 'ERROR', 'PENDING', 'PREEMPTED', 'PREPARING',"
    " 'PULLING', 'RESCHEDULING', 'RESERVED', 'RUNNING', 'SCHEDULED', 'TERMINATED',"
    " 'TERMINATING')"
)
OPEN = sa.text("closed_at IS NULL")
LEAVING = sa.text("left_at IS NULL")


def upgrade() -> None:
    with op.batch_alter_table("sessions") as batch:
        batch.add_column(
            sa.Column("preemptions", sa.Integer(), nullable=False, server_default="0")
        )
        batch.drop_constraint(op.f("ck_sessions_status"), type_="check")
        batch.create_check_constraint(op.f("ck_sessions_status"), NEW_STATUSES)
    with op.batch_alter_table("keypair_policies") as batch:
        batch.add_column(
            sa.Column(
                "max_job_priority", sa.Integer(), nullable=True, server_default="0"
            )
        )
        batch.add_column(
            sa.Column(
                "allows_not_preemptible",
                sa.Boolean(),
                nullable=False,
                server_default=sa.true(),
            )
        )
    with op.batch_alter_table("group_shares") as batch:
        batch.add_column(
            sa.Column(
                "maximum", DOCUMENT, nullable=False, server_default=sa.text("'{}'")
            )
        )
    create_plans()
    create_victims()


def create_plans() -> None:
    op.create_table(
        "preemptions",
        sa.Column("id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("resource_group_id", ID, nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("grace", sa.Integer(), nullable=False),
        sa.Column("parts", DOCUMENT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.CheckConstraint(
            "kind IN ('priority', 'reclaim')", name=op.f("ck_preemptions_kind")
        ),
        sa.CheckConstraint(
            "mode IN ('terminate', 'reschedule')", name=op.f("ck_preemptions_mode")
        ),
        sa.CheckConstraint(
            "(closed_at IS NULL) = (outcome IS NULL)",
            name=op.f("ck_preemptions_closed"),
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_preemptions_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_preemptions")),
    )
    op.create_index(
        "uq_preemptions_open",
        "preemptions",
        ["session_id"],
        unique=True,
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )
    op.create_index("ix_preemptions_session", "preemptions", ["session_id"])


def create_victims() -> None:
    op.create_table(
        "preemption_victims",
        sa.Column("preemption_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("left_at", MOMENT, nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.CheckConstraint(
            "(left_at IS NULL) = (outcome IS NULL)",
            name=op.f("ck_preemption_victims_left"),
        ),
        sa.ForeignKeyConstraint(
            ["preemption_id"],
            ["preemptions.id"],
            name=op.f("fk_preemption_victims_preemption_id_preemptions"),
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_preemption_victims_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint(
            "preemption_id", "session_id", name=op.f("pk_preemption_victims")
        ),
    )
    op.create_index(
        "uq_preemption_victims_leaving",
        "preemption_victims",
        ["session_id"],
        unique=True,
        sqlite_where=LEAVING,
        postgresql_where=LEAVING,
    )
    op.create_index(
        "ix_preemption_victims_session", "preemption_victims", ["session_id"]
    )


def downgrade() -> None:
    op.drop_table("preemption_victims")
    op.drop_table("preemptions")
    with op.batch_alter_table("group_shares") as batch:
        batch.drop_column("maximum")
    with op.batch_alter_table("keypair_policies") as batch:
        batch.drop_column("allows_not_preemptible")
        batch.drop_column("max_job_priority")
    op.execute(
        "UPDATE sessions SET status = 'PENDING', deadline_at = NULL,"
        " revision = revision + 1 WHERE status = 'RESERVED'"
    )
    op.execute(
        "UPDATE sessions SET status = 'TERMINATING', revision = revision + 1"
        " WHERE status = 'PREEMPTED'"
    )
    with op.batch_alter_table("sessions") as batch:
        batch.drop_constraint(op.f("ck_sessions_status"), type_="check")
        batch.create_check_constraint(op.f("ck_sessions_status"), OLD_STATUSES)
        batch.drop_column("preemptions")
