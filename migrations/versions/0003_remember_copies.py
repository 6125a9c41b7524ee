"""Remember the copies that were made of the store, and which erasures they may still hold.

Mark sessions at each change. Tell people more of sessions, times and what is not sent. Guard what
compactions wrote as raw rows are guarded, and seal the rows that never change.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256

import sqlalchemy as sa
from alembic import context, op
from alembic.util import CommandError
from pydantic_core import to_json
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.Double().with_variant(sa.REAL(), "sqlite")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
PLACE = ("tree_id", "branch", "seq")

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
    narrow_tables()
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
    op.add_column("sessions", sa.Column("revision", sa.Text(), nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("owner", IDENTIFIER))
    op.add_column(
        "sessions", sa.Column("archived", sa.Integer(), nullable=False, server_default="0")
    )
    op.drop_index("ix_sessions_updated_at_id", "sessions")
    is_owned = sa.text("owner IS NOT NULL")
    for moment in ("updated_at", "created_at"):
        listed = ["archived", moment, "id"]
        op.create_index(f"ix_sessions_archived_{moment}_id", "sessions", listed)
        op.create_index(
            f"ix_sessions_owner_archived_{moment}_id",
            "sessions",
            ["owner", *listed],
            sqlite_where=is_owned,
            postgresql_where=is_owned,
        )
    create_keys()
    for name in ("source_move", "source_record"):
        op.add_column("head_moves", sa.Column(name, BIG))
    has_id = sa.text("message_id IS NOT NULL")
    op.drop_index("ix_messages_tree_id_message_id", "messages")
    op.create_index(
        "ix_messages_message_id_tree_id",
        "messages",
        ["message_id", "tree_id"],
        sqlite_where=has_id,
        postgresql_where=has_id,
    )
    op.create_index("ix_branches_tree_id_parent_branch", "branches", ["tree_id", "parent_branch"])
    op.add_column("compaction_records", sa.Column("error_kind", sa.Text()))
    op.add_column("summaries", sa.Column("notice", sa.Text()))
    op.add_column("summaries", sa.Column("names", sa.Text()))
    create_redactions()
    add_prices()
    create_drafts()
    create_notes()
    create_index()
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
    create_views()
    # Seals are of rows as this revision leaves them, so whatever changes them stands above.
    for name in SEALED:
        op.add_column(name, sa.Column("sealed", sa.LargeBinary()))
    if not context.is_offline_mode():
        seal_rows(op.get_bind())
    for trigger in TRIGGERS[op.get_context().dialect.name]:
        op.execute(sa.DDL(trigger.replace("%", "%%")))


def create_index() -> None:
    """Add what tells which messages and summaries a search finds, and what is set for the store.

    On a server their words lie in it; a file gets tables of its own for them by the first search.
    """
    words = sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql")
    op.create_table(
        "search_rows",
        *(sa.Column(name, BIG, nullable=False) for name in (*PLACE, "summary", "number")),
        sa.Column("words", words),
        sa.Column("names", sa.Text()),
        sa.PrimaryKeyConstraint(*PLACE, "summary", name="pk_search_rows"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_search_rows_branches",
        ),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_search_rows_number", "search_rows", ["number"])
    op.create_table(
        "settings",
        sa.Column("name", IDENTIFIER, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
        sqlite_strict=True,
    )


def narrow_tables() -> None:
    """Let the short rows that each fork and rewind writes lie in their keys, where a file can.

    Each is then one page to write, not two. What hangs on a branch is without it until it is back,
    so foreign keys are looked at last.
    """
    if op.get_context().dialect.name != "sqlite":
        return
    op.execute("PRAGMA defer_foreign_keys = ON")
    for name, definition in NARROW.items():
        op.execute(f"CREATE TEMP TABLE kept AS SELECT * FROM {name}")
        op.execute(f"DROP TABLE {name}")
        op.execute(f"CREATE TABLE {name} (\n{definition}\n)\n STRICT, WITHOUT ROWID")
        op.execute(f"INSERT INTO {name} SELECT * FROM kept")
        op.execute("DROP TABLE kept")


NARROW = {
    "session_ids": """\
