"""The tables, and the rules that let the same tables run on one file or on many machines.

A conversation's tables begin every key with ``tree_id`` (a tree is a root session with all its
forks); no autoincrement, no sequence, nothing cascades; nothing is ordered by an id or a clock,
only by ``seq``. Narrow columns come before wide ones, because SQLite reads a row from its
beginning. Alembic owns the database; this module mirrors it.

Most values never change after they are written. Columns that may change are marked with
``info=MUTABLE_COLUMN_INFO``. All others are covered by a digest (messages and their calls), follow
from other rows, or are covered by the seal of their row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    ColumnElement,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
    literal_column,
    null,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine, UserDefinedType

SCHEMA_HEAD = "0013"
"""The newest revision of the schema."""

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

BIG_INTEGER = BigInteger().with_variant(Integer(), "sqlite")
REAL_NUMBER: Double[Any] = Double().with_variant(REAL(), "sqlite")
IDENTIFIER = Text().with_variant(Text(collation="C"), "postgresql")


class SearchVector(UserDefinedType[str]):
    """The words of a text with their places; defined here, so that no dialect has to be loaded."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the server's name of the type."""
        return "TSVECTOR"


MUTABLE_COLUMN_INFO = {"changes": True}
"""Marks a column that may change after its row was written."""


SEAL_COLUMN = "sealed"
"""The column that holds a row's seal."""


def define_seal_column() -> Column[object]:
    """Define the column of a row's seal."""
    return Column(SEAL_COLUMN, LargeBinary)


def define_table(name: str, *items: SchemaItem) -> Table:
    """Define a table."""
    return Table(name, METADATA, *items, info={"sqlite_strict": True})


def define_narrow_table(name: str, *items: SchemaItem) -> Table:
    """Define a table whose rows are stored in its key itself.

    This halves the pages of narrow rows, and each write touches one page less.
    """
    options = {"sqlite_strict": True, "sqlite_with_rowid": False}
    return Table(name, METADATA, *items, info=options)


def restrict_index(condition: ColumnElement[bool]) -> dict[str, Any]:
    """Limit an index to the rows for which a condition holds."""
    return {"sqlite_where": condition, "postgresql_where": condition}


@event.listens_for(METADATA, "before_create")
def _apply_dialect_options(metadata: MetaData, *_: object, **__: object) -> None:
    """Give each dialect its own options.

    They are kept in ``info`` until then, since naming a dialect loads it, and most programs create
    no table.
    """
    for made in metadata.tables.values():
        of_it: list[Table | Index] = [made, *made.indexes]
        for each in of_it:
            each.dialect_kwargs.update(each.info)


def define_key_column(
    name: str, type_: TypeEngine[Any] = BIG_INTEGER, info: dict[str, bool] | None = None
) -> Column[object]:
    """Define a column of a table's key."""
    return Column(name, type_, primary_key=True, autoincrement=False, nullable=False, info=info)


def define_place_columns() -> tuple[Column[object], ...]:
    """Define the columns of a message's place."""
    return define_key_column("tree_id"), define_key_column("branch"), define_key_column("seq")


def define_foreign_key(parent: str, *columns: str) -> ForeignKeyConstraint:
    """Define the foreign key to another table, by columns of the same names."""
    return ForeignKeyConstraint(columns, [f"{parent}.{column}" for column in columns])


session_ids = define_narrow_table(
    "session_ids",
    define_key_column("id", IDENTIFIER),
    Column("tree_id", BIG_INTEGER, nullable=False),
)

branches = define_narrow_table(
    "branches",
    define_key_column("tree_id"),
    define_key_column("branch"),
    Column("parent_branch", BIG_INTEGER),
    Column("parent_position", BIG_INTEGER, nullable=False),
    Column("session_id", IDENTIFIER, info=MUTABLE_COLUMN_INFO),
    Column("created_at", BIG_INTEGER, nullable=False),
    Column(
        "records_seen", BIG_INTEGER, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO
    ),
    define_seal_column(),
    ForeignKeyConstraint(["tree_id", "parent_branch"], ["branches.tree_id", "branches.branch"]),
    Index(None, "tree_id", "parent_branch"),
)

ancestors = define_narrow_table(
    "ancestors",
    define_key_column("tree_id"),
    define_key_column("branch"),
    define_key_column("level", Integer()),
    define_key_column("ancestor"),
    Column("first", BIG_INTEGER, nullable=False),
    Column("last", BIG_INTEGER, nullable=False),
    Column("next_branch", BIG_INTEGER, nullable=False),
)

