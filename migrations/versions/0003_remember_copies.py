"""Remember the copies that were made of the store, and which erasures they may still hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

SUMMARY_ERRORS = ("SummaryGenerationError", "SummaryTimedOut")
NOTICES = (
    "No summary could be made, keeping recent history only.",
    "Summary generation timed out, keeping recent history only.",
)


def upgrade() -> None:
    """Add the list of copies, and columns of erasures, compactions and summaries.

    They tell where erased bytes may still be, and what came in the place of a summary. What an
    erasure still has to do is found by an index.
    """
    op.create_table(
        "copies",
        sa.Column("copy", BIG, nullable=False),
        sa.Column("made_at", BIG, nullable=False),
        sa.Column("size", BIG),
        sa.Column("modified", BIG),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("copy", name="pk_copies"),
        sqlite_strict=True,
    )
    for column in (
        sa.Column("newest_copy", BIG, nullable=False, server_default="0"),
        sa.Column("purged_at", BIG),
    ):
        op.add_column("erasures", column)
    is_open = sa.text("finished_at IS NULL")
    op.create_index(
        "ix_erasures_open",
        "erasures",
        ["tree_id", "erasure"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.add_column("compaction_records", sa.Column("error_kind", sa.Text()))
    op.add_column("summaries", sa.Column("notice", sa.Text()))
    for kind in SUMMARY_ERRORS:
        op.execute(
            sa.text(
                "UPDATE compaction_records SET error_kind = :kind WHERE error LIKE :kind || ': %'"
            ).bindparams(sa.bindparam("kind", kind, sa.Text()))
        )
    for notice in NOTICES:
        op.execute(
            sa.text(
                "UPDATE summaries SET notice = :notice WHERE body LIKE '%' || :notice"
            ).bindparams(sa.bindparam("notice", notice, sa.Text()))
        )


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise NotImplementedError("go back by restoring a copy made before the upgrade")