\tid TEXT NOT NULL,
\ttree_id INTEGER NOT NULL,
\tCONSTRAINT pk_session_ids PRIMARY KEY (id)""",
    "branches": """\
\ttree_id INTEGER NOT NULL,
\tbranch INTEGER NOT NULL,
\tparent_branch INTEGER,
\tparent_position INTEGER NOT NULL,
\tsession_id TEXT,
\tcreated_at INTEGER NOT NULL, records_seen INTEGER DEFAULT '0' NOT NULL,
\tCONSTRAINT pk_branches PRIMARY KEY (tree_id, branch),
\tCONSTRAINT fk_branches_branches FOREIGN KEY(tree_id, parent_branch)\
 REFERENCES branches (tree_id, branch)""",
    "head_moves": """\
\ttree_id INTEGER NOT NULL,
\tsession_id TEXT NOT NULL,
\tmove INTEGER NOT NULL,
\tkind TEXT NOT NULL,
\tfrom_branch INTEGER,
\tfrom_position INTEGER,
\tto_branch INTEGER NOT NULL,
\tto_position INTEGER NOT NULL,
\tearlier_rewind INTEGER,
\tmoved_at INTEGER NOT NULL,
\tCONSTRAINT pk_head_moves PRIMARY KEY (tree_id, session_id, move)""",
}
"""The tables that are made anew in a file, without row numbers."""


def create_redactions() -> None:
    """Add the list of redactions, and let the rows of an open one be written over."""
    op.create_table(
        "redactions",
        *(sa.Column(name, BIG, nullable=False) for name in PLACE),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("redacted_by", sa.Text()),
        sa.Column("redacted_at", BIG, nullable=False),
        sa.Column("summaries", sa.Text(), nullable=False),
        sa.Column("newest_copy", BIG, nullable=False),
        sa.Column("finished_at", BIG),
        sa.Column("purged_at", BIG),
        sa.PrimaryKeyConstraint(*PLACE, name="pk_redactions"),
        sa.ForeignKeyConstraint(
            PLACE, [f"messages.{name}" for name in PLACE], name="fk_redactions_messages"
        ),
        sqlite_strict=True,
    )
    for statement in REDACTABLE[op.get_context().dialect.name]:
        op.execute(sa.DDL(statement.replace("%", "%%")))


def add_prices() -> None:
    """Let usages say of which model they are, and what was paid for them."""
    for column in (
        sa.Column("written", BIG),
        sa.Column("cost", NUMBER),
        sa.Column("model", sa.Text()),
        sa.Column("provider", sa.Text()),
        sa.Column("details", sa.Text()),
    ):
        op.add_column("usages", column)
    op.create_index("ix_usages_at", "usages", ["at"])


def create_drafts() -> None:
    """Add the answers that are being streamed, and the pieces that came of them."""
    op.create_table(
        "drafts",
        *(sa.Column(name, BIG, nullable=False) for name in ("tree_id", "draft")),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        *(sa.Column(name, BIG, nullable=False) for name in ("branch", "head", "at")),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("wire_format", sa.Text()),
        sa.PrimaryKeyConstraint("tree_id", "draft", name="pk_drafts"),
        sa.ForeignKeyConstraint(
            ["tree_id", "branch"],
            ["branches.tree_id", "branches.branch"],
            name="fk_drafts_branches",
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "draft_pieces",
        *(sa.Column(name, BIG, nullable=False) for name in ("tree_id", "draft", "piece", "at")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("key", "text")),
        sa.PrimaryKeyConstraint("tree_id", "draft", "piece", name="pk_draft_pieces"),
        sa.ForeignKeyConstraint(
            ["tree_id", "draft"], ["drafts.tree_id", "drafts.draft"], name="fk_draft_pieces_drafts"
        ),
        sqlite_strict=True,
    )


def create_notes() -> None:
    """Add what apps note beside messages."""
    op.create_table(
        "notes",
        *(sa.Column(name, BIG, nullable=False) for name in (*PLACE, "note")),
        sa.Column("key", IDENTIFIER, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("owner", IDENTIFIER),
        sa.Column("at", BIG, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(*PLACE, "note", name="pk_notes"),
        sa.ForeignKeyConstraint(
            PLACE, [f"messages.{name}" for name in PLACE], name="fk_notes_messages"
        ),
        sqlite_strict=True,
    )
    op.create_index("ix_notes_key_at", "notes", ["key", "at"])


def create_keys() -> None:
    """Add the keys of metadata, and write those of the sessions that are there."""
    op.create_table(
        "session_keys",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("key", IDENTIFIER, nullable=False),
        sa.Column("value", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "session_id", "key", name="pk_session_keys"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    named = ["key", "value", "tree_id", "session_id"]
    op.create_index("ix_session_keys_key_value_tree_id_session_id", "session_keys", named)
    if not context.is_offline_mode():
        fill_keys(op.get_bind())


def fill_keys(connection: sa.Connection) -> None:
    """Write the keys of the metadata of all sessions."""
    given = sa.text("SELECT tree_id, id, metadata FROM sessions WHERE metadata IS NOT NULL")
    insert = sa.text("INSERT INTO session_keys VALUES (:tree_id, :session_id, :key, :value)")
    for tree_id, session_id, stored in connection.execute(given).all():
        text = stored
        if stored.startswith("="):
            text = b64decode(stored[1:]).decode("utf-8", "surrogatepass")
        for key, value in json.loads(text).items():
            row = {"key": indexed(key), "value": indexed(value)}
            connection.execute(insert, {"tree_id": tree_id, "session_id": session_id, **row})


def indexed(value: object) -> str:
    """Return a JSON value as the index holds it: its text, or the SHA-256 of a longer one."""
    plain = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    text = plain
    try:
        plain.encode()
        holds = "\0" not in plain
    except UnicodeEncodeError:
        holds = False
    if not holds:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        if json.loads(text) != value:
            text = "=" + b64encode(plain.encode("utf-8", "surrogatepass")).decode("ascii")
    return text if len(text) <= 200 else f"sha256:{sha256(text.encode()).hexdigest()}"


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


SEALED = {
    "branches": (
        "tree_id branch",
        "branch created_at parent_branch parent_position tree_id",
    ),
    "compaction_records": (
        "tree_id compaction",
        (
            "branch cleared compaction created_at error error_kind first_kept head "
            "hidden_first hidden_last kind lease_until messages_after messages_before outcome "
            "pinned policy reason session_id summary tokens_after tokens_before tree_id undoes"
        ),
    ),
    "copies": (
        "copy",
        "copy kind made_at path",
    ),
    "draft_pieces": (
        "tree_id draft piece",
        "at draft key piece text tree_id",
    ),
    "drafts": (
        "tree_id draft",
        "branch draft head session_id tree_id wire_format",
    ),
    "erasures": (
        "tree_id erasure branch",
        "branch erasure kept kept_messages messages session_id started_at tree_id",
    ),
    "head_moves": (
        "tree_id session_id move",
        (
            "earlier_rewind from_branch from_position kind move moved_at session_id "
            "source_move to_branch to_position tree_id"
        ),
    ),
    "notes": (
        "tree_id branch seq note",
        "at branch key note owner seq session_id tree_id value",
    ),
    "redactions": (
        "tree_id branch seq",
        "branch newest_copy reason redacted_at redacted_by seq session_id summaries tree_id",
    ),
    "sessions": (
        "tree_id id",
        "created_at fold_case forked_at forked_from id owner tree_id",
    ),
    "summaries": (
        "tree_id summary",
        (
            "body branch created_at digest facts file_changes first key_actions last model "
            "names notice prompt_version summary supersedes title tokens tree_id"
        ),
    ),
    "token_counts": (
        "tree_id branch seq encoding",
        "branch encoding seq tokens tree_id",
    ),
    "usages": (
        "tree_id branch seq usage",
        "at branch cached cost details input model output provider seq tree_id usage written",
    ),
}
"""The sealed tables: their keys, and the columns that never change, as of this revision."""


def seal_rows(connection: sa.Connection) -> None:
    """Seal the rows that are there; from now on they are to stay what they are."""
    for table, (keys, columns) in SEALED.items():
        names = columns.split()
        equal = " AND ".join(f"{key} = :{key}" for key in keys.split())
        update = sa.text(f"UPDATE {table} SET sealed = :sealed WHERE {equal}")
        rows = connection.execute(sa.text(f"SELECT {columns.replace(' ', ', ')} FROM {table}"))
        for row in rows.mappings().all():
            held = {name: row[name] for name in names if row[name] is not None}
            sealed = sha256(to_json(held, bytes_mode="hex")).digest()
            connection.execute(
                update, {**{key: row[key] for key in keys.split()}, "sealed": sealed}
            )


ERASED = """EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND erasures.finished_at IS NULL
)"""
REDACTED = """EXISTS (
    SELECT 1 FROM redactions
    WHERE redactions.tree_id = OLD.tree_id AND redactions.branch = OLD.branch
      AND redactions.seq = OLD.seq AND redactions.finished_at IS NULL
)"""
RAW = {
    "messages": PLACE,
    "tool_calls": (*PLACE, "position"),
}
"""The tables of what was said, and where their rows stand, which no redaction changes."""


def moved(table: str) -> str:
    """Return the condition that a row is to stand elsewhere."""
    return " OR ".join(f"NEW.{name} <> OLD.{name}" for name in RAW[table])


REDACTABLE = {
    "sqlite": [
        statement
        for table in RAW
        for statement in (
            f"DROP TRIGGER {table}_no_update",
            f"""CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
