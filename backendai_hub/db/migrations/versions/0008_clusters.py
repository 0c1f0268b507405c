"""Clusters: sessions of several containers, and what each node understands.

What is there already has one container, its main one, whose state its session tells.
On the way back, sessions of several containers that wait are cancelled, since the
older service would start one container in their place. Those that run end as if
somebody had stopped them: it knows of one container of each, and frees all they hold.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ID = sa.String(length=36)
STATES = {
    "SCHEDULED": "scheduled",
    "PREPARING": "preparing",
    "PULLING": "pulling",
    "CREATING": "creating",
    "RUNNING": "running",
    "RESCHEDULING": "running",
    "TERMINATING": "running",
}
"""What a session's state says of its container, of those that are not over."""


def of_sessions() -> list[sa.Column]:
    """List what sessions have from now on; made anew for each use."""
    return [
        sa.Column("cluster_size", sa.Integer(), nullable=False, server_default="1"),
        sa.Column(
            "cluster_mode",
            sa.String(length=16),
            nullable=False,
            server_default="single-node",
        ),
        sa.Column("cluster_strategy", sa.String(length=16), nullable=True),
        sa.Column("ends_as", sa.String(length=16), nullable=True),
    ]


def of_containers() -> list[sa.Column]:
    """List what containers have from now on; made anew for each use."""
    return [
        sa.Column("role", sa.String(length=8), nullable=False, server_default="main"),
        sa.Column("idx", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("host", sa.String(length=32), nullable=False, server_default="main1"),
        sa.Column(
            "state", sa.String(length=16), nullable=False, server_default="scheduled"
        ),
        sa.Column("reason", sa.Text(), nullable=False, server_default=""),
        sa.Column("exit_code", sa.Integer(), nullable=True),
    ]


def upgrade() -> None:
    with op.batch_alter_table("sessions") as batch:
        for column in of_sessions():
            batch.add_column(column)
        batch.create_check_constraint(
            op.f("ck_sessions_cluster_size"), "cluster_size >= 1"
        )
    with op.batch_alter_table("containers") as batch:
        for column in of_containers():
            batch.add_column(column)
        batch.create_check_constraint(
            op.f("ck_containers_role"), "role IN ('main', 'sub')"
        )
    with op.batch_alter_table("agents") as batch:
        batch.add_column(
            sa.Column("protocol", sa.Integer(), nullable=False, server_default="1")
        )
    op.execute("UPDATE containers SET state = 'gone' WHERE gone_at IS NOT NULL")
    for status, state in STATES.items():
        op.execute(
            sa.text(
                "UPDATE containers SET state = :state WHERE gone_at IS NULL AND"
                " session_id IN (SELECT id FROM sessions WHERE status = :status)"
            ).bindparams(state=state, status=status)
        )


def downgrade() -> None:
    end_clusters()
    with op.batch_alter_table("agents") as batch:
        batch.drop_column("protocol")
    with op.batch_alter_table("containers") as batch:
        batch.drop_constraint(op.f("ck_containers_role"), type_="check")
        for column in of_containers():
            batch.drop_column(column.name)
    with op.batch_alter_table("sessions") as batch:
        batch.drop_constraint(op.f("ck_sessions_cluster_size"), type_="check")
        for column in of_sessions():
            batch.drop_column(column.name)


def end_clusters() -> None:
    sessions = sa.table(
        "sessions",
        sa.column("id", ID),
        sa.column("cluster_size", sa.Integer()),
        sa.column("status", sa.String()),
        sa.column("reason", sa.Text()),
        sa.column("revision", sa.BigInteger()),
        sa.column("ended_at", sa.DateTime(timezone=True)),
        sa.column("deadline_at", sa.DateTime(timezone=True)),
    )
    containers = sa.table(
        "containers",
        sa.column("session_id", ID),
        sa.column("agent_id", ID),
        sa.column("desired", sa.String()),
        sa.column("generation", sa.BigInteger()),
        sa.column("gone_at", sa.DateTime(timezone=True)),
    )
    agents = sa.table(
        "agents", sa.column("id", ID), sa.column("generation", sa.BigInteger())
    )
    now, several = datetime.now(UTC), sessions.c.cluster_size > 1
    waiting = several & sessions.c.status.in_(("PENDING", "RESERVED"))
    op.execute(
        sa.text(
            "DELETE FROM session_secrets WHERE session_id IN (SELECT id FROM sessions"
            " WHERE cluster_size > 1 AND status IN ('PENDING', 'RESERVED'))"
        )
    )
    op.execute(
        sa.text(
            "UPDATE preemptions SET closed_at = :now, outcome = 'cancelled' WHERE"
            " closed_at IS NULL AND session_id IN (SELECT id FROM sessions"
            " WHERE cluster_size > 1 AND status = 'RESERVED')"
        ).bindparams(sa.bindparam("now", now, sa.DateTime(timezone=True)))
    )
    op.execute(
        sessions.update()
        .where(waiting)
        .values(
            status="CANCELLED",
            reason="sessions of several containers need a newer version of the platform",
            revision=sessions.c.revision + 1,
            ended_at=now,
        )
    )
    ended = ("TERMINATED", "ERROR", "CANCELLED")
    running = sa.select(sessions.c.id).where(several, sessions.c.status.not_in(ended))
    wanted = (containers.c.session_id.in_(running)) & (containers.c.gone_at.is_(None))
    nodes = sa.select(containers.c.agent_id).where(wanted)
    op.execute(
        agents.update()
        .where(agents.c.id.in_(nodes))
        .values(generation=agents.c.generation + 1)
    )
    generation = (
        sa.select(agents.c.generation)
        .where(agents.c.id == containers.c.agent_id)
        .scalar_subquery()
    )
    op.execute(
        containers.update()
        .where(wanted)
        .values(desired="absent", generation=generation)
    )
    op.execute(
        sessions.update()
        .where(several, sessions.c.status.not_in(ended))
        .values(
            status="TERMINATING",
            reason="sessions of several containers need a newer version of the platform",
            revision=sessions.c.revision + 1,
            deadline_at=now,
        )
    )
