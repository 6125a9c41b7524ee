"""The storage of rows: engines, the writers' queue, tables, statements, migrations.

It knows nothing about the meaning of a conversation. Every room that reads or writes rows may call
it, and none opens a database by itself. On SQLite it is responsible for locks, files and flushes,
on PostgreSQL for connections.
"""

from __future__ import annotations

from . import json_sql, resources
from .cache import DEFAULT_CACHE_BYTES, Cache, is_mark_current, measure_bytes, register_tree_cache
from .columns import BIG_INTEGER, IDENTIFIER
from .driver_errors import RowsByKey, translate_driver_errors, translate_host_errors
from .engine import Database, Transactions
from .file_copies import (
    COMPANION_SUFFIXES,
    COPIES,
    DELETE_COPY,
    PART_SUFFIX,
    CopyRow,
    add_suffix,
    block_writers,
    claim_file,
    discard_copy,
    finish_copy,
    publish_copy,
    record_copy,
    write_copy,
)
from .files import (
    get_store_files,
    is_private_target,
    is_store_file,
    list_unusable_files,
    parse_url,
    resolve_path,
)
from .fork_safety import register_forkable
from .gc_pause import pause_gc
from .json_sql import JsonPairs, select_positions
from .lease import RowCheck, get_cache, get_read_mark, get_reader_cache, invalidate_at_end
from .logs import SafeLogger, get_logger
from .migrate import SCHEMA_VERSION, Upgrade, read_version, upgrade_schema
from .queries import Queries
from .schema import (
    GUARDED_TABLES,
    SCHEMA_HEAD,
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
from .seals import SEAL_COLUMN, compute_seal, list_sealed_columns
from .statements import Insertion, Row, Statement, get_lock_names, is_retriable
from .write_ahead import MAX_PURGE_SECONDS

__all__ = [
    "BIG_INTEGER",
    "COMPANION_SUFFIXES",
    "COPIES",
    "DEFAULT_CACHE_BYTES",
    "DELETE_COPY",
    "GUARDED_TABLES",
    "IDENTIFIER",
    "MAX_PURGE_SECONDS",
    "PART_SUFFIX",
    "SCHEMA_HEAD",
    "SCHEMA_VERSION",
    "SEALED_TABLES",
    "SEAL_COLUMN",
    "TREE_TABLES",
    "Cache",
    "CopyRow",
    "Database",
    "Insertion",
    "JsonPairs",
    "Queries",
    "Row",
    "RowCheck",
    "RowsByKey",
    "SafeLogger",
    "Statement",
    "Transactions",
    "Upgrade",
    "add_suffix",
    "block_writers",
    "branches",
    "claim_file",
    "compaction_records",
    "compute_seal",
    "copies",
    "discard_copy",
    "draft_pieces",
    "drafts",
    "erasures",
    "finish_copy",
    "get_cache",
    "get_lock_names",
    "get_logger",
    "get_read_mark",
    "get_reader_cache",
    "get_store_files",
    "head_moves",
    "invalidate_at_end",
    "is_mark_current",
    "is_private_target",
    "is_retriable",
    "is_store_file",
    "json_sql",
    "list_sealed_columns",
    "list_unusable_files",
    "measure_bytes",
    "message_facts",
    "messages",
    "notes",
    "parse_url",
    "pause_gc",
    "publish_copy",
    "read_version",
    "record_copy",
    "redactions",
    "register_forkable",
    "register_tree_cache",
    "resolve_path",
    "resources",
    "search_rows",
    "select_positions",
    "session_ids",
    "session_keys",
    "sessions",
    "settings",
    "summaries",
    "token_counts",
    "tool_calls",
    "tool_kinds",
    "tool_result_paths",
    "tool_results",
    "translate_driver_errors",
    "translate_host_errors",
    "upgrade_schema",
    "usages",
    "write_copy",
]
