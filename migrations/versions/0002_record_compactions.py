"""Record compactions, clearings and usage.

Keep what budgets and boundaries are computed from in narrow rows.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import context, op
from alembic.util import CommandError

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
RUNNING = sa.text("outcome = 'running'")


def upgrade() -> None:
    """Add the columns and tables, and fill the facts of the messages that are there."""
    op.add_column("branches", sa.Column("records_seen", BIG, nullable=False, server_default="0"))
    for column in (
        sa.Column("session_id", IDENTIFIER),
        sa.Column("kind", sa.Text(), nullable=False, server_default="summary"),
        sa.Column("undoes", BIG),
        sa.Column("lease_until", BIG),
        sa.Column("pinned", sa.Text()),
        sa.Column("cleared", sa.Text()),
    ):
        op.add_column("compaction_records", column)
    op.add_column("summaries", sa.Column("facts", sa.Text()))
    op.create_index(
        "ix_compaction_records_tree_id_branch_compaction",
        "compaction_records",
        ["tree_id", "branch", "compaction"],
    )
    op.create_index(
        "uq_compaction_records_running",
        "compaction_records",
        ["tree_id", "session_id"],
        unique=True,
        sqlite_where=RUNNING,
        postgresql_where=RUNNING,
    )
    create_message_facts()
    create_usages()
    dialect = op.get_context().dialect.name
    op.execute("DROP VIEW compaction_log")
    op.execute("DROP VIEW turn_log")
    for view in (TURN_LOG, COMPACTION_LOG, HIDDEN_MESSAGES):
        op.execute(sa.DDL(spelled(view, dialect).replace("%", "%%")))
    if not context.is_offline_mode():
        fill(op.get_bind())


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


def create_message_facts() -> None:
    """Create the narrow rows that budgets and boundaries read.

    Role, turn, tokens, tokens of the line so far.
    """
    op.create_table(
        "message_facts",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("turn", BIG, nullable=False),
        sa.Column("tokens", BIG, nullable=False),
        sa.Column("tokens_through", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", name="pk_message_facts"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch", "seq"],
            ["messages.tree_id", "messages.branch", "messages.seq"],
            name="fk_message_facts_messages",
        ),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )


def create_usages() -> None:
    """Create the record of what requests really cost, by the position that they were made at."""
    op.create_table(
        "usages",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("branch", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("usage", BIG, nullable=False),
        sa.Column("input", BIG, nullable=False),
        sa.Column("output", BIG, nullable=False),
        sa.Column("cached", BIG, nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "branch", "seq", "usage", name="pk_usages"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_usages_branches",
        ),
        sqlite_strict=True,
    )


def fill(connection: sa.Connection) -> None:
    """Compute the facts of all stored messages, parents' branches before their children's."""
    branches = connection.execute(
        sa.text(
            "SELECT tree_id, branch, parent_branch, parent_position FROM branches"
            " ORDER BY tree_id, branch"
        )
    ).all()
    for tree_id, branch, parent, position in branches:
        turn, through = 0, 0
        if parent is not None:
            turn, through = connection.execute(
                sa.text(
                    "SELECT turn, tokens_through FROM message_facts"
                    " WHERE tree_id = :t AND branch = :b AND seq = :s"
                ),
                {"t": tree_id, "b": parent, "s": position},
            ).one()
        fill_branch(connection, {"t": tree_id, "b": branch}, turn, through)


def fill_branch(connection: sa.Connection, place: dict[str, int], turn: int, through: int) -> None:
    """Compute the facts of one branch's messages in the order of their positions."""
    rows = connection.execute(
        sa.text(
            "SELECT seq, role, name, extra, content_form, content FROM messages"
            " WHERE tree_id = :t AND branch = :b ORDER BY seq"
        ),
        place,
    )
    for seq, role, name, extra, form, content in rows:
        calls = connection.execute(
            sa.text(
                "SELECT name, arguments_form, arguments, extra FROM tool_calls"
                " WHERE tree_id = :t AND branch = :b AND seq = :s ORDER BY position"
            ),
            {**place, "s": seq},
        ).all()
        rest = decode(extra) if extra else {}
        fields = rest if isinstance(rest, dict) else rest[1]
        if form is not None:
            fields["content"] = content if form in PLAIN_FORMS else decode(content)
        if name is not None:
            fields["name"] = name
        texts = [*texts_of(fields), *(text for call in calls for text in texts_of_call(*call))]
        tokens = estimate("\n".join(text for text in texts if text)) + FRAMING
        tokens += MEDIA_TOKENS * count_media(fields.get("content"))
        turn, through = turn + (role == "user"), through + tokens
        connection.execute(
            sa.text(
                "INSERT INTO message_facts VALUES (:t, :b, :s, :role, :turn, :tokens, :through)"
            ),
            {**place, "s": seq, "role": role, "turn": turn, "tokens": tokens, "through": through},
        )


# The estimate of tokens as it was when this revision was made.

PLAIN_FORMS = ("text", "null")
FRAMING = 4
MEDIA_TOKENS = 765
MEDIA_TYPES = (
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url"),
    *("file", "input_file", "document"),
)
FIELDS = ("name", "reasoning_content", "reasoning", "thinking", "refusal", "content")
PART_KEYS = ("text", "thinking", "reasoning", "refusal", "summary", "name", "input", "content")


