"""SSH keys that sessions get, one for a keypair. Nobody has one to begin with.

On the way back they are forgotten; sessions that run keep theirs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ssh_keys",
        sa.Column("keypair_id", sa.String(length=36), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["keypair_id"],
            ["keypairs.id"],
            name=op.f("fk_ssh_keys_keypair_id_keypairs"),
        ),
        sa.PrimaryKeyConstraint("keypair_id", name=op.f("pk_ssh_keys")),
    )


def downgrade() -> None:
    op.drop_table("ssh_keys")
