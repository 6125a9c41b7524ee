"""Sum up turns without joining a line twice: a server without statistics planned that badly."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
rewrites_rows = False

ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {moment} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {moment} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

# A turn may go on from one branch to the next. So the position and the branch of its first and last
# message are one number each, by which the messages are found without joining the line again.
TURN_LOG = """CREATE VIEW turn_log AS
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn, MIN(f.seq) AS first, MAX(f.seq) AS last,
           COUNT(*) AS messages, CAST(SUM(f.tokens) AS BIGINT) AS tokens,
           SUM(CASE WHEN f.role = 'tool' THEN 1 ELSE 0 END) AS tool_results,
           MIN(f.seq * 4294967296 + f.branch) % 4294967296 AS first_branch,
           MAX(f.seq * 4294967296 + f.branch) % 4294967296 AS last_branch
    FROM session_segments g
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    GROUP BY g.tree_id, g.session_id, f.turn
)
SELECT t.session_id, t.turn, t.first, t.last, t.messages, t.tool_results, t.tokens,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at,
       CAST(
           COALESCE(n.created_at, n.stored_at) - COALESCE(m.created_at, m.stored_at)
           AS DOUBLE PRECISION
       ) / 1000 AS seconds,
       CASE WHEN m.role = 'user' THEN m.content END AS user_content,
       CASE WHEN b.session_id = t.session_id THEN 0 ELSE 1 END AS inherited
FROM turns t
JOIN branches b ON b.tree_id = t.tree_id AND b.branch = t.first_branch
JOIN messages m ON m.tree_id = t.tree_id AND m.branch = t.first_branch AND m.seq = t.first
JOIN messages n ON n.tree_id = t.tree_id AND n.branch = t.last_branch AND n.seq = t.last"""


def upgrade() -> None:
    """Make the view anew."""
    iso = ISO[op.get_context().dialect.name]
    view = re.sub(
        r"iso\((COALESCE\([^()]*\)|[^()]*)\)", lambda it: iso.format(moment=it[1]), TURN_LOG
    )
    op.execute("DROP VIEW turn_log")
    op.execute(sa.DDL(view.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
