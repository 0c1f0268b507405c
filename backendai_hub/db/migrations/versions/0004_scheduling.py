"""Fair share: weights and guarantees in resource groups, and what has been used.

What has ended before counts for nothing. What runs counts from when it was placed.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ID = sa.String(length=36)
UNCOUNTED = sa.text(
    "freed_at IS NULL OR counted_until IS NULL OR counted_until <> freed_at"
)


def upgrade() -> None:
    op.create_table(
        "group_shares",
        sa.Column("group_id", ID, nullable=False),
        sa.Column("domain_id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("weight", sa.Double(), nullable=True),
        sa.Column("guaranteed", DOCUMENT, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "weight >= 0.001 AND weight <= 1000000",
            name=op.f("ck_group_shares_weight"),
        ),
        sa.CheckConstraint(
            "user_id = '' OR project_id <> ''", name=op.f("ck_group_shares_scope")
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["resource_groups.id"],
            name=op.f("fk_group_shares_group_id_resource_groups"),
        ),
        sa.PrimaryKeyConstraint(
            "group_id",
            "domain_id",
            "project_id",
            "user_id",
            name=op.f("pk_group_shares"),
        ),
    )
    op.create_table(
        "usage_buckets",
        sa.Column("group_id", ID, nullable=False),
        sa.Column("domain_id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("slot", sa.String(length=128), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint(
            "group_id",
            "domain_id",
            "project_id",
            "user_id",
            "slot",
            "day",
            name=op.f("pk_usage_buckets"),
        ),
    )
    op.create_index("ix_usage_buckets_day", "usage_buckets", ["day"])
    op.add_column("allocations", sa.Column("counted_until", MOMENT, nullable=True))
    op.execute("UPDATE allocations SET counted_until = freed_at")
    op.create_index(
        "ix_allocations_uncounted",
        "allocations",
        ["id"],
        sqlite_where=UNCOUNTED,
        postgresql_where=UNCOUNTED,
    )


def downgrade() -> None:
    op.drop_index("ix_allocations_uncounted", "allocations")
    op.drop_column("allocations", "counted_until")
    op.drop_table("usage_buckets")
    op.drop_table("group_shares")
