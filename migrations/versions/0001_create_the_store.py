"""Create the store.

Tables, the triggers that keep raw rows as they are, views for people.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create everything."""
    create_sessions()
    create_messages()
    create_facts()
    create_compactions()
    dialect = op.get_context().dialect.name
    for statement in (*TRIGGERS[dialect], *(spelled(view, dialect) for view in VIEWS)):
        op.execute(sa.DDL(statement.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


def create_sessions() -> None:
    """Create the look-up of ids, the branches and the sessions that point to them."""
    op.create_table(
        "session_ids",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("tree_id", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_session_ids"),
        sqlite_strict=True,
    )
    op.create_table(
        "branches",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("parent_branch", BIG),
        sa.Column("parent_position", BIG, nullable=False),
        sa.Column("session_id", IDENTIFIER),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", name="pk_branches"),
        sa.ForeignKeyConstraint(
            ["tree_id", "parent_branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_branches_branches",
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "sessions",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("head_branch", BIG, nullable=False),
        sa.Column("head", BIG, nullable=False),
        sa.Column("last_rewind", BIG),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("forked_from", IDENTIFIER),
        sa.Column("forked_at", BIG),
        sa.Column("fold_case", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("project_root", sa.Text()),
        sa.Column("metadata", sa.Text()),
        sa.PrimaryKeyConstraint("tree_id", "id", name="pk_sessions"),
        sa.ForeignKeyConstraint(
            ["tree_id", "head_branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_sessions_branches",
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "head_moves",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("move", BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("from_branch", BIG),
        sa.Column("from_position", BIG),
        sa.Column("to_branch", BIG, nullable=False),
        sa.Column("to_position", BIG, nullable=False),
        sa.Column("earlier_rewind", BIG),
        sa.Column("moved_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "session_id", "move", name="pk_head_moves"),
        sqlite_strict=True,
    )
    op.create_table(
        "erasures",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("erasure", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("kept", BIG, nullable=False),
        sa.Column("messages", BIG, nullable=False),
        sa.Column("kept_messages", BIG, nullable=False),
        sa.Column("started_at", BIG, nullable=False),
        sa.Column("finished_at", BIG),
        sa.PrimaryKeyConstraint("tree_id", "erasure", "branch", name="pk_erasures"),
        sqlite_strict=True,
    )
    op.create_index("ix_sessions_updated_at_id", "sessions", ["updated_at", "id"])


def create_messages() -> None:
    """Create the raw tables."""
    op.create_table(
        "messages",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("status", sa.Text()),
        sa.Column("tool_call_id", sa.Text()),
        sa.Column("wire_format", sa.Text()),
        sa.Column("created_at", BIG),
        sa.Column("stored_at", BIG, nullable=False),
        sa.Column("message_id", sa.Text()),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("extra", sa.Text()),
        sa.Column("content_form", sa.Text()),
        sa.Column("content", sa.Text()),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", name="pk_messages"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_messages_branches",
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "tool_calls",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("position", BIG, nullable=False),
        sa.Column("call_id", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("arguments_form", sa.Text()),
        sa.Column("arguments", sa.Text()),
        sa.Column("extra", sa.Text()),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", "position", name="pk_tool_calls"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch", "seq"],
            ["messages.tree_id", "messages.branch", "messages.seq"],
            name="fk_tool_calls_messages",
        ),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_messages_tree_id_message_id",
        "messages",
        ["tree_id", "message_id"],
        sqlite_where=sa.text("message_id IS NOT NULL"),
        postgresql_where=sa.text("message_id IS NOT NULL"),
    )


def create_facts() -> None:
    """Create what is derived from raw rows at append, and the kinds of tools."""
    op.create_table(
        "tool_results",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("call_seq", BIG),
        sa.Column("call_position", BIG),
        sa.Column("tool_name", sa.Text()),
        sa.Column("at", BIG),
        sa.Column("status", sa.Text()),
        sa.Column("exit_code", BIG),
        sa.Column("has_stderr", sa.Integer(), nullable=False),
        sa.Column("error_prefix", sa.Integer(), nullable=False),
        sa.Column("looks_terminal", sa.Integer(), nullable=False),
        sa.Column("length", BIG, nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("paths_complete", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", name="pk_tool_results"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch", "seq"],
            ["messages.tree_id", "messages.branch", "messages.seq"],
            name="fk_tool_results_messages",
        ),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_table(
        "tool_result_paths",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("start_line", BIG),
        sa.Column("end_line", BIG),
        sa.Column("contiguous", sa.Integer(), nullable=False),
        sa.Column("mentions", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", "path", name="pk_tool_result_paths"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch", "seq"],
            ["tool_results.tree_id", "tool_results.branch", "tool_results.seq"],
            name="fk_tool_result_paths_tool_results",
        ),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_table(
        "tool_kinds",
        sa.Column("name", IDENTIFIER, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tool_kinds"),
        sqlite_strict=True,
    )
    op.create_table(
        "token_counts",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("encoding", sa.Text(), nullable=False),
        sa.Column("tokens", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", "encoding", name="pk_token_counts"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch", "seq"],
            ["messages.tree_id", "messages.branch", "messages.seq"],
            name="fk_token_counts_messages",
        ),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )


def create_compactions() -> None:
    """Create summaries and the records of compactions."""
    op.create_table(
        "summaries",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("summary", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("first", BIG, nullable=False),
        sa.Column("last", BIG, nullable=False),
        sa.Column("supersedes", BIG),
        sa.Column("tokens", BIG),
        sa.Column("model", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("digest", sa.LargeBinary()),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("key_actions", sa.Text()),
        sa.Column("file_changes", sa.Text()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "summary", name="pk_summaries"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_summaries_branches",
        ),
        sa.ForeignKeyConstraint(
            ["tree_id", "supersedes"],
            ["summaries.tree_id", "summaries.summary"],
            name="fk_summaries_summaries",
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "compaction_records",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("compaction", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("head", BIG, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("first_kept", BIG),
        sa.Column("hidden_first", BIG),
        sa.Column("hidden_last", BIG),
        sa.Column("summary", BIG),
        sa.Column("messages_before", BIG),
        sa.Column("messages_after", BIG),
        sa.Column("tokens_before", BIG),
        sa.Column("tokens_after", BIG),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("policy", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("tree_id", "compaction", name="pk_compaction_records"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_compaction_records_branches",
        ),
        sa.ForeignKeyConstraint(
            ["tree_id", "summary"],
            ["summaries.tree_id", "summaries.summary"],
            name="fk_compaction_records_summaries",
        ),
        sqlite_strict=True,
    )


# A raw row may go only while an erasure of its branch is open, and only beyond what the erasure
# keeps.
ERASED = """EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND OLD.seq > erasures.kept AND erasures.finished_at IS NULL
)"""


def equal(key: tuple[str, ...]) -> str:
    """Return the condition that a row has the key of the row about to be inserted."""
    return " AND ".join(f"{column} = NEW.{column}" for column in key)


# REPLACE deletes without firing delete triggers unless the connection asked for it, so inserting
# over a row is refused; also over its hidden rowid, the one other thing that rows of these tables
# could be in conflict about.
TRIGGERS = {
    "sqlite": [
        trigger
        for table, key in (
            ("messages", ("tree_id", "branch", "seq")),
            ("tool_calls", ("tree_id", "branch", "seq", "position")),
        )
        for trigger in (
            f"""CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} never change'); END""",
            f"""CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT {ERASED}
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} go only by the erasure of a session'); END""",
            f"""CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {equal(key)})
    OR EXISTS (SELECT 1 FROM {table} WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} are never replaced'); END""",
        )
    ],
    "postgresql": [
        f"""CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ERASED} THEN RETURN OLD; END IF;
    END IF;
    RAISE EXCEPTION 'raw rows of % never change', TG_TABLE_NAME;
END $$""",
        *(
            f"""CREATE TRIGGER {table}_{name} BEFORE {events} ON {table}
FOR EACH {what} EXECUTE FUNCTION refuse_change()"""
            for table in ("messages", "tool_calls")
            for name, events, what in (
                ("no_change", "UPDATE OR DELETE", "ROW"),
                ("no_truncate", "TRUNCATE", "STATEMENT"),
            )
        ),
    ],
}

ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {column} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({column} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}
"""How each dialect writes a column of ms as an ISO time, the one thing that the views spell
differently.
"""

ISO_COLUMN = re.compile(r"iso\(([a-z_.]+)\)")

VIEWS = (
    # A session's line is a few runs of branches; every other view reads through them.
    """CREATE VIEW session_segments AS
WITH RECURSIVE segments (tree_id, session_id, branch, first, last, parent_branch) AS (
    SELECT s.tree_id, s.id, b.branch, b.parent_position + 1, s.head, b.parent_branch
    FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
    UNION ALL
    SELECT c.tree_id, c.session_id, p.branch, p.parent_position + 1, c.first - 1, p.parent_branch
    FROM segments c JOIN branches p ON p.tree_id = c.tree_id AND p.branch = c.parent_branch
)
SELECT tree_id, session_id, branch, first, last FROM segments WHERE first <= last""",
    """CREATE VIEW session_messages AS
SELECT g.session_id, m.seq, m.role, m.name, m.status, m.tool_call_id, m.message_id,
       iso(m.created_at) AS created_at, iso(m.stored_at) AS stored_at,
       m.content_form, m.content, m.extra
FROM session_segments g
JOIN messages m
    ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last""",
    """CREATE VIEW tool_log AS
SELECT g.session_id, r.seq, r.tool_name, COALESCE(k.kind, 'other') AS kind,
       r.call_seq, r.call_position, c.call_id, c.arguments, iso(r.at) AS at,
       r.status, r.exit_code, r.has_stderr, r.error_prefix, r.length
FROM session_segments g
JOIN tool_results r
    ON r.tree_id = g.tree_id AND r.branch = g.branch AND r.seq BETWEEN g.first AND g.last
LEFT JOIN tool_kinds k ON k.name = r.tool_name
LEFT JOIN session_segments h
    ON h.tree_id = g.tree_id AND h.session_id = g.session_id
    AND r.call_seq BETWEEN h.first AND h.last
LEFT JOIN tool_calls c
    ON c.tree_id = h.tree_id AND c.branch = h.branch
    AND c.seq = r.call_seq AND c.position = r.call_position""",
    """CREATE VIEW file_log AS
SELECT g.session_id, p.seq, p.path, p.start_line, p.end_line, r.tool_name,
       COALESCE(k.kind, 'other') AS kind, iso(r.at) AS at, r.length
FROM session_segments g
JOIN tool_result_paths p
    ON p.tree_id = g.tree_id AND p.branch = g.branch AND p.seq BETWEEN g.first AND g.last
JOIN tool_results r ON r.tree_id = p.tree_id AND r.branch = p.branch AND r.seq = p.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name""",
    """CREATE VIEW turn_log AS
WITH placed AS (
    SELECT g.session_id, m.seq, m.role, m.created_at, m.content,
           SUM(CASE WHEN m.role = 'user' THEN 1 ELSE 0 END)
               OVER (PARTITION BY g.tree_id, g.session_id ORDER BY m.seq) AS turn
    FROM session_segments g
    JOIN messages m
        ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
)
SELECT session_id, turn, MIN(seq) AS first, MAX(seq) AS last, COUNT(*) AS messages,
       SUM(CASE WHEN role = 'tool' THEN 1 ELSE 0 END) AS tool_results,
       iso(min_created_at) AS started_at,
       MAX(CASE WHEN role = 'user' THEN content END) AS user_content
FROM (
    SELECT placed.*, MIN(created_at) OVER (PARTITION BY session_id, turn) AS min_created_at
    FROM placed
) AS p
GROUP BY session_id, turn, min_created_at""",
    """CREATE VIEW compaction_log AS
SELECT g.session_id, c.compaction, iso(c.created_at) AS created_at, c.reason, c.policy, c.outcome,
       c.head, c.first_kept, c.hidden_first, c.hidden_last, c.messages_before, c.messages_after,
       c.tokens_before, c.tokens_after, s.title, c.error
FROM session_segments g
JOIN compaction_records c ON c.tree_id = g.tree_id AND c.branch = g.branch AND c.head <= g.last
LEFT JOIN summaries s ON s.tree_id = c.tree_id AND s.summary = c.summary""",
)
"""What people ask: whole sessions by id, with ISO times and positions."""


def spelled(statement: str, dialect: str) -> str:
    """Return a view's statement with its times spelled for a dialect."""
    return ISO_COLUMN.sub(lambda found: ISO[dialect].format(column=found[1]), statement)
