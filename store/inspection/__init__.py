"""Inspection and upkeep of a whole store: SQL, statistics, checks, advice, copies, dumps, parts.

SQL only reads. Checks compare the stored rows with their digests, and advice names the threats to
a store in its place. Copies are written, checked and put back. No row changes except the list of
copies: findings are reported, not repaired. The faces and the command call this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "MAX_PURGE_SECONDS",
    "OLDER",
    "SCHEMA_HEAD",
    "SIZE_KEYS",
    "Condition",
    "Database",
    "FileCounts",
    "Statistics",
    "TableParts",
    "ToolUse",
    "Upgrade",
    "backup",
    "check",
    "compare_line",
    "divide_tables",
    "doctor",
    "dump",
    "get_store_files",
    "is_store_file",
    "is_write_protected",
    "list_table_parts",
    "listed",
    "load_tool_kinds",
    "query",
    "remove_copies",
    "restore",
    "statistics",
    "storage_use",
    "transfer",
    "upgrade_schema",
    "views",
    "writing_role",
]

if TYPE_CHECKING:
    from . import dump, integrity, storage_use, transfer
    from .advice import Condition, doctor
    from .checks import OLDER
    from .copies import backup, listed, remove_copies, restore
    from .distribution import TableParts, divide_tables, list_table_parts
    from .integrity import check
    from .line_checks import ReadCheck, compare_line
    from .sql_console import query, views, writing_role
    from .storage_use import SIZE_KEYS
    from .upkeep import (
        MAX_PURGE_SECONDS,
        SCHEMA_HEAD,
        Database,
        Upgrade,
        get_store_files,
        is_store_file,
        is_write_protected,
        load_tool_kinds,
        upgrade_schema,
    )
    from .usage_statistics import FileCounts, Statistics, ToolUse, replaced, statistics

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        "dump integrity storage_use transfer",
        advice="Condition doctor",
        checks="OLDER",
        copies="backup listed remove_copies restore",
        distribution="TableParts divide_tables list_table_parts",
        integrity="check",
        line_checks="ReadCheck compare_line",
        storage_use="SIZE_KEYS",
        sql_console="query views writing_role",
        upkeep=(
            "MAX_PURGE_SECONDS SCHEMA_HEAD Database Upgrade get_store_files is_store_file "
            "is_write_protected load_tool_kinds upgrade_schema"
        ),
        usage_statistics="FileCounts Statistics ToolUse replaced statistics",
    )
