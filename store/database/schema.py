"""The tables, and the rules that let the same tables run on one file or on many machines.

A conversation's tables begin every key with ``tree_id`` (a tree is a root session with all its
forks); no autoincrement, no sequence, nothing cascades; nothing is ordered by an id or a clock,
only by ``seq``. Narrow columns come before wide ones, because SQLite reads a row from its
beginning. Alembic owns the database; this module mirrors it.

Most values never change after they are written. Columns that may change are marked with
``info=CHANGES``. All others are covered by a digest (messages and their calls), follow from other
rows, or are covered by the seal of their row.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Text,
    literal_column,
    null,
)

from .columns import (
    BIG_INTEGER,
    IDENTIFIER,
    METADATA,
    MUTABLE_COLUMN_INFO,
    REAL_NUMBER,
    SearchVector,
)
from .columns import define_foreign_key as _of
from .columns import define_key_column as _key
from .columns import define_narrow_table as _narrow_table
from .columns import define_place_columns as _position
from .columns import define_seal_column as _sealed
from .columns import define_table as _table
from .columns import restrict_index as _where

SCHEMA_HEAD = "0003"
"""The newest revision of the schema."""

session_ids = _narrow_table(
    "session_ids", _key("id", IDENTIFIER), Column("tree_id", BIG_INTEGER, nullable=False)
)

branches = _narrow_table(
    "branches",
    _key("tree_id"),
    _key("branch"),
    Column("parent_branch", BIG_INTEGER),
    Column("parent_position", BIG_INTEGER, nullable=False),
    Column("session_id", IDENTIFIER, info=MUTABLE_COLUMN_INFO),
    Column("created_at", BIG_INTEGER, nullable=False),
    Column(
        "records_seen", BIG_INTEGER, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO
    ),
    _sealed(),
    ForeignKeyConstraint(["tree_id", "parent_branch"], ["branches.tree_id", "branches.branch"]),
    Index(None, "tree_id", "parent_branch"),
)

sessions = _table(
    "sessions",
    _key("tree_id"),
    _key("id", IDENTIFIER),
    Column("head_branch", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("head", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("last_rewind", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("created_at", BIG_INTEGER, nullable=False),
    Column("updated_at", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("forked_from", IDENTIFIER),
    Column("forked_at", BIG_INTEGER),
    Column("fold_case", Integer, nullable=False),
    Column("title", Text, info=MUTABLE_COLUMN_INFO),
    Column("project_root", Text, info=MUTABLE_COLUMN_INFO),
    Column("metadata", Text, info=MUTABLE_COLUMN_INFO),
    Column("revision", Text, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO),
    Column("owner", IDENTIFIER),
    Column("archived", Integer, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO),
    _sealed(),
    ForeignKeyConstraint(["tree_id", "head_branch"], ["branches.tree_id", "branches.branch"]),
    Index(None, "archived", "updated_at", "id"),
    Index(None, "archived", "created_at", "id"),
)
for _moment in ("updated_at", "created_at"):
    Index(
        None,
        *(sessions.c[name] for name in ("owner", "archived", _moment, "id")),
        info=_where(sessions.c.owner.is_not(None)),
    )

session_keys = _narrow_table(
    "session_keys",
    _key("tree_id"),
    _key("session_id", IDENTIFIER),
    _key("key", IDENTIFIER),
    Column("value", IDENTIFIER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Index(None, "key", "value", "tree_id", "session_id"),
)

messages = _table(
    "messages",
    *_position(),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Column("status", Text),
    Column("tool_call_id", Text),
    Column("wire_format", Text),
    Column("created_at", BIG_INTEGER),
    Column("stored_at", BIG_INTEGER, nullable=False),
    Column("message_id", Text),
    Column("digest", LargeBinary, nullable=False),
    Column("extra", Text),
    Column("content_form", Text),
    Column("content", Text),
    _of("branches", "tree_id", "branch"),
)
Index(
    None,
    messages.c.message_id,
    messages.c.tree_id,
    info=_where(messages.c.message_id.is_not(None)),
)

tool_calls = _table(
    "tool_calls",
    *_position(),
    _key("position"),
    Column("call_id", Text),
    Column("name", Text),
    Column("arguments_form", Text),
    Column("arguments", Text),
    Column("extra", Text),
    _of("messages", "tree_id", "branch", "seq"),
)

tool_results = _narrow_table(
    "tool_results",
    *_position(),
    Column("call_seq", BIG_INTEGER),
    Column("call_position", BIG_INTEGER),
    Column("tool_name", Text),
    Column("at", BIG_INTEGER),
    Column("status", Text),
    Column("exit_code", BIG_INTEGER),
    Column("has_stderr", Integer, nullable=False),
    Column("error_prefix", Integer, nullable=False),
    Column("looks_terminal", Integer, nullable=False),
    Column("length", BIG_INTEGER, nullable=False),
    Column("size", BIG_INTEGER, nullable=False),
    Column("paths_complete", Integer, nullable=False),
    _of("messages", "tree_id", "branch", "seq"),
)

tool_result_paths = _narrow_table(
    "tool_result_paths",
    *_position(),
    _key("path", Text()),
    Column("start_line", BIG_INTEGER),
    Column("end_line", BIG_INTEGER),
    Column("contiguous", Integer, nullable=False),
    Column("mentions", Integer, nullable=False),
    _of("tool_results", "tree_id", "branch", "seq"),
)

tool_kinds = _table(
    "tool_kinds",
    _key("name", IDENTIFIER, MUTABLE_COLUMN_INFO),
    Column("kind", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
)

summaries = _table(
    "summaries",
    _key("tree_id"),
    _key("summary"),
    Column("branch", BIG_INTEGER, nullable=False),
    Column("first", BIG_INTEGER, nullable=False),
    Column("last", BIG_INTEGER, nullable=False),
    Column("supersedes", BIG_INTEGER),
    Column("tokens", BIG_INTEGER),
    Column("model", Text),
    Column("prompt_version", Text),
    Column("digest", LargeBinary),
    Column("created_at", BIG_INTEGER, nullable=False),
    Column("title", Text),
    Column("key_actions", Text),
    Column("file_changes", Text),
    Column("body", Text, nullable=False),
    Column("facts", Text),
    Column("notice", Text),
    Column("names", Text),
    _sealed(),
    _of("branches", "tree_id", "branch"),
    ForeignKeyConstraint(["tree_id", "supersedes"], ["summaries.tree_id", "summaries.summary"]),
)

compaction_records = _table(
    "compaction_records",
    _key("tree_id"),
    _key("compaction"),
    Column("branch", BIG_INTEGER, nullable=False),
    Column("head", BIG_INTEGER, nullable=False),
    Column("reason", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("first_kept", BIG_INTEGER),
    Column("hidden_first", BIG_INTEGER),
    Column("hidden_last", BIG_INTEGER),
    Column("summary", BIG_INTEGER),
    Column("messages_before", BIG_INTEGER),
    Column("messages_after", BIG_INTEGER),
    Column("tokens_before", BIG_INTEGER),
    Column("tokens_after", BIG_INTEGER),
    Column("created_at", BIG_INTEGER, nullable=False),
    Column("policy", Text),
    Column("error", Text),
    Column("session_id", IDENTIFIER),
    Column("kind", Text, nullable=False, server_default="summary"),
    Column("undoes", BIG_INTEGER),
    Column("lease_until", BIG_INTEGER),
    Column("pinned", Text),
    Column("cleared", Text),
    Column("error_kind", Text),
    _sealed(),
    _of("branches", "tree_id", "branch"),
    ForeignKeyConstraint(["tree_id", "summary"], ["summaries.tree_id", "summaries.summary"]),
    Index(None, "tree_id", "branch", "compaction"),
)
Index(
    "uq_compaction_records_running",
    compaction_records.c.tree_id,
    compaction_records.c.session_id,
    unique=True,
    info=_where(compaction_records.c.outcome == literal_column("'running'")),
)

message_facts = _narrow_table(
    "message_facts",
    *_position(),
    Column("role", Text, nullable=False),
    Column("turn", BIG_INTEGER, nullable=False),
    Column("tokens", BIG_INTEGER, nullable=False),
    Column("tokens_through", BIG_INTEGER, nullable=False),
    _of("messages", "tree_id", "branch", "seq"),
)

usages = _table(
    "usages",
    *_position(),
    _key("usage"),
    Column("input", BIG_INTEGER, nullable=False),
    Column("output", BIG_INTEGER, nullable=False),
    Column("cached", BIG_INTEGER, nullable=False),
    Column("at", BIG_INTEGER, nullable=False),
    Column("written", BIG_INTEGER),
    Column("cost", REAL_NUMBER),
    Column("model", Text),
    Column("provider", Text),
    Column("details", Text),
    _sealed(),
    _of("branches", "tree_id", "branch"),
    Index(None, "at"),
)

token_counts = _narrow_table(
    "token_counts",
    *_position(),
    _key("encoding", Text()),
    Column("tokens", BIG_INTEGER, nullable=False),
    _sealed(),
    _of("messages", "tree_id", "branch", "seq"),
)

head_moves = _narrow_table(
    "head_moves",
    _key("tree_id"),
    _key("session_id", IDENTIFIER),
    _key("move"),
    Column("kind", Text, nullable=False),
    Column("from_branch", BIG_INTEGER),
    Column("from_position", BIG_INTEGER),
    Column("to_branch", BIG_INTEGER, nullable=False),
    Column("to_position", BIG_INTEGER, nullable=False),
    Column("earlier_rewind", BIG_INTEGER),
    Column("moved_at", BIG_INTEGER, nullable=False),
    Column("source_move", BIG_INTEGER),
    Column("source_record", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    _sealed(),
)

erasures = _table(
    "erasures",
    _key("tree_id"),
    _key("erasure"),
    _key("branch"),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("kept", BIG_INTEGER, nullable=False),
    Column("messages", BIG_INTEGER, nullable=False),
    Column("kept_messages", BIG_INTEGER, nullable=False),
    Column("started_at", BIG_INTEGER, nullable=False),
    Column("finished_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column(
        "newest_copy", BIG_INTEGER, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO
    ),
    Column("purged_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    _sealed(),
)
Index(
    "ix_erasures_open",
    erasures.c.tree_id,
    erasures.c.erasure,
    info=_where(erasures.c.finished_at.is_(null())),
)

redactions = _table(
    "redactions",
    *_position(),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("reason", Text, nullable=False),
    Column("redacted_by", Text),
    Column("redacted_at", BIG_INTEGER, nullable=False),
    Column("summaries", Text, nullable=False),
    Column("newest_copy", BIG_INTEGER, nullable=False),
    Column("finished_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("purged_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    _sealed(),
    _of("messages", "tree_id", "branch", "seq"),
)

drafts = _table(
    "drafts",
    _key("tree_id"),
    _key("draft"),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("branch", BIG_INTEGER, nullable=False),
    Column("head", BIG_INTEGER, nullable=False),
    Column("at", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("message", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("wire_format", Text),
    _sealed(),
    _of("branches", "tree_id", "branch"),
)

draft_pieces = _table(
    "draft_pieces",
    _key("tree_id"),
    _key("draft"),
    _key("piece"),
    Column("at", BIG_INTEGER, nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    _sealed(),
    _of("drafts", "tree_id", "draft"),
)

notes = _table(
    "notes",
    *_position(),
    _key("note"),
    Column("key", IDENTIFIER, nullable=False),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("owner", IDENTIFIER),
    Column("at", BIG_INTEGER, nullable=False),
    Column("value", Text, nullable=False),
    _sealed(),
    _of("messages", "tree_id", "branch", "seq"),
    Index(None, "key", "at"),
)

search_rows = _narrow_table(
    "search_rows",
    *(_key(name, info=MUTABLE_COLUMN_INFO) for name in ("tree_id", "branch", "seq", "summary")),
    Column("number", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("words", Text().with_variant(SearchVector(), "postgresql"), info=MUTABLE_COLUMN_INFO),
    Column("names", Text, info=MUTABLE_COLUMN_INFO),
    _of("branches", "tree_id", "branch"),
    Index(None, "number"),
)

settings = _table(
    "settings",
    _key("name", IDENTIFIER, MUTABLE_COLUMN_INFO),
    Column("value", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
)

copies = _table(
    "copies",
    _key("copy"),
    Column("made_at", BIG_INTEGER, nullable=False),
    Column("size", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("modified", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("kind", Text, nullable=False),
    Column("path", Text, nullable=False),
    _sealed(),
)

TREE_TABLES = tuple(
    table for table in METADATA.sorted_tables if "tree_id" in table.primary_key.columns
)
"""The tables of a conversation: their rows belong to one tree."""

RAW_TABLES = ("messages", "tool_calls")
"""The tables of messages."""
GUARDED_TABLES = (*RAW_TABLES, "summaries", "compaction_records")
"""The tables whose rows the database refuses to change; of records, those that have ended."""
SEALED_TABLES = tuple(table for table in METADATA.sorted_tables if "sealed" in table.c)
"""The tables whose rows have seals."""
