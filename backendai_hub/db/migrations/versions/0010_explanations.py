"""Explanations: why each session waits, as it was told the last time.

Nobody has been told anything to begin with. On the way back they are forgotten: they
are found out again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Spelled out here, so that later changes of the tables leave this step as it was.
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "explanations",
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("why", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_explanations_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_explanations")),
    )


def downgrade() -> None:
    op.drop_table("explanations")
