"""Topology: links and slices of devices, and the labels of nodes.

What is there already has no links, is not cut into slices, and asks for no labels. On
the way back, several instances that one container has of one device become one
allocation, since the older schema has no room for two.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
NOTHING = sa.text("'{}'")
LIVE = sa.text("freed_at IS NULL")
ALLOCATIONS = sa.table(
    "allocations",
    sa.column("id"),
    sa.column("container_id"),
    sa.column("device_id"),
    sa.column("slot"),
    sa.column("amount"),
    sa.column("freed_at"),
)


def document(name: str) -> sa.Column:
    """Describe a column for a mapping that is empty to begin with."""
    return sa.Column(name, DOCUMENT, nullable=False, server_default=NOTHING)


def bits() -> sa.Column:
    """Describe a column for slices."""
    return sa.Column("slices", sa.BigInteger(), nullable=False, server_default="0")


def index_live(*columns: str) -> None:
    """Let one container have at most one live allocation with these columns."""
    op.create_index(
        "uq_allocations_live",
        "allocations",
        list(columns),
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )


def upgrade() -> None:
    with op.batch_alter_table("agents") as batch:
        batch.add_column(document("labels"))
        batch.add_column(document("set_labels"))
        batch.add_column(sa.Column("max_containers", sa.Integer(), nullable=True))
    with op.batch_alter_table("devices") as batch:
        batch.add_column(document("links"))
        batch.add_column(document("profiles"))
        batch.add_column(bits())
    with op.batch_alter_table("sessions") as batch:
        batch.add_column(document("labels"))
    op.drop_index("uq_allocations_live", "allocations")
    with op.batch_alter_table("allocations") as batch:
        batch.add_column(bits())
        batch.create_check_constraint(op.f("ck_allocations_slices"), "slices >= 0")
    index_live("container_id", "device_id", "slot", "slices")


def downgrade() -> None:
    merge_instances()
    op.drop_index("uq_allocations_live", "allocations")
    with op.batch_alter_table("allocations") as batch:
        batch.drop_constraint(op.f("ck_allocations_slices"), type_="check")
        batch.drop_column("slices")
    index_live("container_id", "device_id", "slot")
    with op.batch_alter_table("sessions") as batch:
        batch.drop_column("labels")
    with op.batch_alter_table("devices") as batch:
        for name in ("slices", "profiles", "links"):
            batch.drop_column(name)
    with op.batch_alter_table("agents") as batch:
        for name in ("max_containers", "set_labels", "labels"):
            batch.drop_column(name)


def merge_instances() -> None:
    """Make one allocation of the live ones of a container, a device and a slot."""
    connection, c = op.get_bind(), ALLOCATIONS.c
    same = (c.container_id, c.device_id, c.slot)
    several = connection.execute(
        sa.select(*same, sa.func.min(c.id), sa.func.sum(c.amount))
        .where(c.freed_at.is_(None))
        .group_by(*same)
        .having(sa.func.count() > 1)
    ).all()
    for container, device, slot, first, amount in several:
        connection.execute(
            sa.delete(ALLOCATIONS).where(
                c.container_id == container,
                c.device_id == device,
                c.slot == slot,
                c.freed_at.is_(None),
                c.id != first,
            )
        )
        connection.execute(
            sa.update(ALLOCATIONS).where(c.id == first).values(amount=int(amount))
        )
