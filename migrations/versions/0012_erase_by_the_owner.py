"""Let the owner of a server's tables erase and redact for roles that may only read and insert."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
rewrites_rows = False

OF_BRANCH = "tree_id = of_tree AND branch = of_branch"
OPEN_ERASURE = """EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = raw.tree_id AND erasures.branch = raw.branch
      AND erasures.finished_at IS NULL{beyond}
)"""
OPEN_REDACTION = """EXISTS (
    SELECT 1 FROM redactions
    WHERE redactions.tree_id = raw.tree_id AND redactions.branch = raw.branch
      AND redactions.seq = raw.seq AND redactions.finished_at IS NULL
)"""
BEYOND = " AND raw.seq > erasures.kept"
BRANCH_TABLES = {
    "tool_calls": ("seq", BEYOND),
    "message_attachments": ("seq", BEYOND),
    "messages": ("seq", BEYOND),
    "compaction_records": ("head", ""),
}
"""What an erasure deletes beyond a position: its column, and what else its rows must be."""
CHANGED = {
    "messages": {
        **dict.fromkeys(("role", "name", "status", "tool_call_id"), "text"),
        "created_at": "bigint",
        **dict.fromkeys(("message_id", "extra", "content_form", "content"), "text"),
        "digest": "bytea",
    },
    "tool_calls": dict.fromkeys(
        ("call_id", "name", "arguments_form", "arguments", "extra"), "text"
    ),
}
"""What a redaction changes."""


def build_deletion(table: str) -> tuple[str, str]:
    """Return the function that deletes rows of a branch beyond a position, and what it does."""
    column, beyond = BRANCH_TABLES[table]
    return (
        f"erase_{table}(of_tree bigint, of_branch bigint, beyond bigint) RETURNS void",
        f"""DELETE FROM {table} AS raw
WHERE {OF_BRANCH} AND {column} > beyond AND {OPEN_ERASURE.format(beyond=beyond)}""",
    )


def build_change(table: str, place: str, condition: str) -> tuple[str, str]:
    """Return the function that rewrites a row of a message, and what it does."""
    types = CHANGED[table]
    values = ", ".join(f"new_{name} {kind}" for name, kind in types.items())
    changes = ", ".join(f"{name} = new_{name}" for name in types)
    return (
        f"redact_{table}(of_tree bigint, of_branch bigint, {place}, {values}) RETURNS void",
        f"""UPDATE {table} AS raw SET {changes}
WHERE {OF_BRANCH} AND {condition} AND {OPEN_REDACTION}""",
    )


FUNCTIONS = (
    *map(build_deletion, BRANCH_TABLES),
    (
        "erase_summaries(of_tree bigint, of_branch bigint, most bigint) RETURNS SETOF bigint",
        f"""DELETE FROM summaries AS raw WHERE tree_id = of_tree AND summary IN (
    SELECT summary FROM summaries
    WHERE {OF_BRANCH} AND summary NOT IN (
        SELECT summary FROM compaction_records WHERE tree_id = of_tree AND summary IS NOT NULL
    )
    ORDER BY summary DESC LIMIT most
) AND {OPEN_ERASURE.format(beyond="")} RETURNING summary""",
    ),
    (
        "erase_attachments(of_tree bigint, most bigint) RETURNS SETOF bytea",
        """DELETE FROM attachments WHERE tree_id = of_tree AND digest IN (
    SELECT digest FROM attachments AS raw
    WHERE tree_id = of_tree AND NOT EXISTS (
        SELECT 1 FROM message_attachments
        WHERE message_attachments.tree_id = of_tree AND message_attachments.digest = raw.digest
    )
    LIMIT most
) RETURNING digest""",
    ),
    build_change("messages", "of_seq bigint", "seq = of_seq"),
    build_change(
        "tool_calls",
        "of_seq bigint, of_position bigint",
        "seq = of_seq AND position = of_position",
    ),
    (
        "redact_attachments(of_tree bigint, of_branch bigint, of_seq bigint) RETURNS void",
        f"""DELETE FROM message_attachments AS raw
WHERE {OF_BRANCH} AND seq = of_seq AND {OPEN_REDACTION}""",
    ),
)

# A function reads the tables that the migration makes, whatever the caller's path names first.
SET_PATH = """DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION {name} SET search_path = %I, pg_temp', current_schema());
END $$"""


def upgrade() -> None:
    """Make the functions on a server; a file has no roles."""
    if op.get_context().dialect.name != "postgresql":
        return
    for declared, body in FUNCTIONS:
        function = f"CREATE FUNCTION {declared} LANGUAGE sql SECURITY DEFINER AS $$\n{body}\n$$"
        name = declared.partition("(")[0]
        for statement in (function, SET_PATH.format(name=name)):
            op.execute(sa.DDL(statement.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
