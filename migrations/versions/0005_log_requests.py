"""Keep a log of requests: what was sent, by which policy, and the texts that are no messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables, and their view for people."""
    op.create_table(
        "requests",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("request", BIG, nullable=False),
        *(
            sa.Column(name, BIG, nullable=False)
            for name in ("branch", "seq", "at", "newest_record", "tokens")
        ),
        *(
            sa.Column(name, BIG)
            for name in ("unchanged_tokens", "usage_branch", "usage_seq", "usage_number")
        ),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("kind", "format", "policy_name", "release")
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("layers", "compactions", "texts")
        ),
        sa.Column("sealed", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("tree_id", "session_id", "request", name="pk_requests"),
        sqlite_strict=True,
    )
    op.create_table(
        "request_texts",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("text_digest", IDENTIFIER, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("tree_id", "text_digest", name="pk_request_texts"),
        sqlite_strict=True,
    )
    moment = ISO[op.get_context().dialect.name]
    op.execute(sa.DDL(REQUEST_LOG.replace("{at}", moment).replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', r.at / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN r.at BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp(r.at / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

REQUEST_LOG = """CREATE VIEW request_log AS
SELECT r.session_id, r.request, r.branch, r.seq, {at} AS at, s.owner, r.kind, r.format,
    r.policy_name AS policy, r.tokens, r.unchanged_tokens, u.input, u.cached,
    COALESCE(u.written, 0) AS written, u.output, u.model, r.usage_seq, r.usage_number,
    r.layers, r.compactions, r.release, r.digest
FROM requests r
JOIN sessions s ON s.tree_id = r.tree_id AND s.id = r.session_id
LEFT JOIN usages u ON u.tree_id = r.tree_id AND u.branch = r.usage_branch
    AND u.seq = r.usage_seq AND u.usage % 4294967296 = r.usage_number"""
