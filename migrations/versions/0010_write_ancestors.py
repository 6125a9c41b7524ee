"""Write the ancestors of branches on a server, so that no view there walks up a tree."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table; on a server fill it, and make the views of lines anew."""
    op.create_table(
        "ancestors",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        *(
            sa.Column(name, BIG, nullable=False)
            for name in ("ancestor", "first", "last", "next_branch")
        ),
        sa.PrimaryKeyConstraint("tree_id", "branch", "level", "ancestor", name="pk_ancestors"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    if op.get_context().dialect.name == "postgresql":
        for statement in (FILL, SESSION_SEGMENTS, COMPACTION_LOG, HIDDEN_MESSAGES):
            written = re.sub(r"iso\(([a-z_.]+)\)", lambda found: ISO.format(found[1]), statement)
            op.execute(sa.DDL(written.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


# A parent has a lower number than its branches, so its rows are there before theirs.
FILL = """DO $$
DECLARE
    b RECORD;
    carry INTEGER;
BEGIN
    FOR b IN
        SELECT n.tree_id, n.branch, n.parent_branch, n.parent_position AS last,
               p.parent_position + 1 AS first
        FROM branches n
        JOIN branches p ON p.tree_id = n.tree_id AND p.branch = n.parent_branch
        ORDER BY n.tree_id, n.branch
    LOOP
        SELECT CASE WHEN COUNT(*) FILTER (WHERE a.level = 0) < 16 THEN 0
                    WHEN COUNT(*) FILTER (WHERE a.level = 1) < 16 THEN 1 ELSE 2 END
        INTO carry
        FROM ancestors a WHERE a.tree_id = b.tree_id AND a.branch = b.parent_branch;
        INSERT INTO ancestors
        SELECT a.tree_id, b.branch, a.level, a.ancestor, a.first, a.last, a.next_branch
        FROM ancestors a
        WHERE a.tree_id = b.tree_id AND a.branch = b.parent_branch AND a.level >= carry
        UNION ALL
        SELECT b.tree_id, b.branch, 0, b.parent_branch, b.first, b.last, b.branch
        UNION ALL
        SELECT a.tree_id, b.branch, a.level + 1, b.parent_branch, MIN(a.first), MAX(a.last),
               b.branch
        FROM ancestors a
        WHERE a.tree_id = b.tree_id AND a.branch = b.parent_branch AND a.level < carry
        GROUP BY a.tree_id, a.level;
    END LOOP;
END $$"""

# between the first and the last year that a server has
ISO = (
    "CASE WHEN {0} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({0} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END'
)

# The ancestors of a session's head branch: those of its rows of level 0, those behind its rows of
# level 1, and those behind its rows of level 2.
NEAR = """FROM sessions s
JOIN ancestors a ON a.tree_id = s.tree_id AND a.branch = s.head_branch AND a.level = 0"""
FAR = """FROM sessions s
JOIN ancestors b ON b.tree_id = s.tree_id AND b.branch = s.head_branch AND b.level = 1
JOIN ancestors a ON a.tree_id = s.tree_id AND a.branch = b.ancestor AND a.level = 0"""
FARTHEST = """FROM sessions s
JOIN ancestors c ON c.tree_id = s.tree_id AND c.branch = s.head_branch AND c.level = 2
JOIN ancestors b ON b.tree_id = s.tree_id AND b.branch = c.ancestor AND b.level = 1
JOIN ancestors a ON a.tree_id = s.tree_id AND a.branch = b.ancestor AND a.level = 0"""

SESSION_SEGMENTS = "CREATE OR REPLACE VIEW session_segments AS\n" + "\nUNION ALL\n".join(
    [
        """SELECT s.tree_id, s.id AS session_id, b.branch, b.parent_position + 1 AS first,
       s.head AS last
FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
WHERE b.parent_position < s.head""",
        *(
            f"SELECT s.tree_id, s.id, a.ancestor, a.first, a.last\n{way}\nWHERE a.first <= a.last"
            for way in (NEAR, FAR, FARTHEST)
        ),
    ]
)

# A record counts on a line if it was made on it, at or before the line's head, and before the line
# left the branch. What is asked of one session is asked of its rows alone.
LINE_RECORDS = "\n".join(
    [
        "WITH records AS NOT MATERIALIZED (",
        "SELECT s.id AS line, r.* FROM sessions s",
        "JOIN compaction_records r",
        "    ON r.tree_id = s.tree_id AND r.branch = s.head_branch AND r.head <= s.head",
        *(
            f"""UNION ALL
SELECT s.id, r.* {way}
JOIN branches n ON n.tree_id = s.tree_id AND n.branch = a.next_branch
JOIN compaction_records r
    ON r.tree_id = s.tree_id AND r.branch = a.ancestor AND r.head <= a.last
    AND r.compaction <= n.records_seen"""
            for way in (NEAR, FAR, FARTHEST)
        ),
        ")",
    ]
)

COMPACTION_LOG = f"""CREATE OR REPLACE VIEW compaction_log AS
{LINE_RECORDS}
SELECT r.line AS session_id, r.compaction, iso(r.created_at) AS created_at, r.kind,
       r.reason, r.policy,
       CASE WHEN u.compaction IS NULL THEN r.outcome ELSE 'undone' END AS outcome,
       r.head, r.hidden_first, r.hidden_last, r.first_kept, r.messages_before, r.messages_after,
       r.tokens_before, r.tokens_after, s.title, s.model, s.prompt_version, r.error,
       CASE WHEN b.session_id = r.line THEN 0 ELSE 1 END AS inherited
FROM records r
JOIN branches b ON b.tree_id = r.tree_id AND b.branch = r.branch
LEFT JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
LEFT JOIN records u
    ON u.tree_id = r.tree_id AND u.line = r.line AND u.kind = 'undo' AND u.undoes = r.compaction
WHERE r.kind <> 'undo'"""

# A record is in force if it was applied and not undone. What it pins is visible until a later one
# hides it: a message is hidden by the first record in force whose range holds it, of those behind
# the last that pins it.
HIDDEN_MESSAGES = f"""CREATE OR REPLACE VIEW hidden_messages AS
{LINE_RECORDS},
in_force AS NOT MATERIALIZED (
    SELECT r.* FROM records r
    WHERE r.kind IN ('summary', 'hide') AND r.outcome = 'applied' AND NOT EXISTS (
        SELECT 1 FROM records u
        WHERE u.tree_id = r.tree_id AND u.line = r.line
            AND u.kind = 'undo' AND u.undoes = r.compaction
    )
),
pins AS (
    SELECT r.tree_id, r.line, CAST(p.value AS BIGINT) AS seq, MAX(r.compaction) AS pinned_by
    FROM in_force r CROSS JOIN json_array_elements_text(CAST(r.pinned AS json)) AS p
    GROUP BY r.tree_id, r.line, CAST(p.value AS BIGINT)
),
hidden AS (
    SELECT g.tree_id, g.session_id, g.branch, m.seq, m.role, MIN(r.compaction) AS compaction
    FROM in_force r
    JOIN session_segments g ON g.tree_id = r.tree_id AND g.session_id = r.line
    JOIN message_facts m
        ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
        AND m.seq BETWEEN r.hidden_first AND r.hidden_last
    LEFT JOIN pins p ON p.tree_id = r.tree_id AND p.line = r.line AND p.seq = m.seq
    WHERE p.pinned_by IS NULL OR r.compaction > p.pinned_by
    GROUP BY g.tree_id, g.session_id, g.branch, m.seq, m.role
)
SELECT h.session_id, h.seq, h.role, h.compaction, iso(c.created_at) AS compacted_at, c.summary
FROM hidden h
JOIN compaction_records c ON c.tree_id = h.tree_id AND c.compaction = h.compaction"""
