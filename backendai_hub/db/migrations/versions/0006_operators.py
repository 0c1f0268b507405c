"""Operators: what is held, drained or frozen, and reservations.

Nodes that took nothing new go on so; nobody has said why.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "stops",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("target_id", sa.String(length=36), nullable=False),
        sa.Column("actor", sa.String(length=256), nullable=False),
        sa.Column("by_owner", sa.Boolean(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("reason", sa.String(length=512), nullable=False),
        sa.Column("due", MOMENT, nullable=True),
        sa.CheckConstraint(
            "kind IN ('session', 'node', 'group')", name=op.f("ck_stops_kind")
        ),
        sa.PrimaryKeyConstraint("kind", "target_id", name=op.f("pk_stops")),
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("name_key", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("resource_group_id", sa.String(length=36), nullable=False),
        sa.Column("begins_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("nodes", DOCUMENT, nullable=False),
        sa.Column("amounts", DOCUMENT, nullable=False),
        sa.Column("domains", DOCUMENT, nullable=False),
        sa.Column("projects", DOCUMENT, nullable=False),
        sa.Column("users", DOCUMENT, nullable=False),
        sa.Column("held", DOCUMENT, nullable=False),
        sa.CheckConstraint("begins_at < ends_at", name=op.f("ck_reservations_span")),
        sa.CheckConstraint(
            "kind IN ('class', 'maintenance')", name=op.f("ck_reservations_kind")
        ),
        sa.ForeignKeyConstraint(
            ["resource_group_id"],
            ["resource_groups.id"],
            name=op.f("fk_reservations_resource_group_id_resource_groups"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        sa.UniqueConstraint("name_key", name=op.f("uq_reservations_name_key")),
    )
    op.create_index("ix_reservations_ends", "reservations", ["ends_at"])


def downgrade() -> None:
    op.drop_table("reservations")
    op.drop_table("stops")