WHEN NOT {REDACTED}
    OR {moved(table)} OR NEW.rowid <> OLD.rowid
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} change only by a redaction'); END""",
        )
    ],
    "postgresql": [
        *(f"DROP TRIGGER {table}_no_change ON {table}" for table in RAW),
        f"""CREATE FUNCTION refuse_change_but_redaction() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ERASED} THEN RETURN OLD; END IF;
    ELSIF ROW(NEW.tree_id, NEW.branch, NEW.seq) = ROW(OLD.tree_id, OLD.branch, OLD.seq) THEN
        IF {REDACTED} THEN RETURN NEW; END IF;
    END IF;
    RAISE EXCEPTION 'raw rows of % change only by a redaction', TG_TABLE_NAME;
END $$""",
        *(
            f"""CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION refuse_change_but_redaction()"""
            for table in RAW
        ),
    ],
}
GUARDED = (
    ("summaries", "summary", "rows", "1"),
    ("compaction_records", "compaction", "finished rows", "OLD.outcome <> 'running'"),
)
"""Tables, their numbers, which of their rows never change, and how these are told."""

TRIGGERS = {
    "sqlite": [
        trigger
        for table, number, rows, finished in GUARDED
        for trigger in (
            f"""CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
WHEN {finished}
    OR EXISTS (
        SELECT 1 FROM {table}
        WHERE (tree_id = NEW.tree_id AND {number} = NEW.{number} OR rowid = NEW.rowid)
          AND rowid <> OLD.rowid
    )
BEGIN SELECT RAISE(ABORT, '{rows} of {table} never change'); END""",
            f"""CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT {ERASED}
BEGIN SELECT RAISE(ABORT, 'rows of {table} go only by the erasure of a session'); END""",
            f"""CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE tree_id = NEW.tree_id AND {number} = NEW.{number})
    OR EXISTS (SELECT 1 FROM {table} WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'rows of {table} are never replaced'); END""",
        )
    ],
    "postgresql": [
        f"""CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ERASED} THEN RETURN OLD; END IF;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'compaction_records' THEN
        IF OLD.outcome = 'running' THEN RETURN NEW; END IF;
    END IF;
    RAISE EXCEPTION 'finished rows of % never change', TG_TABLE_NAME;
END $$""",
        *(
            f"""CREATE TRIGGER {table}_{name} BEFORE {events} ON {table}
FOR EACH {what} EXECUTE FUNCTION refuse_rewriting()"""
            for table, *_ in GUARDED
            for name, events, what in (
                ("no_change", "UPDATE OR DELETE", "ROW"),
                ("no_truncate", "TRUNCATE", "STATEMENT"),
            )
        ),
    ],
}


