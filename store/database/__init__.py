"""Where rows are kept: engines, the writers' queue, tables, statements, migrations.

It knows nothing of what a conversation means. Every room that reads or writes rows may call it, and
none opens a database by itself. On SQLite it answers for locks, files and flushes, on PostgreSQL
for connections.
"""

from __future__ import annotations

from . import json_sql, resources
from .checked_driver import Check
from .collector import paused
from .columns import BIG, IDENTIFIER
from .copying import (
    COMPANIONS,
    COPIES,
    FORGET_COPY,
    UNFINISHED,
    CopyRow,
    beside,
    discard,
    finish_copy,
    list_copy,
    put_in_place,
    standing_in_line,
    take_over,
    write_copy,
)
from .damage import RowsByKey, guarded, translated
from .engine import Database
from .files import closed_files, files_of, is_file_of, is_private, resolved, url_of
from .forking import told_of_forks
from .json_sql import Pairs, positions
from .kept import BYTES, Kept, is_kept, told_to_forget, weight
from .lease import forget_kept, kept_by, kept_of, kept_since
from .logs import Log, logger
from .migrate import VERSION, Upgrade, upgrade, version
from .queries import Queries
from .schema import (
    GUARDED_TABLES,
    HEAD,
    SEALED_TABLES,
    TREE_TABLES,
    branches,
    compaction_records,
    copies,
    draft_pieces,
    drafts,
    erasures,
    head_moves,
    message_facts,
    messages,
    notes,
    redactions,
    search_rows,
    session_ids,
    session_keys,
    sessions,
    settings,
    summaries,
    token_counts,
    tool_calls,
    tool_kinds,
    tool_result_paths,
    tool_results,
    usages,
)
from .seals import SEALED, seal, sealed_names
from .statements import Insertion, Row, Statement, asks_again, locks
from .transactions import Transactions
from .write_ahead import LONGEST_PURGE

__all__ = [
    "BIG",
    "BYTES",
    "COMPANIONS",
    "COPIES",
    "FORGET_COPY",
    "GUARDED_TABLES",
    "HEAD",
    "IDENTIFIER",
    "LONGEST_PURGE",
    "SEALED",
    "SEALED_TABLES",
    "TREE_TABLES",
    "UNFINISHED",
    "VERSION",
    "Check",
    "CopyRow",
    "Database",
    "Insertion",
    "Kept",
    "Log",
    "Pairs",
    "Queries",
    "Row",
    "RowsByKey",
    "Statement",
    "Transactions",
    "Upgrade",
    "asks_again",
    "beside",
    "branches",
    "closed_files",
    "compaction_records",
    "copies",
    "discard",
    "draft_pieces",
    "drafts",
    "erasures",
    "files_of",
    "finish_copy",
    "forget_kept",
    "guarded",
    "head_moves",
    "is_file_of",
    "is_kept",
    "is_private",
    "json_sql",
    "kept_by",
    "kept_of",
    "kept_since",
    "list_copy",
    "locks",
    "logger",
    "message_facts",
    "messages",
    "notes",
    "paused",
    "positions",
    "put_in_place",
    "redactions",
    "resolved",
    "resources",
    "seal",
    "sealed_names",
    "search_rows",
    "session_ids",
    "session_keys",
    "sessions",
    "settings",
    "standing_in_line",
    "summaries",
    "take_over",
    "token_counts",
    "told_of_forks",
    "told_to_forget",
    "tool_calls",
    "tool_kinds",
    "tool_result_paths",
    "tool_results",
    "translated",
    "upgrade",
    "url_of",
    "usages",
    "version",
    "weight",
    "write_copy",
]
