"""Find sessions by their program and file, price usages by rows, tell which answers are under way.

The exact moment of a session's last activity leaves the indexes. They hold its second instead, so
that an append within the same second changes no indexed column.
"""

from __future__ import annotations

import re

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
    op.add_column("drafts", sa.Column("usage", sa.Text()))
    op.create_table(
        "prices",
        sa.Column("owner", IDENTIFIER, nullable=False),
        sa.Column("model", IDENTIFIER, nullable=False),
        sa.Column("valid_from", BIG, nullable=False),
        *(sa.Column(name, NUMBER) for name in ("input", "cached", "written", "output")),
        sa.PrimaryKeyConstraint("owner", "model", "valid_from", name="pk_prices"),
        sqlite_strict=True,
    )
    name_base_models()
    dialect = op.get_context().dialect.name
    costs = re.sub(
        r"iso\(([a-z_.]+)\)", lambda found: ISO[dialect].format(moment=found[1]), USAGE_COSTS
    )
    op.execute(sa.DDL(costs.replace("%", "%%")))


def name_base_models() -> None:
    """Add the names of models by which usages are priced, without reseller, date and version."""
    op.add_column("usages", sa.Column("base_model", IDENTIFIER))
    if op.get_context().as_sql:  # statements that make a new store, which has no usages
        return
    connection = op.get_bind()
    named = sa.text("UPDATE usages SET base_model = :base WHERE model = :model")
    for (model,) in connection.execute(
        sa.text("SELECT DISTINCT model FROM usages WHERE model IS NOT NULL")
    ).all():
        bare = RESELLER.sub("", model.lower(), count=1)
        connection.execute(named, {"model": model, "base": VERSION.sub("", bare, count=1)})


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


RESELLER = re.compile(r"^(.*/)?(([a-z]+\.)?anthropic\.)?")
VERSION = re.compile(r"([-@](\d{8}|\d{4}-\d\d-\d\d|latest))?(-v\d+(:\d+)?)?(\[\w+\])?$")

ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {moment} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {moment} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

# Each usage once, by the prices of its day: an owner's before those of everybody.
USAGE_COSTS = """CREATE VIEW usage_costs AS
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
SELECT d.session_id, d.branch, d.seq, d.number, iso(d.at) AS at, d.owner, d.model,
    CASE WHEN p.model IS NULL THEN d.cost ELSE (
        CASE WHEN d.input = 0 THEN 0 ELSE d.input * p.input END
        + CASE WHEN d.cached = 0 THEN 0 ELSE d.cached * p.cached END
        + CASE WHEN d.written = 0 THEN 0 ELSE d.written * p.written END
        + CASE WHEN d.output = 0 THEN 0 ELSE d.output * p.output END
    ) / 1000000.0 END AS cost, p.model AS price_model, iso(p.valid_from) AS price_from
FROM dated d
LEFT JOIN prices p ON d.cost IS NULL AND p.model = d.listed
    AND p.owner = CASE WHEN d.own_from IS NULL THEN '' ELSE d.owner END
    AND p.valid_from = COALESCE(d.own_from, d.public_from)"""