SAYING_MORE = (
    "session_messages",
    "tool_log",
    "file_log",
    "turn_log",
    "compaction_log",
    "hidden_messages",
)


def create_views() -> None:
    """Make the views anew that say more by now, and add those that are new."""
    dialect = op.get_context().dialect.name
    for name in SAYING_MORE:
        op.execute(f"DROP VIEW {name}")
    for view in VIEWS:
        op.execute(sa.DDL(spelled(view, dialect).replace("%", "%%")))


ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {moment} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {moment} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}
ELEMENTS = {
    "sqlite": "json_each({array})",
    "postgresql": "json_array_elements_text(CAST({array} AS json))",
}

SESSION_LOG = """CREATE VIEW session_log AS
WITH runs AS (
    SELECT g.tree_id, g.session_id, g.last, f.turn, f.tokens_through,
           CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
    FROM session_segments g
    JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
    LEFT JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq = g.last
),
lines AS (
    SELECT tree_id, session_id, MAX(turn) AS turns, MAX(tokens_through) AS tokens,
           MAX(CASE WHEN inherited = 1 THEN last ELSE 0 END) AS inherited,
           MAX(CASE WHEN inherited = 1 THEN tokens_through ELSE 0 END) AS inherited_tokens
    FROM runs
    GROUP BY tree_id, session_id
)
SELECT s.id AS session_id, s.title, iso(s.created_at) AS created_at,
       iso(s.updated_at) AS updated_at, s.project_root,
       (SELECT r.id FROM sessions r
        WHERE r.tree_id = s.tree_id AND r.forked_at IS NULL) AS root_session,
       s.forked_from, s.forked_at,
       (SELECT COUNT(*) FROM sessions f
        WHERE f.tree_id = s.tree_id AND f.forked_from = s.id) AS forks,
       s.head AS messages, s.head - COALESCE(l.inherited, 0) AS own_messages,
       COALESCE(l.turns, 0) AS turns, COALESCE(l.tokens, 0) AS tokens,
       COALESCE(l.tokens - l.inherited_tokens, 0) AS own_tokens
FROM sessions s
LEFT JOIN lines l ON l.tree_id = s.tree_id AND l.session_id = s.id"""

