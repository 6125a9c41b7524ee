"""Find sessions by their program and file, price usages by rows, tell which answers are under way.

The exact moment of a session's last activity leaves the indexes. They hold its second instead, so
that an append within the same second changes no indexed column.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.Double().with_variant(sa.REAL(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and tables, and list sessions by the second of their last activity."""
    for column in (
        sa.Column("updated_second", BIG, nullable=False, server_default="0"),
        sa.Column("source", IDENTIFIER),
        sa.Column("file", sa.Text()),
    ):
        op.add_column("sessions", column)
    op.execute("UPDATE sessions SET updated_second = updated_at / 1000")
    list_by_second()
    op.add_column("drafts", sa.Column("writer", sa.Text()))
    op.add_column("drafts", sa.Column("live_until", BIG))
    op.create_table(
        "prices",
        sa.Column("owner", IDENTIFIER, nullable=False),
        sa.Column("model", IDENTIFIER, nullable=False),
        sa.Column("valid_from", BIG, nullable=False),
        *(sa.Column(name, NUMBER) for name in ("input", "cached", "written", "output")),
        sa.PrimaryKeyConstraint("owner", "model", "valid_from", name="pk_prices"),
        sqlite_strict=True,
    )


def list_by_second() -> None:
    """Put the second of the last activity into the indexes of lists, in place of its moment."""
    is_owned = sa.text("owner IS NOT NULL")
    op.drop_index("ix_sessions_archived_updated_at_id", "sessions")
    op.drop_index("ix_sessions_owner_archived_updated_at_id", "sessions")
    op.create_index(
        "ix_sessions_archived_updated_second", "sessions", ["archived", "updated_second"]
    )
    op.create_index(
        "ix_sessions_owner_archived_updated_second",
        "sessions",
        ["owner", "archived", "updated_second"],
        sqlite_where=is_owned,
        postgresql_where=is_owned,
    )


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