_FILTERED_COLUMNS = ("updated_second", "source", "project_root")
"""What lists of sessions are filtered by: an index tells it without their rows."""
sessions = define_table(
    "sessions",
    define_key_column("tree_id"),
    define_key_column("id", IDENTIFIER),
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
    define_seal_column(),
    Column(
        "updated_second", BIG_INTEGER, nullable=False, server_default="0", info=MUTABLE_COLUMN_INFO
    ),
    Column("source", IDENTIFIER, info=MUTABLE_COLUMN_INFO),
    Column("file", Text, info=MUTABLE_COLUMN_INFO),
    ForeignKeyConstraint(["tree_id", "head_branch"], ["branches.tree_id", "branches.branch"]),
    Index("ix_sessions_archived_updated_second", "archived", *_FILTERED_COLUMNS),
    Index(None, "archived", "created_at", "id"),
    Index(None, "id"),
)
for _index_name, _listed in (
    ("ix_sessions_owner_archived_updated_second", _FILTERED_COLUMNS),
    (None, ("created_at", "id")),
):
    Index(
        _index_name,
        *(sessions.c[name] for name in ("owner", "archived", *_listed)),
        info=restrict_index(sessions.c.owner.is_not(None)),
    )

session_keys = define_narrow_table(
    "session_keys",
    define_key_column("tree_id"),
    define_key_column("session_id", IDENTIFIER),
    define_key_column("key", IDENTIFIER),
    Column("value", IDENTIFIER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Index(None, "key", "value", "tree_id", "session_id"),
)

messages = define_table(
    "messages",
    *define_place_columns(),
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
    define_foreign_key("branches", "tree_id", "branch"),
)
Index(
    None,
    messages.c.message_id,
    messages.c.tree_id,
    info=restrict_index(messages.c.message_id.is_not(None)),
)

attachments = define_table(
    "attachments",
    define_key_column("tree_id"),
    define_key_column("digest", LargeBinary()),
    Column("data", LargeBinary, nullable=False),
)

message_attachments = define_table(
    "message_attachments",
    *define_place_columns(),
    define_key_column("position"),
    Column("encoding", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
    define_foreign_key("attachments", "tree_id", "digest"),
    Index(None, "tree_id", "digest"),
)

tool_calls = define_table(
    "tool_calls",
    *define_place_columns(),
    define_key_column("position"),
    Column("call_id", Text),
    Column("name", Text),
    Column("arguments_form", Text),
    Column("arguments", Text),
    Column("extra", Text),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
)

tool_results = define_narrow_table(
    "tool_results",
    *define_place_columns(),
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
    define_foreign_key("messages", "tree_id", "branch", "seq"),
)

tool_result_paths = define_narrow_table(
    "tool_result_paths",
    *define_place_columns(),
    define_key_column("path", Text()),
    Column("start_line", BIG_INTEGER),
    Column("end_line", BIG_INTEGER),
    Column("contiguous", Integer, nullable=False),
    Column("mentions", Integer, nullable=False),
    define_foreign_key("tool_results", "tree_id", "branch", "seq"),
)

tool_kinds = define_table(
    "tool_kinds",
    define_key_column("name", IDENTIFIER, MUTABLE_COLUMN_INFO),
    Column("kind", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
)

summaries = define_table(
    "summaries",
    define_key_column("tree_id"),
    define_key_column("summary"),
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
    define_seal_column(),
    define_foreign_key("branches", "tree_id", "branch"),
    ForeignKeyConstraint(["tree_id", "supersedes"], ["summaries.tree_id", "summaries.summary"]),
)

compaction_records = define_table(
    "compaction_records",
    define_key_column("tree_id"),
    define_key_column("compaction"),
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
    define_seal_column(),
    define_foreign_key("branches", "tree_id", "branch"),
    ForeignKeyConstraint(["tree_id", "summary"], ["summaries.tree_id", "summaries.summary"]),
    Index(None, "tree_id", "branch", "compaction"),
)
Index(
    "uq_compaction_records_running",
    compaction_records.c.tree_id,
    compaction_records.c.session_id,
    unique=True,
    info=restrict_index(compaction_records.c.outcome == literal_column("'running'")),
)

message_facts = define_narrow_table(
    "message_facts",
    *define_place_columns(),
    Column("role", Text, nullable=False),
    Column("turn", BIG_INTEGER, nullable=False),
    Column("tokens", BIG_INTEGER, nullable=False),
    Column("tokens_through", BIG_INTEGER, nullable=False),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
)

usages = define_table(
    "usages",
    *define_place_columns(),
    define_key_column("usage"),
    Column("input", BIG_INTEGER, nullable=False),
    Column("output", BIG_INTEGER, nullable=False),
    Column("cached", BIG_INTEGER, nullable=False),
    Column("at", BIG_INTEGER, nullable=False),
    Column("written", BIG_INTEGER),
    Column("cost", REAL_NUMBER),
    Column("model", Text),
    Column("provider", Text),
    Column("details", Text),
    define_seal_column(),
    Column("base_model", IDENTIFIER, info=MUTABLE_COLUMN_INFO),
    define_foreign_key("branches", "tree_id", "branch"),
    Index(None, "at"),
)

kept_usages = define_table(
    "kept_usages",
    define_key_column("tree_id"),
    define_key_column("erasure"),
    define_key_column("number"),
    *(
        Column(name, BIG_INTEGER, nullable=False)
        for name in ("day", "parts", "requests", "input", "output", "cached", "written")
    ),
    Column("cost", REAL_NUMBER),
    Column("model", Text),
    Column("base_model", IDENTIFIER),
    Column("source", IDENTIFIER),
    Column("owner", IDENTIFIER, info=MUTABLE_COLUMN_INFO),
    Column("project_root", Text, info=MUTABLE_COLUMN_INFO),
    define_seal_column(),
)
Index(None, kept_usages.c.owner, info=restrict_index(kept_usages.c.owner.is_not(None)))

token_counts = define_narrow_table(
    "token_counts",
    *define_place_columns(),
    define_key_column("encoding", Text()),
    Column("tokens", BIG_INTEGER, nullable=False),
    define_seal_column(),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
)

running_bills = define_narrow_table(
    "running_bills",
    define_key_column("tree_id", info=MUTABLE_COLUMN_INFO),
    define_key_column("session_id", IDENTIFIER, MUTABLE_COLUMN_INFO),
    define_key_column("policy_name", IDENTIFIER, MUTABLE_COLUMN_INFO),
    *(
        Column(name, BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO)
        for name in ("branch", "seq", "at", "requests", "sent", "sent_before", "raw_before")
    ),
    *(
        Column(name, BIG_INTEGER, info=MUTABLE_COLUMN_INFO)
        for name in ("pause", "longest_alive", "shortest_over")
    ),
    Column("was_cold", Integer, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("own_bill", REAL_NUMBER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("raw_bill", REAL_NUMBER, nullable=False, info=MUTABLE_COLUMN_INFO),
)

head_moves = define_narrow_table(
    "head_moves",
    define_key_column("tree_id"),
    define_key_column("session_id", IDENTIFIER),
    define_key_column("move"),
    Column("kind", Text, nullable=False),
    Column("from_branch", BIG_INTEGER),
    Column("from_position", BIG_INTEGER),
    Column("to_branch", BIG_INTEGER, nullable=False),
    Column("to_position", BIG_INTEGER, nullable=False),
    Column("earlier_rewind", BIG_INTEGER),
    Column("moved_at", BIG_INTEGER, nullable=False),
    Column("source_move", BIG_INTEGER),
    Column("source_record", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    define_seal_column(),
)

erasures = define_table(
    "erasures",
    define_key_column("tree_id"),
    define_key_column("erasure"),
    define_key_column("branch"),
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
    define_seal_column(),
)
Index(
    "ix_erasures_open",
    erasures.c.tree_id,
    erasures.c.erasure,
    info=restrict_index(erasures.c.finished_at.is_(null())),
)

redactions = define_table(
    "redactions",
    *define_place_columns(),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("reason", Text, nullable=False),
    Column("redacted_by", Text),
    Column("redacted_at", BIG_INTEGER, nullable=False),
    Column("summaries", Text, nullable=False),
    Column("newest_copy", BIG_INTEGER, nullable=False),
    Column("finished_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("purged_at", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    define_seal_column(),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
)

drafts = define_table(
    "drafts",
    define_key_column("tree_id"),
    define_key_column("draft"),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("branch", BIG_INTEGER, nullable=False),
    Column("head", BIG_INTEGER, nullable=False),
    Column("at", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("message", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("wire_format", Text),
    define_seal_column(),
    Column("writer", Text, info=MUTABLE_COLUMN_INFO),
    Column("live_until", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("usage", Text, info=MUTABLE_COLUMN_INFO),
    define_foreign_key("branches", "tree_id", "branch"),
)

draft_pieces = define_table(
    "draft_pieces",
    define_key_column("tree_id"),
    define_key_column("draft"),
    define_key_column("piece"),
    Column("at", BIG_INTEGER, nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    define_seal_column(),
    define_foreign_key("drafts", "tree_id", "draft"),
)

notes = define_table(
    "notes",
    *define_place_columns(),
    define_key_column("note"),
    Column("key", IDENTIFIER, nullable=False),
    Column("session_id", IDENTIFIER, nullable=False),
    Column("owner", IDENTIFIER),
    Column("at", BIG_INTEGER, nullable=False),
    Column("value", Text, nullable=False),
    define_seal_column(),
    define_foreign_key("messages", "tree_id", "branch", "seq"),
    Index(None, "key", "at"),
)

search_rows = define_narrow_table(
    "search_rows",
    *(
        define_key_column(name, info=MUTABLE_COLUMN_INFO)
        for name in ("tree_id", "branch", "seq", "summary")
    ),
    Column("number", BIG_INTEGER, nullable=False, info=MUTABLE_COLUMN_INFO),
    Column("words", Text().with_variant(SearchVector(), "postgresql"), info=MUTABLE_COLUMN_INFO),
    Column("names", Text, info=MUTABLE_COLUMN_INFO),
    define_foreign_key("branches", "tree_id", "branch"),
    Index(None, "number"),
)

requests = define_table(
    "requests",
    define_key_column("tree_id"),
    define_key_column("session_id", IDENTIFIER),
    define_key_column("request"),
    Column("branch", BIG_INTEGER, nullable=False),
    Column("seq", BIG_INTEGER, nullable=False),
    Column("at", BIG_INTEGER, nullable=False),
    Column("newest_record", BIG_INTEGER, nullable=False),
    Column("tokens", BIG_INTEGER, nullable=False),
    Column("unchanged_tokens", BIG_INTEGER),
    Column("usage_branch", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("usage_seq", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("usage_number", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("kind", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("policy_name", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("layers", Text, nullable=False),
    Column("compactions", Text, nullable=False),
    Column("texts", Text, nullable=False),
    define_seal_column(),
)

request_texts = define_table(
    "request_texts",
    define_key_column("tree_id"),
    define_key_column("text_digest", IDENTIFIER),
    Column("content", Text, nullable=False),
    define_seal_column(),
)

settings = define_table(
    "settings",
    define_key_column("name", IDENTIFIER, MUTABLE_COLUMN_INFO),
    Column("value", Text, nullable=False, info=MUTABLE_COLUMN_INFO),
)

prices = define_table(
    "prices",
    define_key_column("owner", IDENTIFIER, MUTABLE_COLUMN_INFO),
    define_key_column("model", IDENTIFIER, MUTABLE_COLUMN_INFO),
    define_key_column("valid_from", info=MUTABLE_COLUMN_INFO),
    *(
        Column(name, REAL_NUMBER, info=MUTABLE_COLUMN_INFO)
        for name in ("input", "cached", "written", "output")
    ),
)

copies = define_table(
    "copies",
    define_key_column("copy"),
    Column("made_at", BIG_INTEGER, nullable=False),
    Column("size", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("modified", BIG_INTEGER, info=MUTABLE_COLUMN_INFO),
    Column("kind", Text, nullable=False),
    Column("path", Text, nullable=False),
    define_seal_column(),
)

TREE_TABLES = tuple(
    table for table in METADATA.sorted_tables if "tree_id" in table.primary_key.columns
)
"""The tables of a conversation: their rows belong to one tree."""

RAW_TABLES = ("messages", "tool_calls")
"""The tables of messages."""
ATTACHMENT_TABLES = ("attachments", "message_attachments")
"""The tables of the pictures and files of messages: they belong to raw, and have no digest of
their own, since that of a message covers them.
"""
GUARDED_TABLES = (*RAW_TABLES, *ATTACHMENT_TABLES, "summaries", "compaction_records")
"""The tables whose rows the database refuses to change; of records, those that have ended."""
SEALED_TABLES = tuple(table for table in METADATA.sorted_tables if SEAL_COLUMN in table.c)
"""The tables whose rows have seals."""