SESSION_MESSAGES = """CREATE VIEW session_messages AS
SELECT g.session_id, m.seq, m.role, m.name, m.status, m.tool_call_id, m.message_id,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at, m.branch, f.tokens,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited,
       m.content_form, m.content, m.extra
FROM session_segments g
JOIN messages m
    ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
LEFT JOIN message_facts f ON f.tree_id = m.tree_id AND f.branch = m.branch AND f.seq = m.seq"""

# What a session said and left by a rewind: on branches of its own, where its line does not run.
BRANCH_MESSAGES = """CREATE VIEW branch_messages AS
SELECT b.session_id, m.branch, m.seq, m.role, m.name, m.status, m.tool_call_id, m.message_id,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at, f.tokens, m.content_form, m.content, m.extra
FROM branches b
JOIN messages m ON m.tree_id = b.tree_id AND m.branch = b.branch
LEFT JOIN message_facts f ON f.tree_id = m.tree_id AND f.branch = m.branch AND f.seq = m.seq
LEFT JOIN session_segments g
    ON g.tree_id = b.tree_id AND g.session_id = b.session_id AND g.branch = b.branch
    AND m.seq BETWEEN g.first AND g.last
WHERE b.session_id IS NOT NULL AND g.branch IS NULL"""

# What answers a call that is not known is a read or a command by its looks; no rule goes by that.
TOOL_LOG = """CREATE VIEW tool_log AS
SELECT g.session_id, r.seq, r.tool_name,
       CASE
           WHEN k.kind IS NOT NULL THEN k.kind
           WHEN r.tool_name IS NULL AND m.content LIKE '📄%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND LTRIM(m.content, ' 0123456789') LIKE '→%'
               AND LTRIM(m.content) NOT LIKE '→%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND r.looks_terminal = 1 THEN 'terminal'
           ELSE 'other'
       END AS kind,
       r.call_seq, r.call_position, c.call_id, c.arguments,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at,
       r.status, r.exit_code, r.has_stderr, r.error_prefix, r.length,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM session_segments g
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN tool_results r
    ON r.tree_id = g.tree_id AND r.branch = g.branch AND r.seq BETWEEN g.first AND g.last
JOIN messages m ON m.tree_id = r.tree_id AND m.branch = r.branch AND m.seq = r.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name
LEFT JOIN session_segments h
    ON h.tree_id = g.tree_id AND h.session_id = g.session_id
    AND r.call_seq BETWEEN h.first AND h.last
LEFT JOIN tool_calls c
    ON c.tree_id = h.tree_id AND c.branch = h.branch
    AND c.seq = r.call_seq AND c.position = r.call_position"""

