"""Keep the usages of erased sessions, added up by day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, and its rows to the costs for people."""
    op.create_table(
        "kept_usages",
        *(sa.Column(name, BIG, nullable=False) for name in ("tree_id", "erasure", "number")),
        *(
            sa.Column(name, BIG, nullable=False)
            for name in ("day", "parts", "requests", "input", "output", "cached", "written")
        ),
        sa.Column("cost", REAL),
        sa.Column("model", sa.Text()),
        sa.Column("base_model", IDENTIFIER),
        sa.Column("source", IDENTIFIER),
        sa.Column("owner", IDENTIFIER),
        sa.Column("project_root", sa.Text()),
        sa.Column("sealed", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("tree_id", "erasure", "number", name="pk_kept_usages"),
        sqlite_strict=True,
    )
    owned = sa.text("owner IS NOT NULL")
    op.create_index(
        "ix_kept_usages_owner",
        "kept_usages",
        ["owner"],
        sqlite_where=owned,
        postgresql_where=owned,
    )
    dialect = op.get_context().dialect.name
    if dialect == "sqlite":
        op.execute("DROP VIEW usage_costs")
    moments = {name.rpartition(".")[2]: ISO[dialect].format(moment=name) for name in MOMENTS}
    view = USAGE_COSTS.format(create=CREATE[dialect], **moments)
    op.execute(sa.DDL(view.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


CREATE = {"sqlite": "CREATE", "postgresql": "CREATE OR REPLACE"}
MOMENTS = ("d.at", "p.valid_from")
ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {moment} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {moment} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

USAGE_COSTS = """{create} VIEW usage_costs AS
WITH spent AS (
    SELECT b.session_id, u.branch, u.seq, u.usage % 4294967296 AS number, u.at, s.owner, u.model,
        u.input - u.cached - COALESCE(u.written, 0) AS input, u.cached,
        COALESCE(u.written, 0) AS written, u.output, u.cost, u.at - u.at % 86400000 AS day,
        CASE WHEN EXISTS (
            SELECT 1 FROM prices p WHERE p.model = u.model AND p.owner IN ('', s.owner)
        ) THEN u.model ELSE u.base_model END AS listed
    FROM usages u
    JOIN branches b ON b.tree_id = u.tree_id AND b.branch = u.branch
    JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, k.day * 86400000, k.owner, k.model,
        k.input - k.cached - k.written, k.cached, k.written, k.output, k.cost, k.day * 86400000,
        CASE WHEN EXISTS (
            SELECT 1 FROM prices p WHERE p.model = k.model AND p.owner IN ('', k.owner)
        ) THEN k.model ELSE k.base_model END
    FROM kept_usages k
), dated AS (
    SELECT spent.*, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = spent.owner AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS own_from, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = '' AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS public_from
    FROM spent
)
SELECT d.session_id, d.branch, d.seq, d.number, {at} AS at, d.owner, d.model,
    CASE WHEN p.model IS NULL THEN d.cost ELSE (
        CASE WHEN d.input = 0 THEN 0 ELSE d.input * p.input END
        + CASE WHEN d.cached = 0 THEN 0 ELSE d.cached * p.cached END
        + CASE WHEN d.written = 0 THEN 0 ELSE d.written * p.written END
        + CASE WHEN d.output = 0 THEN 0 ELSE d.output * p.output END
    ) / 1000000.0 END AS cost, p.model AS price_model, {valid_from} AS price_from
FROM dated d
LEFT JOIN prices p ON d.cost IS NULL AND p.model = d.listed
    AND p.owner = CASE WHEN d.own_from IS NULL THEN '' ELSE d.owner END
    AND p.valid_from = COALESCE(d.own_from, d.public_from)"""