def decode(text: str) -> Any:
    """Return a stored JSON value; a text that no engine can hold is wrapped after ``=``."""
    if text.startswith("="):
        text = b64decode(text[1:]).decode("utf-8", "surrogatepass")
    return json.loads(text)


def estimate(text: str) -> int:
    """Estimate the tokens of a text by its code points and its bytes."""
    return -((len(text) - 11 * len(text.encode("utf-8", "surrogatepass"))) // 40)


def as_text(value: object) -> str:
    """Return a text as it is, another value as compact JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def texts_of(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a message's fields that a model reads."""
    for key in FIELDS:
        yield from part_texts(fields.get(key))


def texts_of_call(
    name: str | None, form: str | None, arguments: str | None, extra: str | None
) -> list[str]:
    """Return the name and the arguments of a call."""
    rest = decode(extra) if extra else {}
    function = rest.get("function", rest) if isinstance(rest, dict) else {}
    if not isinstance(function, dict):
        function = {}
    given = function.get("arguments", function.get("input"))
    if form is not None:
        given = arguments if form in PLAIN_FORMS else decode(arguments or "null")
    return [as_text(name if name is not None else function.get("name")), as_text(given)]


def part_texts(value: object) -> Iterator[str]:
    """Yield the texts of a content, a part or a list of parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from part_texts(part)
    elif isinstance(value, dict) and value.get("type") not in MEDIA_TYPES:
        for key in PART_KEYS:
            yield from part_texts(as_text(value.get(key)) if key == "input" else value.get(key))


def count_media(content: object) -> int:
    """Count the images, sounds and files in a content."""
    parts = content if isinstance(content, list) else []
    return sum(
        1 if part.get("type") in MEDIA_TYPES else count_media(part.get("content"))
        for part in parts
        if isinstance(part, dict)
    )


ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {column} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({column} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

# Turns are numbered in the narrow rows, so that nothing but the first message of each is read.
TURN_LOG = """CREATE VIEW turn_log AS
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn, MIN(f.seq) AS first, MAX(f.seq) AS last,
           COUNT(*) AS messages,
           SUM(CASE WHEN f.role = 'tool' THEN 1 ELSE 0 END) AS tool_results
    FROM session_segments g
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    GROUP BY g.tree_id, g.session_id, f.turn
)
SELECT t.session_id, t.turn, t.first, t.last, t.messages, t.tool_results,
       iso(m.created_at) AS started_at,
       CASE WHEN m.role = 'user' THEN m.content END AS user_content
FROM turns t
JOIN session_segments g
    ON g.tree_id = t.tree_id AND g.session_id = t.session_id AND t.first BETWEEN g.first AND g.last
JOIN messages m ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq = t.first"""

# A record counts on a line if it was made on it, at or before the line's head, and before the line
# left the branch.
LINE_RECORDS = """WITH RECURSIVE
segments (tree_id, session_id, branch, last, seen, parent_branch, parent_position, own_seen) AS (
    SELECT s.tree_id, s.id, b.branch, s.head, CAST(NULL AS BIGINT), b.parent_branch,
           b.parent_position, b.records_seen
    FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
    UNION ALL
    SELECT c.tree_id, c.session_id, p.branch, c.parent_position, c.own_seen, p.parent_branch,
           p.parent_position, p.records_seen
    FROM segments c JOIN branches p ON p.tree_id = c.tree_id AND p.branch = c.parent_branch
),
records AS (
    SELECT g.session_id AS line, c.*
    FROM segments g
    JOIN compaction_records c ON c.tree_id = g.tree_id AND c.branch = g.branch AND c.head <= g.last
     AND (g.seen IS NULL OR c.compaction <= g.seen)
)"""

COMPACTION_LOG = f"""CREATE VIEW compaction_log AS
{LINE_RECORDS}
SELECT r.line AS session_id, r.compaction, iso(r.created_at) AS created_at, r.kind,
       r.reason, r.policy,
       CASE WHEN u.compaction IS NULL THEN r.outcome ELSE 'undone' END AS outcome,
       r.head, r.hidden_first, r.hidden_last, r.first_kept, r.messages_before, r.messages_after,
       r.tokens_before, r.tokens_after, s.title, s.model, s.prompt_version, r.error
FROM records r
LEFT JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
LEFT JOIN records u
    ON u.tree_id = r.tree_id AND u.line = r.line AND u.kind = 'undo' AND u.undoes = r.compaction
WHERE r.kind <> 'undo'"""

HIDDEN_MESSAGES = f"""CREATE VIEW hidden_messages AS
{LINE_RECORDS}
SELECT r.line AS session_id, m.seq, m.role, r.compaction,
       iso(r.created_at) AS compacted_at, r.summary
FROM records r
JOIN session_segments g ON g.tree_id = r.tree_id AND g.session_id = r.line
JOIN messages m
    ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
    AND m.seq BETWEEN r.hidden_first AND r.hidden_last
WHERE r.kind = 'summary' AND r.outcome = 'applied' AND m.role NOT IN ('system', 'developer')
  AND NOT EXISTS (
    SELECT 1 FROM records u
    WHERE u.tree_id = r.tree_id AND u.line = r.line AND u.kind = 'undo' AND u.undoes = r.compaction
  )"""


def spelled(statement: str, dialect: str) -> str:
    """Return a view's statement with its times spelled for a dialect."""
    return re.sub(
        r"iso\(([a-z_.]+)\)", lambda found: ISO[dialect].format(column=found[1]), statement
    )