FILE_LOG = """CREATE VIEW file_log AS
SELECT g.session_id, p.seq, s.project_root, p.path, p.start_line, p.end_line, r.tool_name,
       COALESCE(k.kind, 'other') AS kind,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at, r.length,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM session_segments g
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN sessions s ON s.tree_id = g.tree_id AND s.id = g.session_id
JOIN tool_result_paths p
    ON p.tree_id = g.tree_id AND p.branch = g.branch AND p.seq BETWEEN g.first AND g.last
JOIN tool_results r ON r.tree_id = p.tree_id AND r.branch = p.branch AND r.seq = p.seq
JOIN messages m ON m.tree_id = p.tree_id AND m.branch = p.branch AND m.seq = p.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name"""

TURN_LOG = """CREATE VIEW turn_log AS
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn, MIN(f.seq) AS first, MAX(f.seq) AS last,
           COUNT(*) AS messages, CAST(SUM(f.tokens) AS BIGINT) AS tokens,
           SUM(CASE WHEN f.role = 'tool' THEN 1 ELSE 0 END) AS tool_results
    FROM session_segments g
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    GROUP BY g.tree_id, g.session_id, f.turn
)
SELECT t.session_id, t.turn, t.first, t.last, t.messages, t.tool_results, t.tokens,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at,
       CASE WHEN m.role = 'user' THEN m.content END AS user_content,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM turns t
JOIN session_segments g
    ON g.tree_id = t.tree_id AND g.session_id = t.session_id AND t.first BETWEEN g.first AND g.last
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
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
HIDDEN_MESSAGES = f"""CREATE VIEW hidden_messages AS
{LINE_RECORDS},
in_force AS (
    SELECT r.* FROM records r
    WHERE r.kind IN ('summary', 'hide') AND r.outcome = 'applied' AND NOT EXISTS (
        SELECT 1 FROM records u
        WHERE u.tree_id = r.tree_id AND u.line = r.line
            AND u.kind = 'undo' AND u.undoes = r.compaction
    )
),
pins AS (
    SELECT r.tree_id, r.line, CAST(p.value AS BIGINT) AS seq, MAX(r.compaction) AS pinned_by
    FROM in_force r CROSS JOIN elements(r.pinned) AS p
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

# Of each request once: where several sessions go on from it, of the one that made it.
USAGE_LOG = """CREATE VIEW usage_log AS
SELECT b.session_id, u.branch, u.seq, iso(u.at) AS at, s.owner, u.model, u.provider, u.input,
       u.output, u.cached, COALESCE(u.written, 0) AS written, u.cost, u.details
FROM usages u
JOIN branches b ON b.tree_id = u.tree_id AND b.branch = u.branch
JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id"""

VIEWS = (
    SESSION_LOG,
    SESSION_MESSAGES,
    BRANCH_MESSAGES,
    TOOL_LOG,
    FILE_LOG,
    TURN_LOG,
    COMPACTION_LOG,
    HIDDEN_MESSAGES,
    USAGE_LOG,
)
"""What people ask, with times as ISO texts: ``at`` is when a message was said, as far as it tells,
else when it was stored.
"""


def spelled(statement: str, dialect: str) -> str:
    """Return a view's statement as a dialect spells times, and the elements of a JSON array."""
    with_times = re.sub(
        r"iso\((COALESCE\([a-z_., ]+\)|[a-z_.]+)\)",
        lambda found: ISO[dialect].format(moment=found[1]),
        statement,
    )
    return re.sub(
        r"elements\(([a-z_.]+)\)",
        lambda found: ELEMENTS[dialect].format(array=found[1]),
        with_times,
    )
