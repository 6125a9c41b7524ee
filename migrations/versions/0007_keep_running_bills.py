"""Keep the running bills of sessions by policy, which bound what a clearing may cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.Double().with_variant(sa.REAL(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    told = ("branch", "seq", "at", "requests", "sent", "sent_before", "raw_before")
    op.create_table(
        "running_bills",
        sa.Column("tree_id", BIG, nullable=False),
        *(sa.Column(name, IDENTIFIER, nullable=False) for name in ("session_id", "policy_name")),
        *(sa.Column(name, BIG, nullable=False) for name in told),
        *(sa.Column(name, BIG) for name in ("pause", "longest_alive", "shortest_over")),
        sa.Column("was_cold", sa.Integer(), nullable=False),
        *(sa.Column(name, NUMBER, nullable=False) for name in ("own_bill", "raw_bill")),
        sa.PrimaryKeyConstraint("tree_id", "session_id", "policy_name", name="pk_running_bills"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
